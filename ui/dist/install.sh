#!/bin/sh
# make install and make uninstall (--remove): one list of what goes where. The Makefile sets BUILD, VERSION,
# PREFIX, LIBDIR (PREFIX/lib) and DESTDIR, which is put before every path.
set -eu
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

remove=${1:-}
put() { # mode, file, where to
    if [ -n "$remove" ]; then
        rm -f "$DESTDIR$3"
    else
        install -D -m "$1" "$2" "$DESTDIR$3"
    fi
}
# The library is one object in which only queuetop_* is visible, because a program may have functions with the same names as ours.
library() {
    ld -r -o "$tmp/library.o" --whole-archive "$BUILD/libqueuetop.a"
    objcopy --wildcard --keep-global-symbol='queuetop_*' "$tmp/library.o"
    ar rcsD "$tmp/libqueuetop.a" "$tmp/library.o"
    printf '%s\n' 'Name: queuetop' 'Description: job queue in PostgreSQL: push and work jobs' "Version: $VERSION" \
        'Requires: libpq uuid libzstd' "Cflags: -I$PREFIX/include" "Libs: -L$LIBDIR -lqueuetop -lpthread -lm" \
        >"$tmp/queuetop.pc"
}
[ -n "$remove" ] || library

put 755 "$BUILD/queuetop" "$PREFIX/bin/queuetop"
put 644 model/worker/queuetop.h "$PREFIX/include/queuetop.h"
put 644 "$tmp/libqueuetop.a" "$LIBDIR/libqueuetop.a"
put 644 "$tmp/queuetop.pc" "$LIBDIR/pkgconfig/queuetop.pc"

doc=$PREFIX/share/doc/queuetop
for f in LICENSE CHANGELOG.md tests/example.c tests/adapters/example_jobs.adapter.sql tests/adapters/example_jobs.sql \
    ui/dist/systemd/queuetop.env ui/dist/systemd/worker-NAME.env; do
    put 644 "$f" "$doc/${f##*/}"
done
for f in docs/monitoring/*; do
    put 644 "$f" "$doc/monitoring/${f##*/}"
done
for f in sql/client/*.sql; do
    put 644 "$f" "$doc/client/${f##*/}"
done
for dir in "$DESTDIR$doc/client" "$DESTDIR$doc/monitoring" "$DESTDIR$doc"; do
    [ -z "$remove" ] || [ ! -d "$dir" ] || rmdir --ignore-fail-on-non-empty "$dir"
done

for f in docs/*.[1-9].md; do
    page=${f##*/}
    page=${page%.md}
    [ -n "$remove" ] || gzip -9nc "$BUILD/man/$page" >"$tmp/$page.gz"
    put 644 "$tmp/$page.gz" "$PREFIX/share/man/man${page##*.}/$page.gz"
done

for f in ui/dist/systemd/*.service; do
    sed "s|/usr/bin/queuetop|$PREFIX/bin/queuetop|" "$f" >"$tmp/unit"
    put 644 "$tmp/unit" "$PREFIX/lib/systemd/system/${f##*/}"
done
put 644 ui/dist/systemd/sysusers.conf "$PREFIX/lib/sysusers.d/queuetop.conf"
put 644 ui/dist/systemd/tmpfiles.conf "$PREFIX/lib/tmpfiles.d/queuetop.conf"

completion() { # shell, where to
    [ -n "$remove" ] || "$BUILD/queuetop" completion "$1" >"$tmp/$1"
    put 644 "$tmp/$1" "$PREFIX/share/$2"
}
completion bash bash-completion/completions/queuetop
completion zsh zsh/site-functions/_queuetop
completion fish fish/vendor_completions.d/queuetop.fish
