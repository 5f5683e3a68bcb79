# The rules for sql/ that a machine can check. tests/lint.sh calls it with the files of sql/core, sql/console,
# sql/client and sql/adapters. Prints `file:line: what is wrong: what to do`. Strings and comments count only for
# the width of a line. A function's body in dollar quotes is code; a string in dollar quotes inside a body
# ($q$...$q$) is not.
BEGIN {
    # Public functions with many parameters, whose signature callers know. A new function takes a composite type instead.
    split("job_fault push_special push push_bytes push_text push_many complete_and_claim fail requeue_where release cancel_where " \
          "discard_where delete_where set_priority_where set_time_where change_preview " wide, name, " ")
    for (i in name) many_parameters[name[i]]
}
function say(line, what) { print FILENAME ":" line ": " what }

# Called at the end of each statement. s has its words, line_of the line of each word, quote how many dollar quotes it is in.
function check(   i, j, depth, fn, params, named, ins, language, definer, pinned, first, last, sig_end, body) {
    if (n > 2 && s[1] == "comment" && s[2] == "on" && s[3] == "function") commented[FILENAME, s[4]]
    i = (s[1] == "create") ? (s[2] == "or" ? 4 : 2) : 0
    if (!i || s[i] != "function" && s[i] != "procedure") return
    fn = s[i + 1]; first = line_of[1]; last = line_of[n]
    made[++nmade] = fn; made_file[nmade] = FILENAME; made_line[nmade] = first
    depth = 0; params = 0
    for (j = i + 2; j <= n; j++) {
        if (s[j] == "(" || s[j] == "[") depth++
        else if (s[j] == ")" || s[j] == "]") { if (--depth == 0) break }
        else if (depth == 1 && s[j] == ",") params++
        else if (depth == 1 && s[j - 1] ~ /^[(,]$/) {
            if (!params) params = 0
            out = (s[j] == "out")
            if (!out) ins++
            if (s[j + (out || s[j] == "inout" || s[j] == "variadic") + 1] !~ /^[,)]$/) named++
        }
    }
    sig_end = j
    if (named) params++
    for (; j <= n && !quote[j]; j++) {
        if (s[j] == "definer") definer = 1
        if (s[j] == "search_path") pinned = 1
    }
    for (body = j; body <= n; body++) {
        if (quote[body] == 1 && s[body] ~ /^\$[0-9]+$/ && named)
            say(line_of[body], fn "(): " s[body] ": write the parameter's name")
        if (quote[body] && (s[body - 1] == "with" || s[body - 1] == "recursive" || s[body - 1] == ",") &&
            s[body] ~ /^[a-z_0-9]+$/ && length(s[body]) <= 2 && is_cte(body))
            say(line_of[body], fn "(): CTE " s[body] ": name it for what it holds")
    }
    for (j = body; j <= n; j++) if (s[j] == "search_path") pinned = 1
    if (definer && !pinned) say(first, fn "(): SECURITY DEFINER: add `set search_path from current`")
    if (ins > 8 && !(fn in many_parameters))
        say(first, fn "(): " ins " parameters: at most 8, pass a composite type")
    if (last - first + 1 > 60) say(first, fn "(): " last - first + 1 " lines: at most 60, split it")
}
function is_cte(i,   d) {
    i++
    if (s[i] == "(") { for (d = 1; d && ++i <= n;) d += (s[i] == "(") - (s[i] == ")"); i++ }
    return s[i] == "as" && (s[i + 1] == "(" || s[i + 1] == "materialized" || s[i + 1] == "not")
}
function word(w) { s[++n] = tolower(w); line_of[n] = FNR; quote[n] = ntags }

FNR == 1 { n = 0; ntags = 0; in_string = 0; in_comment = 0 }
length($0) > 120 {
    header = FILENAME ~ /adapters\// && /^-- /
    say(FNR, length($0) " columns: at most 120" (header ? ", go on in a line that begins with `--   `" : ""))
}
# the columns of history are listed once
/insert into history \([^)]*[a-z]/ { say(FNR, "insert into history: take the columns from `-- part: history_columns`") }
{
    rest = $0
    while (rest != "") {
        if (in_comment) {
            if (!(i = index(rest, "*/"))) break
            in_comment = 0; rest = substr(rest, i + 2)
        } else if (in_string) {
            if (!(i = index(rest, "'"))) break
            in_string = 0; rest = substr(rest, i + 1)
        } else if (ntags > 1) { # a string in dollar quotes inside a body
            if (!(i = index(rest, tags[ntags]))) break
            rest = substr(rest, i + length(tags[ntags])); ntags--
        } else if (match(rest, /^[ \t]+/)) rest = substr(rest, RLENGTH + 1)
        else if (substr(rest, 1, 2) == "--") break
        else if (substr(rest, 1, 2) == "/*") { in_comment = 1; rest = substr(rest, 3) }
        else if (substr(rest, 1, 1) == "'") { in_string = 1; rest = substr(rest, 2) }
        else if (match(rest, /^\$[0-9]+/)) { word(substr(rest, 1, RLENGTH)); rest = substr(rest, RLENGTH + 1) }
        else if (match(rest, /^\$[A-Za-z_]*\$/)) {
            tag = substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 1)
            if (ntags && tag == tags[ntags]) ntags--
            else tags[++ntags] = tag
        } else if (match(rest, /^[A-Za-z_0-9]+/)) { word(substr(rest, 1, RLENGTH)); rest = substr(rest, RLENGTH + 1) }
        else {
            c = substr(rest, 1, 1); rest = substr(rest, 2); word(c)
            if (c == ";" && !ntags) { check(); n = 0 }
        }
    }
}
END {
    for (i = 1; i <= nmade; i++)
        if (!((made_file[i], made[i]) in commented))
            print made_file[i] ":" made_line[i] ": " made[i] "(): say what it does: comment on function"
}
