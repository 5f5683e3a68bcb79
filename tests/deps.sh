#!/bin/sh
# Installs what building, testing and the demo need (`make deps`). Debian and Ubuntu only; elsewhere it
# names the pieces. Idea: nothing may run or stay after it, so the server package is kept from creating
# its usual cluster "main"; our tests and the demo make their own throwaway servers.
set -eu

if ! command -v apt-get >/dev/null; then
    cat >&2 <<'EOF'
make deps knows apt-get only. Install these with your package manager:
  a C compiler (gcc 12 or clang 14, or newer), GNU make, pkg-config, awk, bash
  headers of ncursesw, libpq and libuuid
  to test and for the demo: PostgreSQL server 13 or newer, cmocka, libvterm, pgbouncer, tmux
  to lint and analyze: clang, clang-format 14, clang-tidy, universal-ctags, shellcheck
  for screenshots: rsvg-convert, the fonts JetBrains Mono and DejaVu Sans Mono
EOF
    exit 1
fi

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

missing=
for p in $APT; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
if [ -z "$missing" ]; then
    echo "deps: all packages are installed"
    exit 0
fi

export DEBIAN_FRONTEND=noninteractive
conf=/etc/postgresql-common/createcluster.d/queuetop-deps.conf
no_cluster() {
    as_root mkdir -p "${conf%/*}"
    echo 'create_main_cluster = false' | as_root tee "$conf" >/dev/null
    trap 'as_root rm -f "$conf"' EXIT
    trap 'exit 1' HUP INT TERM
}

echo "deps: installing$missing"
as_root apt-get -q -y update
case " $missing " in
*" postgresql "*) no_cluster ;;
esac
# shellcheck disable=SC2086 # one word a package
as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $missing
