#!/bin/bash
# The rules of this code that a machine can check (`make lint`): rooms, banned calls, sizes, layout.
# Prints `file:line: what is wrong: what to do`. L=REGEX shows only findings in files that match.
# The Makefile sets BUILD, CC, CSTD (language flags) and SAN. Banned calls are searched in a copy of the
# sources without comments and without the text of strings.
set -u
export LC_ALL=C
eval "CFLAGS=($CSTD ${SAN:-})"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
mapfile -t code < <(find model ui -name '*.[ch]' | sort)
mapfile -t defs < <(find model ui -name '*.def' | sort)
mapfile -t tests < <(find tests -name '*.[ch]' | sort)
mapfile -t scripts < <(find tests .ci ui -type f \( -name '*.sh' -o -path .ci/run \) | sort)
mapfile -t text < <({ git ls-files -co --exclude-standard 2>/dev/null || find Makefile README.md docs ui model sql tests -type f; } |
    sort -u | while read -r f; do [ -f "$f" ] && echo "$f"; done | grep -Ev '\.(svg|png)$|^tests/(corpus|screens)/')
all=("${code[@]}" "${tests[@]}")
mapfile -t sql < <(find sql tests -name '*.sql' | sort)
mapfile -t engine < <(find sql/core sql/console sql/client sql/adapters -name '*.sql' | sort)

# reads lines of the form file:line:text, and reports each
say() { # what to do, exceptions as a regex of files
    awk -F: -v say="$1" -v ok="${2:-^$}" '$1 !~ ok { print $1 ":" $2 ": " say }' >>"$tmp/found"
}
# reports calls: what to do, regex of function names, regex of the file:function where they are allowed, files
calls() {
    local what=$1 names=$2 except=$3
    shift 3
    printf '%s\n' "$@" | awk -v re="(^|[^A-Za-z0-9_])($names) *[(]" -v say="$what" -v ok="${except:-^$}" '
        NR == FNR { wanted[$0]; next }
        {
            split($0, part, ":")
            s = $0; sub(/^[^:]*:[^:]*:[^:]*:/, "", s)
            if (!(part[1] in wanted) || part[1] ":" part[3] ~ ok || !match(s, re)) next
            f = substr(s, RSTART, RLENGTH); gsub(/[^A-Za-z0-9_]/, "", f)
            print part[1] ":" part[2] ": " f "(): " say
        }' - "$tmp/bare" >>"$tmp/found"
}

ctags -x --_xformat='%F %n %{end} %N %S' --kinds-C=f --fields=+neS "${all[@]}" | grep '^[^ ]*\.[ch] ' >"$tmp/functions"

# the sources without comments and strings, as file:line:function:code
awk -v list="$tmp/functions" '
BEGIN { while ((getline < list) > 0) for (i = $2; i <= $3; i++) owner[$1, i] = $4 }
FNR == 1 { in_comment = 0 }
{
    out = ""; n = length($0); quote = ""
    for (i = 1; i <= n; i++) {
        two = substr($0, i, 2); c = substr($0, i, 1)
        if (in_comment) { if (two == "*/") { in_comment = 0; i++ } continue }
        if (quote != "") { if (c == "\\") i++; else if (c == quote) { quote = ""; out = out c } continue }
        if (two == "/*") { in_comment = 1; i++; continue }
        if (two == "//") break
        if (c == "\"" || c == "\047") quote = c
        out = out c
    }
    print FILENAME ":" FNR ":" owner[FILENAME, FNR] ":" out
}' "${all[@]}" "${defs[@]}" >"$tmp/bare"
: >"$tmp/found"

# --- layers ------------------------------------------------------------------------------------------
grep -nE '#include *[<"](n?curses[a-z]*|panel|term)\.h' "${code[@]}" |
    grep -v '"ui/term/term\.h"' | say 'curses is known to ui/term/term.c only' '^ui/term/term[.]c$'
grep -nE '#include *[<"]libpq' "${code[@]}" |
    say 'libpq is known to db_private.h and rows.c of model/db only: go through db.h' '^model/db/(db_private[.]h|db[.]c|rows[.]c)$'
grep -nE '#include *"(model|ui)/[a-z_/]*_(private|parts)\.h"' "${code[@]}" | awk -F: '{
        family = $3; sub(/_(private|parts)\.h"$/, "", family); sub(/^.*"/, "", family)
        room = family; sub(/[^\/]*$/, "", room)
        if (index($1, family) != 1 && !(room ~ /^ui/ && index($1, room) == 1)) print
    }' | say 'a header of another file family: use its public one'
# A room may include itself and the rooms that its README names ("May use: model/base, model/db."). Only
# ui/main.c is in no room.
for f in model/*.[ch] ui/*.[ch]; do
    [ -f "$f" ] && [ "$f" != ui/main.c ] && echo "$f:1: stands in no room: put it into one of $(dirname "$f")/*/" >>"$tmp/found"
done
for d in model/*/ ui/*/; do
    d=${d%/}
    if ! may=$(tr '\n' ' ' <"$d/README.md" 2>/dev/null | grep -oE 'May use: [^.]*[.]'); then
        echo "$d/README.md:1: a room's README.md says \"May use: ROOM, ROOM.\", or nothing" >>"$tmp/found"
        continue
    fi
    [ "$(wc -l <"$d/README.md")" -le 25 ] || echo "$d/README.md:25: at most 25 lines" >>"$tmp/found"
    may=$(tr -d ' .' <<<"${may#May use: }" | tr ',' '|')
    compgen -G "$d/*.[ch]" >/dev/null || continue # ui/dist
    grep -HnoE '#include *"[^"]*"' "$d"/*.[ch] | grep -vE "\"(gen/|($d|$may)/[^/]*\"\$)" |
        say "$d may not use this room: see $d/README.md"
    # the README names each file (a header stands for its .c, too), and names no file that is not there
    grep -noE "\`[a-z_]+[.](c|h|def)\`" "$d/README.md" | tr -d '\140' >"$tmp/named"
    while IFS=: read -r n name; do
        [ -e "$d/$name" ] || grep -q "/$name" <<<"${all[*]} ${defs[*]}" || echo "$d/README.md:$n: $name is not there"
    done <"$tmp/named" >>"$tmp/found"
    for f in "$d"/*.c; do
        grep -qE ":$(basename "${f%c}")[ch]\$" "$tmp/named" || echo "$d/README.md:1: say what is in $(basename "$f")"
    done >>"$tmp/found"
done
grep -nE '#include *"tests/' "${code[@]}" | say 'the product never includes tests'
grep -nE '#include *"[^/"]*"' "${all[@]}" | say 'name the folder: "model/base/x.h", "tests/x.h"'
grep -nE '^ *#(if|ifdef|ifndef|elif) ' "${code[@]}" | grep '\.c:' | say 'no #if in .c files' '^ui/term/term[.]c$'
for f in "${code[@]}"; do
    h=${f%.c}.h
    [[ $f == *.c && -f $h ]] && grep -n '^#include' "$f" | head -1 | grep -v "\"$h\"" |
        sed "s|^|$f:|" | say 'include your own header first'
done

# --- banned calls and words ----------------------------------------------------------------------------
calls 'banned: use snprintf, memcpy, strtoll with an end check, posix_spawn' \
    'strn?cpy|strn?cat|v?sprintf|gets|strtok|ato[ifl]|atoll|v?f?scanf|v?sscanf|system|alloca|tmpnam|mktemp' '' "${all[@]}"
calls 'nothing sleeps: wait for an event with a deadline' 'u?sleep|nanosleep|clock_nanosleep|thrd_sleep' '' "${all[@]}"
calls 'blocks: use the PQsend family through db.h' \
    'PQ(exec|execParams|execPrepared|prepare|connectdb|connectdbParams|setdb|setdbLogin|reset|fn)' \
    '^model/db/db_calls[.]c:db_lend$' "${code[@]}"
calls 'values are parameters; only an adapter {schema} is quoted' 'PQescape[A-Za-z]*' \
    '^model/(adapter/sections|db/db)[.]c:' "${code[@]}"
calls 'blocks: only in a job for the helper thread, named *_work' 'PQcancel|getaddrinfo|gethostbyname' \
    '^model/db/db[a-z_]*[.]c:([a-z_]*_work|is_numeric)$' "${code[@]}"
calls 'the only threads are those of model/base/offload.c and of the callbacks' 'pthread_create|thrd_create' \
    '^model/(base/offload|worker/worker_call)[.]c:' "${code[@]}"
# the log asks whether it may write, and does not wait
calls 'one poll(), in model/base/loop.c' 'p?poll|p?select|epoll_p?wait' '^model/base/(loop[.]c:|log[.]c:write_line$)' "${code[@]}"
word='TO''DO|FIX''ME|XX''X|HA''CK'
grep -InwE "$word" "${text[@]}" | say 'finish it or open an issue; leave no marker'
grep -InE '^ *# *if 0' "${all[@]}" | say 'delete rather than disable'
grep -nE '(^|[^A-Za-z_-])u?sleep [0-9$]' "${scripts[@]}" | say 'tests never sleep' '^tests/(lint[.]sh$|fault/cluster[.]sh$|bench/)'
grep -nE 'printf[a-z_]* *\(.*"[^"]*\<(SELECT|INSERT|UPDATE|DELETE|CALL|SET|WHERE|NOTIFY)\>[^"]*%[^%]' "${code[@]}" |
    say 'nothing is printed into SQL: use numbered parameters'
grep -nE '"(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|CREATE|ALTER|DROP|LISTEN) ' "${code[@]}" |
    say 'SQL lives in sql/, one statement a file'
grep -InF -e "$PWD/" -e "/ro""ot/" "${text[@]}" | say 'a path of the build machine'
grep -nE "'[^' ]*[{]s[}]|[{]s[}][.][%']" "${defs[@]}" /dev/null |
    say 'in a text the schema is the first parameter, as text'
# what a node's state means is decided once
grep -nE 'strcmp\([^,]*state, "(up|asleep|late|draining|dead|unknown)"' "${code[@]}" | say 'ask node_state() of record.h'
grep -nE 'heartbeat.*[<>].*node_dead' "${engine[@]}" |
    say 'ask is_dead(), or take part node_is_dead' '/(00_schema|node_is_dead|uninstall_found)[.]sql$'

# --- comments and tables -----------------------------------------------------------------------------------
grep -nE '/\* --- ' "${all[@]}" | grep -vE '/\* --- .*-- \*/$|/\* --- .* --- \*/$' | say 'a banner stands on one line'
awk 'FNR == 1 { depth = 0 }
    /^#if/ { depth++ }
    depth == 0 && ended == FILENAME && NF { print FILENAME ":" FNR ":"; ended = "" }
    /^#endif/ && --depth == 0 { ended = FILENAME }' "${all[@]}" | grep '\.h:' |
    say 'behind the include guard: move it before the last #endif'
# a table with one row for each word of an enum: each row names its word
awk '/\[[A-Z][A-Z_]*(_COUNT|_TOTAL|_N|_NONE)\] = \{$/ { table = FILENAME ":" FNR; next }
    table != "" && !/^ *(\/\*|\*)/ { if ($0 !~ /^ *(\[|#include)/) print table ":"; table = "" }' "${code[@]}" |
    say 'name the place of each row: [ENUM_WORD] = {...}'
# a page that is named exists: below the root, beside the file, or in tests/bench
grep -noE '[A-Za-z0-9_./-]+\.md\>' "${all[@]}" "${sql[@]}" |
    while IFS=: read -r f n page; do
        page=${page#s/} # of "%s/README.md"
        [ -e "$page" ] || [ -e "${f%/*}/$page" ] || [ -e "tests/bench/$page" ] || echo "$f:$n:"
    done | say 'this page is not in the tree: say it here'
word='DECISIO''NS|PERFORMA''NCE|seeds/0''0[0-9]'
grep -nwE "$word" "${all[@]}" "${sql[@]}" | say 'this page is not in the tree: say it here'

# each variable of the environment is documented: in make help, queuetop(1) or tests/README.md
grep -noE '\<getenv\("[A-Za-z_]+"\)' "${all[@]}" | while IFS= read -r line; do
    name=${line#*getenv(\"}
    grep -qsE "(^#: |\`)${name%\")*}[^A-Za-z_]" Makefile docs/queuetop.1.md tests/README.md || echo "$line"
done | say 'make help, queuetop(1) or tests/README.md names each variable that is read'

# --- sql -------------------------------------------------------------------------------------------------
awk -f "${0%/*}/lint_sql.awk" "${engine[@]}" >>"$tmp/found"

# --- sizes -----------------------------------------------------------------------------------------------
for f in "${code[@]}"; do
    n=$(wc -l <"$f")
    [ "$n" -le 800 ] || echo "$f:800: $n lines: a file is one idea of at most 800 lines, split it" >>"$tmp/found"
done
n=$(wc -l <Makefile)
[ "$n" -le 300 ] || echo "Makefile:300: $n lines: at most 300" >>"$tmp/found"
awk -v list="$tmp/functions" '
BEGIN {
    while ((getline < list) > 0) {
        for (i = $2; i <= $3; i++) owner[$1, i] = $2
        name[$1, $2] = $4
        sig = $0; sub(/^[^(]*\(/, "", sig); depth = 0; commas = 0
        for (i = 1; i <= length(sig); i++) {
            c = substr(sig, i, 1)
            if (c == "(") depth++; else if (c == ")") depth--; else if (c == "," && depth == 0) commas++
        }
        # libmicrohttpd prescribes its parameters
        if ($1 == "ui/read/cli_http.c" && $4 == "on_request") continue
        if (commas > 5) print $1 ":" $2 ": " $4 "(): " commas + 1 " parameters: at most 6, pass a struct"
    }
}
FNR == 1 { table = 0 }
/^ +(static )?const .*= \{$/ { table = 1 }
{ if ((FILENAME, FNR) in owner && !table) lines[FILENAME, owner[FILENAME, FNR]]++ }
/^ +};$/ { table = 0 }
END {
    for (k in lines) if (lines[k] > 60) {
        split(k, part, SUBSEP)
        print part[1] ":" part[2] ": " name[k] "(): " lines[k] " lines: at most 60, split it"
    }
}' "${all[@]}" >>"$tmp/found"

# --- what the compiler and the linker say ------------------------------------------------------------------
for h in "${all[@]}"; do
    [[ $h == *.h ]] || continue
    printf '#include "%s"\n' "$h" >"$tmp/alone.c"
    $CC "${CFLAGS[@]}" -Wall -Wextra -Werror -fsyntax-only "$tmp/alone.c" 2>"$tmp/log" ||
        echo "$h:1: does not compile alone: $(grep -m1 error: "$tmp/log")" >>"$tmp/found"
done
echo 'int main(void) { return 0; }' >"$tmp/main.c"
links() { # what, file to blame, linker words...
    local what=$1 blame=$2
    shift 2
    $CC "${CFLAGS[@]}" -o "$tmp/linked" "$tmp/main.c" "$@" 2>"$tmp/log" && return
    { grep -oE "undefined reference to .*" "$tmp/log" || tail -1 "$tmp/log"; } | sort -u | head -5 |
        sed "s|^|$blame:1: $what: |" >>"$tmp/found"
}
links 'model must link without curses and ui' model -Wl,--whole-archive "$BUILD/libqueuetop.a" \
    -Wl,--no-whole-archive -lpq -luuid -lzstd -lpthread
mapfile -t pure < <(find ui/term ui/widget -name '*.c' ! -name term.c | sed "s|.*|$BUILD/obj/&|; s|c$|o|")
links 'ui/term without term.c, and ui/widget, must link without libpq and curses' ui "${pure[@]}" "$BUILD/libqueuetop.a" \
    -luuid -lzstd -lpthread -lm

# functions that no other file names, except those of queuetop.h, which programs call
nm -A --defined-only "$BUILD"/libqueuetop.a "$BUILD"/libui.a |
    awk -v bare="$tmp/bare" -v code="${code[*]}" '
    BEGIN {
        for (n = split(code, word, " "); n > 0; n--) {
            file = word[n]; sub(/.*[/]/, "", file)
            path[file] = word[n]
        }
        while ((getline line < bare) > 0) {
            n = split(line, part, ":"); file = part[1]
            s = line; sub(/^[^:]*:[^:]*:[^:]*:/, "", s)
            if (file ~ /[.]h$/ && file != "model/worker/queuetop.h") continue
            for (n = split(s, word, /[^A-Za-z0-9_]+/); n > 0; n--) {
                if (!((word[n], file) in seen)) files[word[n]]++
                seen[word[n], file] = 1
            }
        }
    }
    NF > 2 && $(NF - 1) == "T" && $NF !~ /^_/ && files[$NF] == 1 {
        split($1, part, ":"); file = part[2]; sub(/o$/, "c", file)
        print path[file] ":1: " $NF "(): only this file calls it: make it static, take it out of the header"
    }' >>"$tmp/found"

# --- layout --------------------------------------------------------------------------------------------------
if command -v clang-format >/dev/null; then
    clang-format --dry-run -Werror "${all[@]}" 2>&1 | grep -E '^[^ ]*: error' | sed 's/: error:.*//' |
        awk -F: '!seen[$1]++ { print $1 ":" $2 ": layout: run clang-format -i " $1 }' >>"$tmp/found"
else
    echo "Makefile:1: clang-format is missing: sudo make deps-dev" >>"$tmp/found"
fi
if command -v shellcheck >/dev/null; then
    shellcheck -f gcc "${scripts[@]}" >>"$tmp/found"
fi

grep -E "${L:-.}" "$tmp/found" | sort -t: -k1,1 -k2,2n | uniq >"$tmp/shown"
cat "$tmp/shown"
n=$(wc -l <"$tmp/shown")
if [ "$n" -gt 0 ]; then
    echo "lint: $n problems"
    exit 1
fi
echo "lint: clean"
[ -n "${L:-}${PLANTED:-}" ] || PLANTED=1 "${0%/*}/lint_test.sh"
