#!/bin/bash
# Fetches the programs that the bench compares with into a cache of its own, outside the tree
# ($XDG_CACHE_HOME/queuetop-bench): nothing is installed in the system, and removing the directory removes all.
#   graphile-worker and pg-boss by npm, PgQ out of Debian's package for the server found.
# What can't be had is said, with its reason, in the file `skipped` there: the bench reports it and goes on.
set -euo pipefail

GRAPHILE=0.17.3 # runs on node 14 and newer; 0.18 wants 22.18
BOSS=10.4.2     # runs on node 20 and newer; 12 wants 22.12
cache=${XDG_CACHE_HOME:-$HOME/.cache}/queuetop-bench
mkdir -p "$cache/npm"
: >"$cache/skipped"

skip() { # peer, reason
    echo "bench: $1 is skipped: $2" >&2
    printf '%s\t%s\n' "$1" "$2" >>"$cache/skipped"
}

package() { # npm package, version, peer, oldest node
    local node
    if ! node=$(node --version 2>/dev/null); then
        skip "$3" "node is missing ($1 $2 wants node $4 or newer, and npm)"
        return
    fi
    node=${node#v}
    if [ "${node%%.*}" -lt "$4" ]; then
        skip "$3" "$1 $2 wants node $4 or newer, found $node"
    elif [ "$(sed -n 's/^  "version": "\(.*\)",\{0,1\}$/\1/p' "$cache/npm/node_modules/$1/package.json" 2>/dev/null)" != "$2" ]; then
        echo "bench: fetching $1 $2 with npm into $cache/npm"
        [ -e "$cache/npm/package.json" ] || echo '{"private": true}' >"$cache/npm/package.json"
        (cd "$cache/npm" && npm install --no-audit --no-fund --ignore-scripts --loglevel=error "$1@$2") >"$cache/npm.log" 2>&1 ||
            skip "$3" "npm could not install $1 $2: $(tail -1 "$cache/npm.log")"
    fi
}

package graphile-worker $GRAPHILE graphile 14
package pg-boss $BOSS pgboss 20

bin=$(pg_config --bindir 2>/dev/null || true)
[ -x "$bin/postgres" ] || bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)
major=$("$bin/postgres" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
if [ ! -e "$cache/pgq-$major/root" ]; then
    mkdir -p "$cache/pgq-$major"
    echo "bench: fetching postgresql-$major-pgq3 with apt-get into $cache/pgq-$major (unpacked there, not installed)"
    if ! command -v apt-get >/dev/null; then
        skip pgq "PgQ is taken out of Debian's package, and there is no apt-get"
    elif ! (cd "$cache/pgq-$major" && apt-get -q download "postgresql-$major-pgq3") >"$cache/pgq.log" 2>&1; then
        skip pgq "apt-get download postgresql-$major-pgq3: $(tail -1 "$cache/pgq.log") (apt-get update?)"
    else
        dpkg -x "$cache/pgq-$major"/*.deb "$cache/pgq-$major/root"
    fi
fi
