# Each .sql file becomes one array of numbers in C, so that no byte in it can mean anything to C. A text that several
# statements share stands once: a line "-- part: NAME" is replaced by
#   - the lines between "-- part NAME:" and "-- end part" further up in the same file, which also stay where they are, or
#   - the file parts/NAME.sql beside it, without the comment at its head; a NAME with folders (core/parts/NAME) is
#     looked for below sql/. In it, too, a line "-- part: NAME" may mean the lines of the file that is embedded.
# "-- part: NAME key=text; other=text" puts these texts where the part has {key} and {other}. Like a note, the line may go
# on in lines of "--" and at least two blanks.

# s, with what is given for each {key}
function fill(s, given,    i, j, n, pair, at, key, out) {
    n = split(given, pair, /; /)
    for (i = 1; i <= n; i++) {
        at = index(pair[i], "=")
        key = "{" substr(pair[i], 1, at - 1) "}"
        for (out = ""; (at > 1) && (j = index(s, key)); s = substr(s, j + length(key)))
            out = out substr(s, 1, j - 1) substr(pair[i], at + 1)
        s = out s
    }
    return s
}
# the bytes of s
function put(s,    i) { for (i = 1; i <= length(s); i++) printf "%s", code[substr(s, i, 1)] }
# The next line of file, in text; 0 = there is none.
function next_line(file,    got) {
    got = file in held
    if (got) { text = held[file]; delete held[file] }
    else got = (getline text < file)
    if (got < 0) { print "make: " file " is not there" >"/dev/stderr"; exit 1 }
    return got
}
# The line "-- part: USE", read from file, filled with the texts that the part around it was given.
function part(file, use, given,    name, from, lines, n, i) {
    while (next_line(file)) {
        if (text !~ /^--  +[^ ]/) { held[file] = text; break }
        sub(/^-- +/, "", text); use = use " " text
    }
    use = fill(use, given)
    name = use; sub(/ .*/, "", name)
    given = substr(use, length(name) + 2)
    if (name in kept) {
        n = split(kept[name], lines, "\n")
        for (i = 1; i < n; i++) put(fill(lines[i], given) "\n")
        return
    }
    from = file
    if (name ~ /\//) sub(/[^\/]*\/[^\/]*$/, name ".sql", from)
    else sub(/[^\/]*$/, (from ~ /\/parts\// ? "" : "parts/") name ".sql", from)
    embed(from, 1, given)
}
# head: the comment at its head is left out
function embed(file, head, given,    keep) {
    while (next_line(file)) {
        if (head && text ~ /^(--.*)?$/ && text !~ /^-- (part|name): /) continue
        head = 0
        if (keep != "" && text ~ /^-- part/) { print "make: " file ": a part in a part" >"/dev/stderr"; exit 1 }
        if (text ~ /^-- part: /) part(file, substr(text, 10), given)
        else if (text ~ /^-- part [a-z_]+:$/) { keep = substr(text, 9); sub(/:$/, "", keep); kept[keep] = "" }
        else if (text == "-- end part") keep = ""
        else {
            if (keep != "") kept[keep] = kept[keep] text "\n"
            put(fill(text, given) "\n")
        }
    }
    close(file)
}
BEGIN {
    for (i = 1; i < 256; i++) code[sprintf("%c", i)] = (i > 127 ? i - 256 : i) (i == 10 ? ",\n" : ",")
    print "#include \"gen/sql.h\""
    for (a = 1; a < ARGC; a++) {
        parts = split(ARGV[a], path, "/"); set = path[parts - 1]; name = path[parts]; sub(/\.sql$/, "", name)
        printf "static const char text_%d[] = {\n", a
        split("", kept)
        embed(ARGV[a], set == "console" || set == "client")
        print "0};"
        rows[set] = rows[set] "    {\"" name "\", text_" a "},\n"; n[set]++
    }
    for (s = split("console client core migrate adapters", sets, " "); s > 0; s--) {
        printf "const struct sql_text sql_%s[] = {\n%s    {0, 0},\n};\n", sets[s], rows[sets[s]]
        printf "const int sql_%s_n = %d;\n", sets[s], n[sets[s]]
    }
}
