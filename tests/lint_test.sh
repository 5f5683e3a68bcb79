#!/bin/bash
# Plants a violation of each rule of tests/lint.sh and tests/lint_sql.awk, in a tree and a build folder of its own, and
# says which ones lint does not find. tests/lint.sh ends with it. A rule that lint.sh reports by say or calls must have
# its violation here: the texts of these rules are taken from lint.sh.
# shellcheck disable=SC2016 # what is planted is SQL, not shell
set -u
lint=$(cd "${0%/*}" && pwd)/lint.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{model/base,model/db,model/store,ui,tests,.ci,sql/core,sql/console,sql/client,sql/adapters} \
    "$tree"/build/obj/ui/{term,widget}
cp .clang-format "$tree" 2>/dev/null
cd "$tree" || exit 1
export BUILD=$tree/build
yes '#' | head -301 >Makefile
touch README.md

# rooms
printf 'May use: %s.\n- `gone.c`: no such file.\n' nothing >model/base/README.md
printf '%030d\n' {1..30} >model/db/README.md # no list of rooms
{ echo 'May use: nothing.'; printf '%d\n' {1..25}; } >model/store/README.md
echo 'int homeless;' >model/homeless.c

# C
cat >model/base/planted.h <<'END'
#ifndef MODEL_BASE_PLANTED_H
#define MODEL_BASE_PLANTED_H
enum planted { PLANTED_A, PLANTED_B, PLANTED_COUNT };
#endif
extern const char *const planted_names[PLANTED_COUNT];
END
cat >model/base/planted.c <<'END'
#include "model/base/planted.h"

#include <curses.h>
#include <libpq-fe.h>

#include "model/db/db.h"
#include "model/store/store_parts.h"
#include "planted.h"
#include "tests/harness.h"

#if 0
#endif

/* --- broken
 * ---- */
/* As MISSING.md says. */
const char *home(void) { return getenv("PLANTED_HOME"); }
const char *const planted_names[PLANTED_COUNT] = {
    "a",
    "b",
};
END
echo "SYMPTOM(planted, \"select format('{s}.%I', 1)\")" >model/base/planted.def
word='TO''DO' page='DECISIO''NS'
{
    printf '#include <stdio.h>\n#include "model/base/second.h"\n/* %s: %s */\n' "$word" "$page"
    echo 'void calls_all(void)'
    echo '{'
    printf '    %s;\n' 'strcpy(a, b)' 'usleep(1)' 'PQexec(a, b)' 'PQescapeLiteral(a, b, 1)' 'getaddrinfo(a)' 'pthread_create(a)' \
        'poll(a, 1, 1)' 'strcmp(n->state, "dead")' 'snprintf(a, 1, "UPDATE t SET a = %d", 1)' 'send("SELECT 1")'
    printf '}\nvoid seven(int a, int b, int c, int d, int e, int f, int g)\n{\n'
    for _ in $(seq 60); do echo '    a++;'; done
    echo '}'
} >model/base/second.c
echo 'int second;' >model/base/second.h
echo 'void alone(struct gone gone, missing_t missing);' >model/base/alone.h
yes '/* long */' | head -801 >model/base/big.c
printf '#!/bin/bash\nsleep %s\n# %s/path\necho $1\n' 1 "$tree" >tests/planted.sh

# what is linked: a model that needs curses, a widget that needs libpq, a function that only its own file calls
plant() { # object, C
    echo "$2" >"$tree/linked.c"
    ${CC:-cc} -c -o "$1" "$tree/linked.c"
}
plant planted.o 'int initscr(void); int home(void); int home(void) { return initscr(); }'
ar rc build/libqueuetop.a planted.o
mkdir -p ui/widget && echo 'int list(void);' >ui/widget/list.c
plant build/obj/ui/widget/list.o 'int PQexec(void); int list(void); int list(void) { return PQexec(); }'
ar rc build/libui.a build/obj/ui/widget/list.o
rm linked.c planted.o

# SQL
wide=$(printf '%0121d' 0)
{
    echo "-- $wide"
    echo 'create function numbered(queue text) returns text language sql as $$ select $1 $$;'
    echo "comment on function numbered(text) is 'numbers its parameter';"
    echo 'create function lettered() returns int language sql as $$ with a as (select 1 as n) select n from a $$;'
    echo "comment on function lettered() is 'has a CTE of one letter';"
    echo 'create function unpinned() returns int language sql security definer as $$ select 1 $$;'
    echo "comment on function unpinned() is 'runs with the path of its caller';"
    echo 'insert into history (id, created) values (null, null);'
    echo "select heartbeat < now() - setting_interval('node_dead') from node;"
    echo 'create function silent() returns int language sql as $$ select 1 $$;'
    echo 'create function many(a int, b int, c int, d int, e int, f int, g int, h int, i int) returns int'
    echo 'language sql as $$ select 1 $$;'
    echo "comment on function many(int) is 'has nine parameters';"
    echo 'create function long() returns int language plpgsql as $$'
    echo 'begin'
    for _ in $(seq 60); do echo '    perform 1;'; done
    echo 'end $$;'
    echo "comment on function long() is 'has 63 lines';"
    # what is allowed: a number in text that is executed, a string in dollar quotes, a CTE of three letters
    echo 'create function allowed(queue text) returns void language plpgsql as $$'
    echo 'begin'
    echo "    execute 'select \$1' using queue;"
    echo '    execute $q$ with a as (select $1) select 1 $q$ using queue;'
    echo '    with ids as (select 1) perform 1;'
    echo 'end $$;'
    echo "comment on function allowed(text) is 'breaks no rule';"
} >sql/core/planted.sql
{
    echo 'create function hot(seqs bigint[]) returns int language sql as'
    echo '$$ select cardinality(seqs) + own(seqs) + coalesce(pg_catalog.count(*), 1) from unnest(seqs, seqs) s $$;'
    echo "comment on function hot(bigint[]) is 'one call of four is wrong';"
    echo 'create function own(seqs bigint[]) returns int language sql set search_path = pg_catalog as'
    echo '$$ select cardinality(seqs) $$;'
    echo "comment on function own(bigint[]) is 'sees the server only';"
} >sql/core/50_claim.sql
printf -- '-- note: %s\n--   %s\n' "$wide" x >sql/adapters/planted.sql
printf -- 'select 1 as n -- %s\n' "$wide" >sql/adapters/wide_sql.sql

found=$(PLANTED=1 "$lint" 2>/dev/null)
missed=0
expect() { # file, what lint says about it
    grep -qE "^$1:[0-9]+: .*$2" <<<"$found" && return
    echo "tests/lint_test.sh:1: lint does not find in $1: $2"
    missed=1
}
while IFS= read -r rule; do
    grep -qF ": $rule" <<<"$found" && continue
    echo "tests/lint_test.sh:1: plant a violation of this rule, or lint does not find it: $rule"
    missed=1
done < <(grep -oE "\<(say|calls) '[^']+'" "$lint" | cut -d"'" -f2)
expect model/base/planted.c 'may not use this room'
expect model/db/README.md 'May use'
expect model/store/README.md 'at most 25 lines'
expect model/base/README.md 'gone.c is not there'
expect model/base/README.md 'say what is in planted.c'
expect model/homeless.c 'stands in no room'
expect model/base/planted.c 'not in the tree'
expect model/base/second.c 'not in the tree'
expect model/base/big.c '801 lines'
expect Makefile '301 lines'
expect model/base/second.c 'seven.*7 parameters'
expect model/base/second.c 'seven.*63 lines'
expect model/base/alone.h 'does not compile alone'
expect model 'must link without curses and ui'
expect ui 'must link without libpq and curses'
expect model/base/planted.c 'home.*only this file calls it'
expect model/base/planted.c 'layout'
if command -v shellcheck >/dev/null; then
    expect tests/planted.sh:4 'SC2086' # with its column
fi
expect sql/core/planted.sql 'columns: at most 120'
expect sql/adapters/planted.sql 'columns: at most 120, go on'
expect sql/adapters/wide_sql.sql 'columns: at most 120'
expect sql/core/50_claim.sql 'hot.*cardinality.*pg_catalog'
expect sql/core/planted.sql 'numbered.*write the parameter'
expect sql/core/planted.sql 'lettered.*CTE a'
expect sql/core/planted.sql 'unpinned.*SECURITY DEFINER'
expect sql/core/planted.sql 'insert into history: take'
expect sql/core/planted.sql 'silent.*comment on function'
expect sql/core/planted.sql 'many.*9 parameters'
expect sql/core/planted.sql 'long.*63 lines'
if grep -q 'allowed()' <<<"$found"; then
    echo "tests/lint_test.sh:1: lint finds what is allowed: $(grep -m1 'allowed()' <<<"$found")"
    missed=1
fi
[ $missed = 0 ] && echo "lint: finds what is planted"
exit $missed
