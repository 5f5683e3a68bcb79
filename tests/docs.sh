#!/bin/bash
# shellcheck disable=SC2015,SC2016,SC2317 # backquotes are Markdown; part() calls the functions
# Writes the generated parts of docs/ and README.md: verbs, options, keys, words, sections of adapters, settings and functions.
# They come from the program, from an installed queue and from the tables of figures, and are put between the markers in the
# pages. With --check it changes nothing and shows the differences. QUEUETOP is the program, DSN a database with the queue.
# tests/e2e/test_pages.c runs it with --check; `make docs` runs it without.
set -eu
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

verbs() { "$QUEUETOP" --help | awk '/^verbs:/ { on = 1; next } on && NF == 0 { exit } on { print $1 }'; }

# the options of one verb ("" = the console), one a line: letter|name|value|help; or those below another heading
options() {
    "$QUEUETOP" ${1:+"$1"} --help | awk -v head="${2:-options}:" '
        $0 == head { on = 1; next }
        on && NF == 0 { exit }
        on {
            letter = name = value = ""
            i = 1
            if ($i ~ /^-.,$/) {
                letter = substr($i, 2, 1)
                i++
            }
            name = substr($i, 3)
            i++
            if ($i ~ /^\[?[A-Z][A-Z,]*\]?$/) {
                value = $i
                i++
            }
            help = ""
            for (; i <= NF; i++) help = help (help == "" ? "" : " ") $i
            print letter "|" name "|" value "|" help
        }'
}

# a paragraph for each verb; its lines are short enough for man on 80 columns
synopsis() {
    local v words
    echo
    for v in $(verbs); do
        words=$("$QUEUETOP" "$v" --help | sed -n '1s/^usage: queuetop [^ ]* \[options\] \[CONNINFO\] *//p')
        {
            echo "queuetop $v"
            case $words in -*) ;; ?*) echo "$words" ;; esac
            options "$v" | awk -F'|' '{ print "[--" $2 ($3 == "" ? "" : " " $3) "]" }'
            case $words in -*) echo "$words" ;; esac
        } | awk '
            NR == 1 { line = "    " $0; next }
            length(line " " $0) > 74 { print line; line = "            " $0; next }
            { line = line " " $0 }
            END { print line }'
    done
    echo
}

# escapes the characters that mean something in Markdown
text() { sed 's/[][*_`<|]/\\&/g'; }
option_table() {
    options "$@" >"$tmp/options"
    [ -s "$tmp/options" ] || return 0
    printf '\n%s\n%s\n' '| option | what it does |' '|---|---|'
    while IFS='|' read -r letter name value help; do
        # shellcheck disable=SC2016 # the backquotes are Markdown
        printf '| %s`--%s`%s | %s |\n' "${letter:+\`-$letter\`, }" "$name" "${value:+ *$value*}" "$(text <<<"$help")"
    done <"$tmp/options"
    echo
}
verb_parts() {
    local v
    echo
    for v in $(verbs); do
        printf '### %s\n\n' "$v"
        "$QUEUETOP" "$v" --help >"$tmp/help"
        sed -n '1s/^usage: /    /p' "$tmp/help"
        echo
        awk 'NR == 1 { next } NF == 0 { exit } { print }' "$tmp/help" | text
        option_table "$v"
        [ -s "$tmp/options" ] || echo
        awk '/leaves? out comes from/ { on = 1; getline; next } /^examples:$/ { exit } on' "$tmp/help" |
            sed -e '$ { /^$/d }' | text >"$tmp/rest"
        [ ! -s "$tmp/rest" ] || { cat "$tmp/rest"; echo; }
        printf 'Examples:\n\n'
        awk '/^examples:$/ { on = 1; next } on && NF == 0 { exit } on { sub(/^  /, "    "); print }' "$tmp/help"
        echo
    done
}
# the table of `queuetop help words`; its columns have two or more blanks between them
words() {
    echo
    "$QUEUETOP" help words | awk '
        /^$/ { table = 2 }
        !table { gsub(/  +/, " | "); print "| " $0 " |"; if (NR == 1) { gsub(/[^|]+/, "---"); print "|" $0 "---|" } next }
        /^  / { print "- " substr($0, 3); next }
        { print }' | sed -E 's/^\|([^|]*---)/|---/; /^\|(---\|)+---/s/.*/|---|---|---|---|---|---|---|---|---|/; s/([A-Za-z])_([a-z])/\1\\_\2/g' |
        awk '{ print } /ours:$/ { print "" }'
    echo
}
# `queuetop adapter sections`: a line for each section, its columns indented below it
sections() {
    printf '\n%s\n%s\n' '| section | what it does | columns |' '|---|---|---|'
    "$QUEUETOP" adapter sections | awk '
        /^Parameters/ { exit }
        function row() { if (name != "") print "| `" name "` | " what " | " columns " |"; name = "" }
        /^[a-z]/ { row(); name = $1; what = $0; sub(/^[a-z_]+ +/, "", what); columns = ""; next }
        /^ / { sub(/^ +/, ""); columns = columns (columns == "" ? "" : " ") $0 }
        END { row() }' | sed 's/acts: one row for each job that it changed/acts/'
    echo
}
parameters() {
    echo
    "$QUEUETOP" adapter sections | awk '/^Parameters/ { on = 1; next } on && NF == 0 { exit } on' |
        fold -s -w 70 | sed 's/^/    /; s/ *$//'
    echo
}

# `queuetop help conditions`: name, what has it, two limits, whether `check` has it, screen, words
conditions() {
    printf '\n%s\n%s\n' '| condition | of each | `▲`, WARNING above | `×`, CRITICAL above | `check` | alert leads to | what it is |' \
        '|---|---|---|---|---|---|---|'
    "$QUEUETOP" help conditions | awk 'NR > 1 { row = "| `" $1 "` |"
        for (i = 2; i <= 6; i++) row = row " " ($i == "-" ? "" : i == 6 ? "`" $i "`" : $i) " |"
        $1 = $2 = $3 = $4 = $5 = $6 = ""; sub(/^ +/, ""); print row " " $0 " |" }'
    echo
}

ask() { psql -X -q -At -v ON_ERROR_STOP=1 -d "$DSN" -c 'set search_path = queues, pg_catalog' -c "$1"; }
settings() {
    printf '\n%s\n%s\n' '| setting | value | standard | what it is |' '|---|---|---|---|'
    ask "select format('| \`%s\` | %s | %s | %s |', name, case kind when 'number' then low || ' to ' || high
                when 'time' then duration_text(make_interval(secs => low::float8)) || ' to ' ||
                                 duration_text(make_interval(secs => high::float8))
                when 'flag' then 'true, false' else kind end, coalesce(standard, 'none'), note) from setting_rules()"
    echo
}
limits() {
    printf '\n%s\n%s\n' '| name | value | what it is |' '|---|---|---|'
    ask "select format('| \`%s\` | %s | %s |', name, value, note) from setting"
    echo
}
# the functions that a role of ours may call and the role before it may not, with their arguments and comments
functions() { # role, an SQL condition on p
    printf '\n%s\n%s\n' '| function | what it does |' '|---|---|'
    ask "select format('| \`%s(%s)\` | %s |', proname,
            replace(replace(regexp_replace(regexp_replace(replace(pg_get_function_arguments(p.oid), 'INOUT ', ''),
                '(, |^)OUT .*', ''), ' DEFAULT (''[^'']*''|[^,:]+)(::[a-z ]+(\[\])?)?', ' = \1', 'g'),
                'timestamp with time zone', 'timestamptz'), '|', '\\|'),
            regexp_replace(coalesce(obj_description(p.oid, 'pg_proc'), ''), '([][*_|<\`])', '\\\\\1', 'g'))
        from pg_proc p
        where pronamespace = 'queues'::regnamespace and has_function_privilege('$1', p.oid, 'execute') and $2
        order by proname, p.oid::regprocedure::text collate \"C\""
    echo
}

# the words of make, from the head of the Makefile
knobs() {
    printf '\n%s\n%s\n' '| word | what it does |' '|---|---|'
    sed -n 's/^#: //p' Makefile | sed -E 's/^(([^ "]|"[^"]*")+) +(.*)/| `\1` | \3 |/'
    echo
}

# a sentence with the names of the systems that have an adapter; of the tables made by hand (..._table) it gives the number
systems() {
    echo
    XDG_CONFIG_HOME=$tmp "$QUEUETOP" adapter list --markdown | awk -F' *[|] *' '
        NR < 3 || $3 == "`native`" { next }
        $3 ~ /_table`/ { shapes++; next }
        { sub(/ *[(,].*/, "", $2); list = list (list == "" ? "" : ", ") $2 }
        END { print list ", and " shapes " shapes of tables made by hand." }' | fold -s -w 120 | sed 's/ *$//'
    echo
}

# five rows of the tables in tests/bench/README.md, for README.md
figures() {
    awk -F' *[|] *' '
        NF > 2 && $0 !~ /^[|]-/ && last !~ /^[|]/ { split($0, title, / *[|] */); columns = NF; table = $2 }
        { last = $0 }
        NF > 2 { for (i = 3; i < columns; i++) value[table, $2, title[i]] = $i; value[table, $2 ", " $3, "last"] = $5 }
        function row(what, table, at, ours) {
            printf "| %s | %s | %s | %s | %s |\n", what, value[table, at, ours], value[table, at, "plain table"],
                value[table, at, "graphile-worker"], value[table, at, "pg-boss"]
        }
        function held(engine) { return value["held for 45 s", "a repeatable-read snapshot, " engine, "last"] }
        END {
            print "\n| | this queue | plain table, `SKIP LOCKED` | graphile-worker | pg-boss |\n|---|---|---|---|---|"
            row("pushes a second, one at a time, 8 clients", "push, jobs/s", "1 at a time, 8 clients", "ours, INSERT")
            row("jobs a second, ten at a time, 4 clients", "claim + complete, jobs/s", "claim 10, complete 10, 4 clients", \
                "ours, complete_and_claim")
            row("jobs a second, 100 at a time, 2 clients", "claim + complete, jobs/s", "claim 100, complete 100, 2 clients", \
                "ours, complete_and_claim")
            printf "| jobs a second while a report holds a snapshot for 45 s | %s | %s | %s | %s |\n", \
                held("ours, complete_and_claim"), held("plain table"), held("graphile-worker"), held("pg-boss")
            row("ms from push to start at 100 jobs a second, p99", "push to start at 100 jobs/s", "p99 ms", "ours")
            print ""
        }' tests/bench/README.md
}

# replaces the text between two markers of a page
fill() { # page, marker, file with the new text
    grep -qx "<!-- $2 -->" "$tmp/$1" && grep -qx "<!-- /$2 -->" "$tmp/$1" || { echo "$1: no markers $2" >&2; exit 1; }
    FROM="<!-- $2 -->" TO="<!-- /$2 -->" TEXT=$3 awk '
        $0 == ENVIRON["FROM"] { print; while ((getline line < ENVIRON["TEXT"]) > 0) print line; skip = 1; next }
        $0 == ENVIRON["TO"] { skip = 0 }
        !skip' "$tmp/$1" >"$tmp/new"
    mv "$tmp/new" "$tmp/$1"
}
path() {
    case $1 in
    README.md) echo README.md ;;
    CONTRIBUTING) echo tests/README.md ;;
    *) echo "docs/$1" ;;
    esac
}
part() { # page, marker, command...: its output is the new text
    local page=$1 marker=$2
    shift 2
    [ -s "$tmp/$page" ] || cp "$(path "$page")" "$tmp/$page"
    "$@" >"$tmp/part"
    fill "$page" "$marker" "$tmp/part"
}

part queuetop.1.md synopsis synopsis
part queuetop.1.md every option_table '' 'options of every verb'
part queuetop.1.md options option_table ''
part queuetop.1.md verbs verb_parts
part queuetop.1.md keys "$QUEUETOP" --help-keys
part queuetop-console.7.md words words
part queuetop-adapter.5.md adapters env XDG_CONFIG_HOME="$tmp" "$QUEUETOP" adapter list --markdown
part queuetop-adapter.5.md sections sections
part queuetop-adapter.5.md parameters parameters
part queuetop-engine.7.md settings settings
part queuetop-engine.7.md limits limits
part queuetop-engine.7.md worker functions queues_worker true
part queuetop-engine.7.md operator functions queues_operator \
    "not has_function_privilege('queues_viewer', p.oid, 'execute')"
part queuetop-engine.7.md viewer functions queues_viewer true
part queuetop-operations.7.md conditions conditions

part CONTRIBUTING knobs knobs
part README.md systems systems
part README.md figures figures

status=0
for f in "$tmp"/*.md "$tmp/CONTRIBUTING"; do
    page=$(path "${f##*/}")
    if [ "${1:-}" = --check ]; then
        diff -u "$page" "$f" || status=1
    else
        cat "$f" >"$page"
    fi
done
[ $status = 0 ] || echo "the program says something else: make docs writes the pages anew" >&2
exit $status
