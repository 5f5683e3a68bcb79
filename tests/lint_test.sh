#!/bin/bash
# Plants a violation of each rule that tests/lint.sh has for comments, tables and sql/, in a tree of its own, and
# says which ones lint does not find. tests/lint.sh ends with it.
# shellcheck disable=SC2016 # what is planted is SQL, not shell
set -u
lint=$(cd "${0%/*}" && pwd)/lint.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{model/base,model/db,ui,tests,.ci,sql/core,sql/console,sql/client,sql/adapters}
cp .clang-format "$tree" 2>/dev/null
BUILD=$(cd "$BUILD" && pwd)
cd "$tree" || exit 1
touch Makefile README.md
printf 'May use: %s.\n- `gone.c`: no such file.\n' nothing >model/base/README.md
printf '%030d\n' {1..30} >model/db/README.md # no list of rooms
echo 'int homeless;' >model/homeless.c

cat >model/base/planted.h <<'EOF'
#ifndef MODEL_BASE_PLANTED_H
#define MODEL_BASE_PLANTED_H
enum planted { PLANTED_A, PLANTED_B, PLANTED_COUNT };
#endif
extern const char *const planted_names[PLANTED_COUNT];
EOF
cat >model/base/planted.c <<'EOF'
#include "model/base/planted.h"

#include "model/db/db.h"

/* --- broken
 * ---- */
/* As MISSING.md says. */
const char *home(void) { return getenv("PLANTED_HOME"); }
const char *const planted_names[PLANTED_COUNT] = {
    "a",
    "b",
};
EOF
wide=$(printf '%0121d' 0)
{
    echo "-- $wide"
    echo 'create function numbered(queue text) returns text language sql as $$ select $1 $$;'
    echo "comment on function numbered(text) is 'numbers its parameter';"
    echo 'create function lettered() returns int language sql as $$ with a as (select 1 as n) select n from a $$;'
    echo "comment on function lettered() is 'has a CTE of one letter';"
    echo 'create function unpinned() returns int language sql security definer as $$ select 1 $$;'
    echo "comment on function unpinned() is 'runs with the path of its caller';"
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

printf -- '-- note: %s\n--   %s\n' "$wide" x >sql/adapters/planted.sql
printf -- 'select 1 as n -- %s\n' "$wide" >sql/adapters/wide_sql.sql

found=$(PLANTED=1 "$lint" 2>/dev/null)
missed=0
expect() { # file, what lint says about it
    grep -qE "^$1:[0-9]+: .*$2" <<<"$found" && return
    echo "tests/lint_test.sh:1: lint does not find in $1: $2"
    missed=1
}
expect model/base/planted.h 'behind the include guard'
expect model/base/planted.c 'may not use this room'
expect model/db/README.md 'May use'
expect model/base/README.md 'gone.c is not there'
expect model/base/README.md 'say what is in planted.c'
expect model/homeless.c 'stands in no room'
expect model/base/planted.c 'banner'
expect model/base/planted.c 'not in the tree'
expect model/base/planted.c 'names each variable'
expect model/base/planted.c 'name the place of each row'
expect sql/core/planted.sql 'columns: at most 120'
expect sql/adapters/planted.sql 'columns: at most 120, go on'
expect sql/adapters/wide_sql.sql 'columns: at most 120'
expect sql/core/planted.sql 'numbered.*write the parameter'
expect sql/core/planted.sql 'lettered.*CTE a'
expect sql/core/planted.sql 'unpinned.*SECURITY DEFINER'
expect sql/core/planted.sql 'silent.*comment on function'
expect sql/core/planted.sql 'many.*9 parameters'
expect sql/core/planted.sql 'long.*63 lines'
if grep -q 'allowed()' <<<"$found"; then
    echo "tests/lint_test.sh:1: lint finds what is allowed: $(grep -m1 'allowed()' <<<"$found")"
    missed=1
fi
[ $missed = 0 ] && echo "lint: finds what is planted"
exit $missed
