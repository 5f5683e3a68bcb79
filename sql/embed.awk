# Each .sql file becomes one array of numbers in C, so that no byte in it can mean anything to C. A line "-- part: NAME"
# stands for the file parts/NAME.sql beside it, without the comment at its head; a NAME with folders (core/parts/NAME) is
# looked for below sql/.
function embed(file, head,    line, i, from, got, name_of) {
    while ((got = (getline line < file)) > 0) {
        if (head && line ~ /^(--.*)?$/ && line !~ /^-- part: /) continue
        head = 0
        from = file
        if (line ~ /^-- part: /) {
            name_of = substr(line, 10)
            if (name_of ~ /\//) sub(/[^\/]*\/[^\/]*$/, name_of ".sql", from)
            else sub(/[^\/]*$/, (from ~ /\/parts\// ? "" : "parts/") name_of ".sql", from)
            embed(from, 1)
            continue
        }
        for (i = 1; i <= length(line); i++) printf "%s", code[substr(line, i, 1)]
        print "10,"
    }
    if (got < 0) {
        print "make: " file " is not there" >"/dev/stderr"
        exit 1
    }
    close(file)
}
BEGIN {
    for (i = 1; i < 256; i++) code[sprintf("%c", i)] = (i > 127 ? i - 256 : i) ","
    print "#include \"gen/sql.h\""
    for (a = 1; a < ARGC; a++) {
        parts = split(ARGV[a], part, "/"); set = part[parts - 1]; name = part[parts]; sub(/\.sql$/, "", name)
        printf "static const char text_%d[] = {\n", a
        embed(ARGV[a], set == "console" || set == "client")
        print "0};"
        rows[set] = rows[set] "    {\"" name "\", text_" a "},\n"; n[set]++
    }
    for (s = split("console client core migrate adapters", sets, " "); s > 0; s--) {
        printf "const struct sql_text sql_%s[] = {\n%s    {0, 0},\n};\n", sets[s], rows[sets[s]]
        printf "const int sql_%s_n = %d;\n", sets[s], n[sets[s]]
    }
}
