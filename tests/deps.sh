#!/bin/sh
# Installs the packages that the variable APT names (`make deps`, `deps-check`, `deps-dev`, `deps-engines`,
# `deps-failover`, `deps-deb`), on Debian and Ubuntu. On other systems it says what is needed. It leaves nothing
# running: tests and the demo start servers of their own, so the server package may not make its usual cluster "main",
# and no service is started or enabled.
set -eu

if ! command -v apt-get >/dev/null; then
    cat >&2 <<'EOF'
make deps knows apt-get only. Install these with your package manager:
  to build (deps): a C compiler (gcc 12 or clang 14, or newer), GNU make, pkg-config, awk; headers of ncursesw,
    libpq, libuuid, libzstd and libmicrohttpd; for the demo a PostgreSQL server 13 or newer
  to test (deps-check): bash, a C++ compiler, cmocka, libvterm, pgbouncer, tmux, openssl, man, spin,
    systemd-analyze
  to lint, analyze and draw screenshots (deps-dev): clang, clang-format 14, clang-tidy, universal-ctags, shellcheck,
    rsvg-convert, the fonts JetBrains Mono and DejaVu Sans Mono
  optional, to test against other queue systems, languages and servers (deps-engines): node 18 or newer, npm, Minion
    and Mojo::Pg (Perl), psycopg (Python), pg (Ruby); libfaketime, for the bench's change of day
  optional, to test failover (deps-failover): patroni, etcd 3.4 or newer, haproxy, pgbouncer, iproute2, curl
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
policy=/usr/sbin/policy-rc.d
put() { # file, text: if there is no such file, makes it; clean_up removes it
    [ ! -e "$1" ] || return 0
    as_root mkdir -p "${1%/*}"
    echo "$2" | as_root tee "$1" >/dev/null
    as_root chmod 755 "$1"
    ours="$ours $1"
}
ours=
clean_up() {
    for f in $ours; do
        as_root rm -f "$f"
    done
    as_root rmdir --ignore-fail-on-non-empty "${conf%/*}" 2>/dev/null || :
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

echo "deps: installing$missing"
as_root apt-get -q -y update
put "$conf" 'create_main_cluster = false'
put "$policy" "#!/bin/sh
exit 101"
# shellcheck disable=SC2086 # each package is a word
as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $missing
for p in $missing; do
    case $p in
    etcd-server) as_root update-rc.d etcd disable || : ;;
    haproxy | patroni | pgbouncer) as_root update-rc.d "$p" disable || : ;;
    esac
done
