#!/bin/sh
# make release: release.sh DIR puts into DIR the archive of the sources, the archive of the program (which make dist has made
# of the same commit), the formula and the spec that name both, and SHA256SUMS. SIGN=KEYID signs the sums with gpg. URL is the
# address of the archives; without it the formula and the spec name the folder.
set -eu
cd "$(dirname "$0")/../.."
out=$1
arch=$(uname -m)
binary=${out%/*}/queuetop-$VERSION-linux-$arch.tar.gz
give_up() {
    echo "make release: $1" >&2
    exit 1
}

[ -z "$(git status --porcelain)" ] || give_up 'there are changes that are not committed'
grep -q "^## $VERSION\$" CHANGELOG.md || give_up "CHANGELOG.md has no $VERSION"
grep -q "^queuetop ($VERSION-" ui/dist/debian/changelog || give_up "ui/dist/debian/changelog has no $VERSION"
commit=$(git log -1 --format=%ct)
[ -e "$binary" ] || give_up "there is no $binary: sudo make dist"
packed=$(TZ=UTC tar --full-time -tvf "$binary" | awk 'NR == 1 { print $4, $5 }')
[ "$packed" = "$(date -u -d "@$commit" '+%Y-%m-%d %H:%M:%S')" ] || give_up "$binary is of another commit: sudo make dist"

rm -rf "$out"
ui/dist/source.sh "$out" >/dev/null
cp "$binary" "$out/"
sum=$(sha256sum "$out/queuetop-$VERSION.tar.gz" | cut -d' ' -f1)
url=${URL:-file://$(cd "$out" && pwd)}
for f in brew/queuetop.rb rpm/queuetop.spec; do
    sed "s|@VERSION@|$VERSION|; s|@URL@|$url|; s|@SHA256@|$sum|" "ui/dist/$f.in" >"$out/${f##*/}"
done
cd "$out"
sha256sum -- * >SHA256SUMS.new
mv SHA256SUMS.new SHA256SUMS
if [ -n "${SIGN:-}" ]; then
    gpg --batch --yes --local-user "$SIGN" --armor --detach-sign SHA256SUMS
    gpg --batch --verify SHA256SUMS.asc SHA256SUMS
fi
cat SHA256SUMS
