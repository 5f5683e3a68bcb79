#!/bin/sh
# Packs the sources: source.sh DIR makes DIR/queuetop-VERSION.tar.gz, the same bytes for the same commit.
set -eu
cd "$(dirname "$0")/../.."
out=$1
name=queuetop-$VERSION
mkdir -p "$out"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
trap 'exit 1' HUP INT TERM

if [ -e .git ] && command -v git >/dev/null; then
    git -c safe.directory="$PWD" ls-files | while IFS= read -r f; do [ ! -f "$f" ] || printf '%s\n' "$f"; done >"$list"
    epoch=${SOURCE_DATE_EPOCH:-$(git -c safe.directory="$PWD" log -1 --format=%ct)}
else # unpacked sources, not a clone
    find . \( -path ./build -o -path ./debian -o -path ./.git \) -prune -o -type f -print | sed 's|^\./||' >"$list"
    epoch=${SOURCE_DATE_EPOCH:-$(stat -c %Y CHANGELOG.md)}
fi
[ -s "$list" ]
LC_ALL=C sort "$list" | tar -c -T - --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX \
    --transform "flags=r;s|^|$name/|" | gzip -9n >"$out/$name.tar.gz"
echo "$out/$name.tar.gz"
