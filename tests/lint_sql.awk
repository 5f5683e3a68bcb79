# The rules for sql/ that a machine can check. tests/lint.sh calls it with the files of sql/core, sql/console,
# sql/client and sql/adapters. Prints `file:line: what is wrong: what to do`. Strings and comments count only for
# the width of a line. A function's body in dollar quotes is code; a string in dollar quotes inside a body
# ($q$...$q$) is not.
BEGIN {
    # Public functions with many parameters, whose signature callers know. A new function takes a composite type instead.
    split("job_fault push_special push push_bytes push_text push_many complete_and_claim fail requeue_where release cancel_where " \
          "discard_where delete_where set_priority_where set_time_where change_preview " wide, name, " ")
    for (i in name) many_parameters[name[i]]
    # What push, claim and the answers call in other files
    split("leased_jobs ranges history_of own_id have_day scheduler_lock isolation_check still setting_int", hot, " ")
    for (i in hot) is_hot[hot[i]]
    # Words of the grammar that a bracket follows like a call
    split("coalesce greatest least nullif exists array any all extract row values operator", word_of, " ")
    for (i in word_of) is_grammar[word_of[i]]
}
function say(line, what) { print FILENAME ":" line ": " what }

# Called at the end of each statement. s has its words, line_of the line of each word, quote how many dollar quotes it is in.
function check(   i, j, depth, fn, params, named, ins, language, definer, pinned, first, last, sig_end, body, sees_server) {
    if (n > 2 && s[1] == "comment" && s[2] == "on" && s[3] == "function") { commented[FILENAME, s[4]]; is_made[s[4]] }
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
        if (s[j] == "search_path") { pinned = 1; sees_server = (s[j + 2] == "pg_catalog") }
    }
    for (body = j; body <= n; body++) {
        if (quote[body] == 1 && s[body] ~ /^\$[0-9]+$/ && named)
            say(line_of[body], fn "(): " s[body] ": write the parameter's name")
        if (quote[body] && (s[body - 1] == "with" || s[body - 1] == "recursive" || s[body - 1] == ",") &&
            s[body] ~ /^[a-z_0-9]+$/ && length(s[body]) <= 2 && is_cte(body))
            say(line_of[body], fn "(): CTE " s[body] ": name it for what it holds")
    }
    for (j = body; j <= n; j++) if (s[j] == "search_path") pinned = 1
    if (!sees_server && (FILENAME ~ /(30_push|50_claim|51_answer)[.]sql$/ || fn in is_hot))
        for (j = sig_end; j < n; j++)
            if (quote[j] && glued[j] && s[j - 1] != "." && !(s[j] in is_grammar) &&
                !(s[j] == "unnest" && has_comma(j + 1))) {
                called[++ncalled] = s[j]; called_at[ncalled] = FILENAME ":" line_of[j] ": " fn "(): "
            }
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
# Whether the bracket at i has several arguments. unnest() with several is part of the grammar, and always that of the server.
function has_comma(i,   d) {
    for (d = 0; i <= n; i++) {
        d += (s[i] ~ /^[[(]$/) - (s[i] ~ /^[])]$/)
        if (!d || d == 1 && s[i] == ",") return d
    }
}
function word(w) { s[++n] = tolower(w); line_of[n] = FNR; quote[n] = ntags; glued[n] = 0 }

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
        } else if (match(rest, /^[A-Za-z_0-9]+/)) {
            word(substr(rest, 1, RLENGTH)); rest = substr(rest, RLENGTH + 1); glued[n] = (substr(rest, 1, 1) == "(")
        } else {
            c = substr(rest, 1, 1); rest = substr(rest, 2); word(c)
            if (c == ";" && !ntags) { check(); n = 0 }
        }
    }
}
END {
    for (i = 1; i <= nmade; i++) is_made[made[i]]
    # No plan is made anew for a new function, so only_ours() can miss one of somebody else that fits a call better
    for (i = 1; i <= ncalled; i++)
        if (!(called[i] in is_made))
            print called_at[i] called[i] "(): a hot function names the schema of what it calls: pg_catalog." called[i]
    for (i = 1; i <= nmade; i++)
        if (!((made_file[i], made[i]) in commented))
            print made_file[i] ":" made_line[i] ": " made[i] "(): say what it does: comment on function"
}
