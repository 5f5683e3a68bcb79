#!/bin/bash
# make dist, as root: tarball.sh DIR makes DIR/queuetop-VERSION-linux-ARCH.tar.gz, the program with its libraries for any
# Linux whose C library is at least as new as that of Debian 11, where everything is built. The program finds the libraries
# through $ORIGIN, wherever the archive is unpacked. libpq and OpenSSL, which talk to the database, are built from the sources
# of Debian 12: libpq of Debian 11 has no pipelines, and the authors of its OpenSSL no longer correct it.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=ui/dist/chroot.sh
. ui/dist/chroot.sh

out=$1
arch=$(uname -m)
name=queuetop-$VERSION-linux-$arch
log=$ROOTS/dist.log

# Makes the system in which everything is built, with the two libraries in /opt/carried.
prepare() {
    local root from
    root=$(fresh bullseye dist-new)
    from=$(mirror)
    add_packages "$root" build-essential ca-certificates patchelf pkg-config libmicrohttpd-dev libncurses-dev uuid-dev libzstd-dev
    echo "deb-src $from bookworm main" >"$root/etc/apt/sources.list.d/bookworm-src.list"
    # shellcheck disable=SC2016 # expanded there
    within "$root" sh -c '
        set -eux
        apt-get -q update
        mkdir /src && cd /src && chown _apt .
        apt-get -q source postgresql-15 openssl
        mkdir -p /opt/carried/licenses

        cd /src/openssl-*/
        ./config --prefix=/opt/carried --libdir=lib --openssldir=/etc/ssl no-tests no-module no-engine no-legacy
        make -s -j2 build_libs
        make -s install_dev
        cp debian/copyright /opt/carried/licenses/openssl

        cd /src/postgresql-15-*/
        # without GSSAPI and LDAP: their libraries read files of the system that differ between systems
        PKG_CONFIG_PATH=/opt/carried/lib/pkgconfig CPPFLAGS=-I/opt/carried/include LDFLAGS=-L/opt/carried/lib \
            LD_LIBRARY_PATH=/opt/carried/lib \
            ./configure --prefix=/opt/carried --with-ssl=openssl --without-readline --without-zlib
        make -s -C src/backend generated-headers
        for part in src/include src/common src/port src/interfaces/libpq; do make -s -j2 -C $part; done
        make -s -C src/include install
        make -s -C src/interfaces/libpq install
        cp COPYRIGHT /opt/carried/licenses/libpq
        rm -rf /src
    ' >"$log" 2>&1 || { tail -20 "$log" >&2; exit 1; }
    rm -rf --one-file-system "$ROOTS/dist"
    mv "$root" "$ROOTS/dist"
}

# Runs in that system: builds the sources in /build/src and makes the archive in /build/NAME.
# shellcheck disable=SC2016 # expanded there
build='
    set -eux
    name=$1
    cd /build/src
    export PKG_CONFIG_PATH=/opt/carried/lib/pkgconfig LD_LIBRARY_PATH=/opt/carried/lib
    make -s -j2 BUILD=/build/out all
    make -s BUILD=/build/out -o all install PREFIX=/usr DESTDIR=/build/root

    cd /build
    mkdir -p "$name/bin" "$name/lib" "$name/licenses"
    cp root/usr/bin/queuetop "$name/bin"
    cp -a root/usr/share "$name"
    mv "$name/share/doc/queuetop/LICENSE" "$name/share/doc/queuetop/CHANGELOG.md" "$name"
    # libraries that belong to the C library come from the system that runs the program
    ldd "$name/bin/queuetop" | awk "/=> \// { print \$3 }" |
        grep -vE "/(libc|libm|libpthread|libdl|librt|libresolv|libutil|libnsl|libanl)[.]so" |
        while read -r lib; do
            cp -L "$lib" "$name/lib/"
            case $lib in
            /opt/carried/*) ;;
            *)
                package=$(dpkg -S "$(readlink -f "$lib")" "$lib" 2>/dev/null | head -1 | cut -d: -f1)
                cp -L "/usr/share/doc/$package/copyright" "$name/licenses/$package"
                ;;
            esac
        done
    cp /opt/carried/licenses/* "$name/licenses/"
    cp -L /usr/share/common-licenses/LGPL-2.1 /usr/share/common-licenses/LGPL-3 /usr/share/common-licenses/GPL-2 \
        /usr/share/common-licenses/GPL-3 /usr/share/common-licenses/Apache-2.0 "$name/licenses/"
    chmod -R u+w,go=rX "$name"
    strip "$name/bin/queuetop" "$name"/lib/*
    patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$name/bin/queuetop"
    for lib in "$name"/lib/*; do patchelf --force-rpath --set-rpath "\$ORIGIN" "$lib"; done
    unset LD_LIBRARY_PATH
    # check: each library is in the archive or belongs to the C library
    ldd "$name/bin/queuetop"
    if ldd "$name/bin/queuetop" | grep -F "not found"; then exit 1; fi
    if ldd "$name/bin/queuetop" | awk "/=> \// { print \$3 }" | grep -v "^/build/$name/" |
        grep -vE "/(libc|libm|libpthread|libdl|librt|libresolv)[.]so"; then exit 1; fi
'

[ -d "$ROOTS/dist" ] || prepare
root=$ROOTS/dist
rm -rf --one-file-system "$root/build"
mkdir "$root/build"
ui/dist/source.sh "$root/build" >/dev/null
tar xf "$root/build/queuetop-$VERSION.tar.gz" -C "$root/build"
mv "$root/build/queuetop-$VERSION" "$root/build/src"
epoch=$(stat -c %Y "$root/build/src/Makefile")
within "$root" sh -c "$build" build "$name" >"$log" 2>&1 || { tail -20 "$log" >&2; exit 1; }

cat >"$root/build/$name/README" <<END
queuetop $VERSION for Linux on $arch, with the libraries that it needs, in lib/. Unpack it anywhere and run bin/queuetop, or
let a symbolic link lead there. The C library is the system's: 2.31 or newer, as in Debian 11, Ubuntu 20.04 or later.
libpq is built without GSSAPI and LDAP: passwords (SCRAM), certificates and peer work.
The licences of the libraries stand in licenses/. Pages for man(1): MANPATH=\$PWD/share/man man queuetop
Completion in this session of bash: source <(bin/queuetop completion bash); the files for bash, zsh and fish are in share/.
END
owned=("$out/$name.tar.gz")
[ -d "$out" ] || owned+=("$out")
mkdir -p "$out"
tar -c -C "$root/build" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner "$name" |
    gzip -9n >"$out/$name.tar.gz"
# what root made in the checkout of a user is the user's: make and make release write there, too
[ -z "${SUDO_USER:-}" ] || chown "$SUDO_USER:" "${owned[@]}"
ls -l "$out/$name.tar.gz"
