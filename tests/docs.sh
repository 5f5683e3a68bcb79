#!/bin/bash
# What README.md and the manual page say of verbs, options and keys comes from the program itself:
# this writes it anew between their markers. With --check it changes nothing and shows a difference.
# QUEUETOP is the program. A test runs it with --check.
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
            if ($i ~ /^[A-Z][A-Z,]*$/) {
                value = $i
                i++
            }
            help = ""
            for (; i <= NF; i++) help = help (help == "" ? "" : " ") $i
            print letter "|" name "|" value "|" help
        }'
}

# one paragraph a verb, its lines not longer than a screen of 100 columns
synopsis() {
    local v words
    for v in $(verbs); do
        words=$("$QUEUETOP" "$v" --help | sed -n '1s/^usage: queuetop [^ ]* \[options\] \[CONNINFO\] *//p')
        {
            echo "queuetop $v"
            case $words in -*) ;; ?*) echo "$words" ;; esac
            options "$v" | awk -F'|' '{ print "[--" $2 ($3 == "" ? "" : " " $3) "]" }'
            case $words in -*) echo "$words" ;; esac
        } | awk -v indent="$(printf '%*s' $((10 + ${#v})) '')" '
            NR == 1 { line = "    " $0; next }
            length(line " " $0) > 100 { print line; line = "    " indent $0; next }
            { line = line " " $0 }
            END { print line }'
    done
}

man_text() { sed 's/\\/\\e/g; s/-/\\-/g; s/^\([.'\'']\)/\\\&\1/'; }
man_options() {
    options "$@" | while IFS='|' read -r letter name value help; do
        echo .TP
        printf '\\fB%s\\-\\-%s\\fR%s\n' "${letter:+\\-$letter, }" "$(man_text <<<"$name")" "${value:+ \\fI$value\\fR}"
        man_text <<<"$help"
    done
}
man_verbs() {
    local v
    for v in $(verbs); do
        echo ".SS $v"
        "$QUEUETOP" "$v" --help | awk 'NR == 1 { sub(/^usage: /, ""); print; next } NF == 0 { exit } { print }' | man_text |
            sed '1s/.*/.B &\n.br/'
        man_options "$v"
        "$QUEUETOP" "$v" --help | awk '/^leaves out comes from/ { on = 1; getline; next } on' | man_text | sed '1i .PP'
    done
}
man_keys() {
    # a bar inside of a field is written \| there; it becomes a byte that no field holds while the fields are split
    # shellcheck disable=SC2016 # backquotes are meant
    "$QUEUETOP" --help-keys | sed -n 's/^\*\*\(.*\)\*\*$/.SS \1/p; s/\\|/\x01/g; s/^| *\([`:].*\|| *`:.*\)/\1/p' |
        sed '/^[.]SS/!{s/\\/\\e/g; s/-/\\-/g}' | awk -F' *[|] *' '
        /^[.]SS/ { print; next }
        {
            keys = $1 != "" ? $1 : $2 # a command without a key is called by its name
            gsub(/`/, "", keys)
            gsub(/\001/, "|", keys)
            gsub(/\001/, "|", $3)
            print ".TP\n.B \"" keys "\"\n" $3
        }'
}

# replaces what stands between two markers of a file
fill() { # file, marker as it stands there, end marker, new text
    FROM=$2 TO=$3 TEXT=$4 awk '
        $0 == ENVIRON["FROM"] { print; while ((getline line < ENVIRON["TEXT"]) > 0) print line; skip = 1; next }
        $0 == ENVIRON["TO"] { skip = 0 }
        !skip' "$tmp/$1" >"$tmp/new"
    mv "$tmp/new" "$tmp/$1"
}

cp README.md ui/dist/queuetop.1 "$tmp"
synopsis >"$tmp/synopsis"
"$QUEUETOP" --help-keys >"$tmp/keys"
man_verbs >"$tmp/man_verbs"
man_options "" >"$tmp/man_options"
man_options "" 'options of every verb' >"$tmp/man_every"
XDG_CONFIG_HOME=$tmp "$QUEUETOP" adapter list --markdown >"$tmp/adapters"
man_keys >"$tmp/man_keys"
fill README.md '<!-- verbs -->' '<!-- /verbs -->' "$tmp/synopsis"
fill README.md '<!-- keys -->' '<!-- /keys -->' "$tmp/keys"
fill README.md '<!-- adapters -->' '<!-- /adapters -->' "$tmp/adapters"
fill queuetop.1 '.\" every' '.\" /every' "$tmp/man_every"
fill queuetop.1 '.\" options' '.\" /options' "$tmp/man_options"
fill queuetop.1 '.\" verbs' '.\" /verbs' "$tmp/man_verbs"
fill queuetop.1 '.\" keys' '.\" /keys' "$tmp/man_keys"

status=0
for f in README.md ui/dist/queuetop.1; do
    if [ "${1:-}" = --check ]; then
        diff -u "$f" "$tmp/${f##*/}" || status=1
    else
        cat "$tmp/${f##*/}" >"$f"
    fi
done
[ $status = 0 ] || echo "run QUEUETOP=... tests/docs.sh to write them anew" >&2
exit $status
