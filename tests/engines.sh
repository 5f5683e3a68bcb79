#!/bin/bash
# Fetches other queue systems, for the tests of their adapters and for the bench, into a cache of its own
# ($XDG_CACHE_HOME/queuetop-engines): nothing is installed in the system, and removing the directory removes all.
#   npm: graphile-worker and pg-boss that run on node 18 (Debian 12's); npm-37: pg-boss with schema 37; npm-new: the
#   newest that were tried
#   pgq-N: PgQ out of Debian's package for the server found, unpacked
# The file `skipped` there lists the systems that could not be fetched, with the reason. Tests and bench report them and go on.
set -euo pipefail

# The package files of the newest versions require node 22; loaded by import(), they run on node 18, too.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/queuetop-engines
mkdir -p "$cache"
exec 9>"$cache/lock" # if two benches begin at the same time, one fetches and the other waits
flock 9
: >"$cache/skipped.new"

skip() { # engine, reason
    echo "engines: $1 is skipped: $2" >&2
    printf '%s\t%s\n' "$1" "$2" >>"$cache/skipped.new"
}

package() { # directory, npm package, version, engine
    local dir=$cache/$1 node
    if ! node=$(node --version 2>/dev/null) || ! command -v npm >/dev/null; then
        skip "$4" "node or npm is missing ($2 $3)"
        return
    fi
    node=${node#v}
    if [ "${node%%.*}" -lt 18 ]; then
        skip "$4" "$2 $3 wants node 18 or newer, found $node"
    elif [ "$(sed -n 's/^  "version": "\(.*\)",\{0,1\}$/\1/p' "$dir/node_modules/$2/package.json" 2>/dev/null)" != "$3" ]; then
        echo "engines: fetching $2 $3 with npm into $dir"
        mkdir -p "$dir"
        [ -e "$dir/package.json" ] || echo '{"private": true}' >"$dir/package.json"
        if ! (cd "$dir" && npm install --no-audit --no-fund --ignore-scripts --loglevel=error --fetch-retries=1 "$2@$3") >"$cache/npm.log" 2>&1; then
            skip "$4" "npm could not install $2 $3: $(tail -1 "$cache/npm.log")"
        fi
    fi
}

package npm graphile-worker 0.17.3 graphile
package npm pg-boss 10.4.2 pgboss
package npm-new graphile-worker 0.18.0 graphile-new
package npm-37 pg-boss 12.27.0 pgboss-37
package npm-new pg-boss 12.38.0 pgboss-new

download() { # Debian package, into this directory
    apt-get -q download "$1" && return
    [ "$(id -u)" = 0 ] && apt-get -q update && apt-get -q download "$1"
}

bin=$(pg_config --bindir 2>/dev/null || true)
[ -x "$bin/postgres" ] || bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)
major=$("$bin/postgres" --version 2>/dev/null | sed 's/[^0-9]*\([0-9]*\).*/\1/')
if [ -z "$major" ]; then
    skip pgq "no PostgreSQL server was found"
elif [ ! -e "$cache/pgq-$major/root" ]; then
    mkdir -p "$cache/pgq-$major"
    echo "engines: fetching postgresql-$major-pgq3 with apt-get into $cache/pgq-$major (unpacked there, not installed)"
    if ! command -v apt-get >/dev/null; then
        skip pgq "PgQ is taken out of Debian's package, and there is no apt-get"
    elif ! (cd "$cache/pgq-$major" && download "postgresql-$major-pgq3") >"$cache/pgq.log" 2>&1; then
        skip pgq "apt-get download postgresql-$major-pgq3: $(tail -1 "$cache/pgq.log") (apt-get update?)"
    else
        dpkg -x "$cache/pgq-$major"/*.deb "$cache/pgq-$major/root"
    fi
fi
mv "$cache/skipped.new" "$cache/skipped"
