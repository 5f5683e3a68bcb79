#!/bin/sh
# make deb: the packages of the Debian that this machine runs, and their source package: deb.sh DIR builds in DIR.
# Needs debhelper, the Build-Depends of ui/dist/debian/control and lintian: sudo make deps-deb.
set -eu
out=$1
for program in dpkg-buildpackage dh lintian; do
    command -v $program >/dev/null || { echo "make deb: no $program: sudo make deps-deb" >&2; exit 1; }
done
rm -rf "$out"
tar=$("$(dirname "$0")/source.sh" "$out")
cd "$out"
mv "${tar##*/}" "queuetop_$VERSION.orig.tar.gz"
tar xf "queuetop_$VERSION.orig.tar.gz"
cd "queuetop-$VERSION"
cp -a ui/dist/debian debian
# the variables of the make that called us (BUILD, T, ...) must not reach the build of the package
env -u MAKEFLAGS -u MAKELEVEL -u BUILD -u T dpkg-buildpackage -us -uc
cd ..
lintian --fail-on error,warning ./*.changes
ls -l ./*.deb
