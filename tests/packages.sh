#!/bin/bash
# Tries the packages in bare Debian systems (debootstrap), which have nothing else, with the mirror that apt of this machine
# uses. By hand, as root: tests/packages.sh [PART...]; ROOTS=DIR keeps the systems for the next run.
#   deb        make deb on bookworm and trixie; install, upgrade, systemd-analyze, autopkgtest, purge
#   services   the units with their sandboxes, under a systemd that systemd-nspawn boots; upgrade, removal
#   tarball    make dist, and the program in its archive on bullseye, bookworm and trixie against a server
#   release    make release with a signature; the formula as brew takes it; rpmlint, rpmspec and rpmbuild of the spec
#   container  every line of the Containerfile in bare systems, and the program as its user
#   readme     the two commands of README.md, as a user with sudo, on bookworm; T="test_x ..." picks the tests
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ui/dist/chroot.sh
. ui/dist/chroot.sh

failed=0
step() { # what, command...: one check; its output is shown if it fails
    local what=$1
    shift
    if "$@" >"$ROOTS/step.log" 2>&1; then
        echo "ok    $what"
    else
        failed=$((failed + 1))
        echo "FAIL  $what"
        tail -40 "$ROOTS/step.log"
    fi
}

# Runs a command in a terminal of 24 lines, waits until it has written the text, sends the keys, and waits until it ends.
on_terminal() { # folder, text, keys, command of a shell
    local root=$1 want=$2 keys=$3 seen='' part
    coproc within "$root" script -qefc "stty rows 24 cols 80; $4" /dev/null
    # shellcheck disable=SC2153 # made by coproc
    exec {from}<&"${COPROC[0]}" {to}>&"${COPROC[1]}"
    local pid=$COPROC_PID
    while [[ $seen != *"$want"* ]]; do
        if ! IFS= read -r -d '' -n 256 -t 600 -u "$from" part && [ -z "$part" ]; then
            printf '%s\n' "$seen" | tail -c 2000
            echo "no '$want' came"
            return 1
        fi
        seen+=$part
    done
    printf %s "$keys" >&"$to"
    cat <&"$from" >/dev/null
    exec {from}<&- {to}>&-
    wait "$pid"
}

source_tree() { # folder: a fresh checkout there
    mkdir -p "$1"
    git archive HEAD | tar x -C "$1"
}

# some fifteen tests of each level; together they need all packages that the tests need
selection='test_action test_adapter test_base test_checks test_child test_cli test_command test_db_fake test_filter
    test_fmt test_grid test_key test_loop test_store test_recording test_text
    test_acts test_claim test_client test_counters test_cut test_install test_lease test_push test_queues test_races
    test_release test_retry test_scheduler test_signal test_undo test_uninstall test_minion
    test_answers test_boxes test_check test_console test_copy test_demo test_ends test_evil test_keys test_library
    test_lost test_metrics test_pages test_pipe test_term test_verbs
    test_books test_calls test_crash test_db test_db_net test_doubt test_open_push test_orphans test_read_only test_run
    test_slow_line test_wait test_wake test_work test_models'
selection=${selection//$'\n'/ }

part_readme() {
    local root
    root=$(checkout bookworm readme sudo)
    echo 'dev ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/dev"
    step 'sudo make deps' as_dev "$root" 'sudo make deps'
    step 'make' as_dev "$root" 'make -j2'
    step 'make demo, to the first screen' on_terminal "$root" 'Queues' q \
        "su dev -c 'cd /home/dev/queuetop && make demo'"
    step 'sudo make deps-check' as_dev "$root" 'sudo make deps-check'
    step "make check T=\"${T:-...}\"" as_dev "$root" "make -j2 check T='${T:-$selection}'"
    tail -1 "$ROOTS/step.log"
}

# A system in which user dev has a fresh checkout in ~/queuetop.
checkout() { # suite, name, package...
    local root
    root=$(fresh "$1" "$2")
    add_packages "$root" make "${@:3}"
    within "$root" useradd -m -s /bin/bash dev
    source_tree "$root/home/dev/queuetop"
    within "$root" chown -R dev: /home/dev/queuetop
    echo "$root"
}
as_dev() { # folder, command of a shell, in the checkout
    within "$1" su - dev -c "cd queuetop && $2"
}

version=$(sed -n 's/^VERSION = //p' Makefile)

# debian/control and the Makefile name the packages that a build needs, each for itself.
try_deps() { # suite
    local root
    root=$(checkout "$1" "deb-deps-$1")
    step "$1: make deps-deb brings what make deb and make dist ask for" within "$root" sh -c \
        'cd /home/dev/queuetop && make deps-deb && dpkg-checkbuilddeps ui/dist/debian/control && command -v lintian && command -v debootstrap'
}
build_deb() { # suite: the packages into $ROOTS/debs-SUITE
    local root
    root=$(checkout "$1" "deb-build-$1" build-essential debhelper lintian)
    within "$root" sh -c 'mkdir /tmp/bd && cp -a /home/dev/queuetop/ui/dist/debian /tmp/bd/ &&
        apt-get -q -y --no-install-recommends build-dep /tmp/bd' >"$ROOTS/apt.log" 2>&1
    step "$1: make deb, lintian" as_dev "$root" 'make deb'
    grep -E '^[EWIPX]: ' "$ROOTS/step.log" || :
    rm -rf "$ROOTS/debs-$1"
    mkdir "$ROOTS/debs-$1"
    cp -a "$root/home/dev/queuetop/build/deb/." "$ROOTS/debs-$1"
}
older() { # folder with packages: makes older.deb, the same package with an older version
    rm -rf "$ROOTS/older"
    dpkg-deb -R "$1"/queuetop_"$version"-1_*.deb "$ROOTS/older"
    sed -i 's/^Version: .*/&~older/' "$ROOTS/older/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$ROOTS/older" "$1/older.deb"
}
# A script for the shell of the system: checks the installation.
# shellcheck disable=SC2016 # expanded there
installed='set -eux
    queuetop --version
    getent passwd queuetop | grep ":/var/lib/queuetop:"
    [ "$(stat -c %U:%a /var/lib/queuetop)" = queuetop:700 ]
    for unit in scheduler worker@ record metrics; do test -e /lib/systemd/system/queuetop-$unit.service; done
    [ -z "$(find /etc/systemd/system -name "queuetop*")" ]'
purged='set -eux
    find / -xdev -name "*queuetop*" -not -path "/proc/*" -not -path "/debs*" -not -path "/var/log/*" >/left
    cat /left
    [ ! -s /left ]'
# What systemd of this suite says about the units that are installed: no word, and less than 3 of 10 of exposure.
# shellcheck disable=SC2016 # expanded there
units='set -eux
    apt-get -q -y --no-install-recommends install systemd man-db
    for unit in scheduler worker@mails record metrics; do
        systemd-analyze verify queuetop-$unit.service 2>&1 | (! grep .)
        systemd-analyze security --offline=true --threshold=29 queuetop-$unit.service
    done'
part_deb() {
    local suite root
    for suite in ${SUITES:-bookworm trixie}; do
        try_deps "$suite"
        build_deb "$suite"
        older "$ROOTS/debs-$suite" >/dev/null
        root=$(fresh "$suite" "deb-try-$suite")
        cp -a "$ROOTS/debs-$suite" "$root/debs"
        add_packages "$root" autopkgtest ca-certificates
        local apt='apt-get -q -y --no-install-recommends'
        step "$suite: install an older version" within "$root" sh -c \
            "$apt install /debs/older.deb && $installed && echo '# mine' >>/etc/queuetop/queuetop.env"
        step "$suite: upgrade" within "$root" sh -c \
            "$apt install /debs/queuetop_$version-1_*.deb && $installed && tail -1 /etc/queuetop/queuetop.env | grep mine"
        step "$suite: systemd-analyze verify, security" within "$root" sh -c "$units"
        grep 'Overall exposure' "$ROOTS/step.log" || :
        step "$suite: autopkgtest" within "$root" sh -c \
            "autopkgtest /debs/*_$version-1_*.deb /debs/queuetop_$version-1.dsc -- null"
        step "$suite: remove and install again" within "$root" sh -c \
            "$apt remove queuetop && test -e /etc/queuetop/queuetop.env && $apt install /debs/queuetop_$version-1_*.deb && $installed"
        step "$suite: purge" within "$root" sh -c "$apt purge queuetop libqueuetop-dev && $purged"
    done
}

# --- services ------------------------------------------------------------------------------------------------------

# Runs in the booted system, as root, and turns it off.
# shellcheck disable=SC2016 # expanded there
service_day='#!/bin/bash
set -ex
trap "systemctl poweroff --no-block" EXIT
rm /usr/sbin/policy-rc.d
units="queuetop-scheduler queuetop-worker@mails queuetop-record queuetop-metrics"
systemctl start postgresql@15-main
PGPORT=$(pg_conftool -s 15 main show port) # another one than 5432 if that was taken on this machine
export PGPORT
su postgres -c "createdb app && queuetop install -d app &&
    psql -X -d app -c \"create role queuetop login in role queues_worker, queues_viewer\""
printf "%s\n" PGHOST=/run/postgresql PGPORT=$PGPORT PGDATABASE=app >/etc/queuetop/queuetop.env
printf "%s\n" "QUEUETOP_OPTIONS=--queues mails" \
    "QUEUETOP_COMMAND=sh -c \"id -un; pwd; touch here; cat\"" >/etc/queuetop/worker-mails.env
systemctl enable --now $units
id=$(su postgres -c "queuetop push mails --payload 17 -d app")
until su postgres -c "queuetop job $id -d app" | grep "^state  *completed"; do :; done
su postgres -c "queuetop job $id -d app" | grep -A3 result: | tr -d "\n" | grep "queuetop  /var/lib/queuetop-worker/mails  17"
scrape() { exec 3<>/dev/tcp/127.0.0.1/9187 && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3; }
until (scrape) | grep "^queuetop_up.* 1"; do :; done
until ls /var/lib/queuetop/record/record-20*; do :; done
for unit in $units; do
    systemctl is-active $unit
    systemd-analyze security --threshold=29 $unit | tail -1
done
scheduler=$(systemctl show -P MainPID queuetop-scheduler) worker=$(systemctl show -P MainPID queuetop-worker@mails)
recorded() { cat /var/lib/queuetop/record/* | wc -c; }
before=$(recorded)
dpkg --install /queuetop.deb
[ "$(systemctl show -P MainPID queuetop-scheduler)" != "$scheduler" ]
[ "$(systemctl show -P MainPID queuetop-worker@mails)" = "$worker" ]
for unit in $units; do systemctl is-active $unit; done
until [ "$(recorded)" -gt "$before" ]; do :; done
systemctl stop $units
for unit in $units; do [ "$(systemctl show -P Result $unit)" = success ]; done
systemctl start $units
dpkg --remove queuetop
systemctl list-units --plain --no-legend --state=active "queuetop-*" | (! grep .)
journalctl --no-pager -o cat -u "queuetop-*"
echo "all is well"'

# Boots the system in the folder `inner` of a system that has systemd-nspawn. It turns itself off at the end.
boot() { # folder
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --pid --fork --kill-child bash -c '
        root=$1
        mount --make-rprivate / && mount --bind "$root" "$root" && mount -t proc proc "$root/proc" &&
            mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/run" || exit 1
        mkdir -p "$root/old" && cd "$root" && pivot_root . old && umount -l /old || exit 1
        exec env -i PATH=/usr/sbin:/usr/bin SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=0 \
            timeout 900 systemd-nspawn --register=no --keep-unit --private-network --boot --directory /inner
    ' boot "$1" </dev/null
}
part_services() {
    local root
    [ -e "$ROOTS/debs-bookworm" ] || build_deb bookworm
    root=$(fresh bookworm services)
    add_packages "$root" systemd-container dbus
    fresh bookworm services/inner >/dev/null
    add_packages "$root/inner" systemd systemd-sysv dbus postgresql
    cp "$ROOTS/debs-bookworm/queuetop_$version-1_"*.deb "$root/inner/queuetop.deb"
    within "$root/inner" apt-get -q -y --no-install-recommends install /queuetop.deb >"$ROOTS/apt.log" 2>&1
    echo "$service_day" >"$root/inner/day"
    chmod 755 "$root/inner/day"
    printf '%s\n' '[Unit]' 'After=multi-user.target' '[Service]' 'Type=oneshot' 'ExecStart=/day' \
        'StandardOutput=file:/day.log' 'StandardError=inherit' >"$root/inner/etc/systemd/system/day.service"
    mkdir -p "$root/inner/etc/systemd/system/graphical.target.wants"
    ln -s ../day.service "$root/inner/etc/systemd/system/graphical.target.wants/"
    step 'systemd boots in a container' boot "$root"
    step 'services: a job, a scrape, a recording, an upgrade, a clean end, removal' sh -c \
        "cat '$root/inner/day.log'; grep -x 'all is well' '$root/inner/day.log'"
}

# --- archives ------------------------------------------------------------------------------------------------------

server='' there=() # the process of the server; the environment for programs that connect to it
# Starts a server with TLS and passwords on a free port of this machine, in a system of its own; it ends with this script.
start_server() {
    local root tls='-c ssl_cert_file=/etc/ssl/certs/ssl-cert-snakeoil.pem -c ssl_key_file=/etc/ssl/private/ssl-cert-snakeoil.key'
    [ -z "$server" ] || return 0
    port=$((20000 + RANDOM % 20000))
    while (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
    root=$(fresh bookworm server)
    add_packages "$root" postgresql
    there=(PGHOST=127.0.0.1 PGPORT="$port" PGUSER=postgres PGPASSWORD=secret PGSSLMODE=require XDG_CONFIG_HOME=/tmp)
    rm -f "$ROOTS/ready"
    mkfifo "$ROOTS/ready"
    within "$root" su postgres -c "
        cd /tmp && echo secret >pw && PATH=/usr/lib/postgresql/15/bin:\$PATH &&
        initdb -D data -A scram-sha-256 --pwfile=pw >/dev/null &&
        pg_ctl -D data -w -l log start >/dev/null -o '-p $port -c ssl=on -c unix_socket_directories=/tmp $tls' &&
        echo ready && exec tail -f /dev/null >/dev/null" >"$ROOTS/ready" 2>"$ROOTS/server.log" &
    server=$!
    # the server is a child of unshare; a signal to unshare does not reach it
    trap 'pkill -KILL -P "$server" || :; kill "$server" 2>/dev/null || :; wait; [ -n "${keep_roots:-}" ] || rm -rf --one-file-system "$ROOTS"' EXIT
    if ! read -r line <"$ROOTS/ready" || [ "$line" != ready ]; then
        tail -20 "$ROOTS/server.log" >&2
        return 1
    fi
}
new_database() { # name
    within "$ROOTS/server" env "${there[@]}" PGDATABASE=postgres createdb "$1"
}
# the verbs of a first day, with $1 as the program
# shellcheck disable=SC2016 # expanded there
first_day='set -eux
    "$1" --version
    "$1" install
    "$1" push smoke --payload "{\"a\": 1}"
    "$1" work --drain -- grep -x "{\"a\": 1}"
    "$1" push smoke --payload "{\"b\": 2}"
    "$1" queues
    "$1" queues | grep -E "^smoke "
    "$1" jobs --json | grep "\"queue\": \"smoke\""'

part_tarball() {
    local suite root name
    name=queuetop-$version-linux-$(uname -m)
    rm -rf "$ROOTS/out"
    step 'make dist' env VERSION="$version" SUDO_USER=nobody ui/dist/tarball.sh "$ROOTS/out"
    step 'make dist under sudo leaves nothing of root' sh -c "find '$ROOTS/out' ! -user nobody | (! grep .)"
    start_server
    for suite in bullseye bookworm trixie; do
        root=$(fresh "$suite" "tarball-$suite")
        mkdir "$root/opt/a place"
        tar xf "$ROOTS/out/$name.tar.gz" -C "$root/opt/a place"
        ln -s "/opt/a place/$name/bin/queuetop" "$root/usr/local/bin/queuetop"
        new_database "tarball_$suite"
        step "$suite: --version, install, push, work, queues" within "$root" env "${there[@]}" PGDATABASE="tarball_$suite" \
            sh -c "$first_day" day queuetop
        step "$suite: the console" on_terminal "$root" smoke q \
            "env ${there[*]} PGDATABASE=tarball_$suite queuetop"
        step "$suite: no library is the system's but those of the C library" within "$root" sh -c \
            "! ldd '/opt/a place/$name/bin/queuetop' | grep -vE 'linux-vdso|/opt/a place/|/lib(c|m|pthread|dl|rt|resolv)[.]so|ld-linux'"
    done
}

# what Debian calls the formulas that ours depends on
declare -A debian=([libmicrohttpd]=libmicrohttpd-dev [libpq]=libpq-dev [ncurses]=libncurses-dev [pkgconf]=pkg-config
    [util-linux]=uuid-dev [zstd]=libzstd-dev)
# There is no brew here: tests/formula.rb reads the formula, installs by it and runs its test, with what it depends on.
try_formula() {
    local root f packages=()
    root=$(fresh bookworm formula)
    add_packages "$root" build-essential ruby
    cp -a "$ROOTS/out/release" tests/formula.rb "$root/"
    step 'ruby -wc queuetop.rb' within "$root" ruby -wc /release/queuetop.rb
    for f in $(within "$root" ruby /formula.rb /release/queuetop.rb deps); do packages+=("${debian[$f]:-no-package-of-$f}"); done
    add_packages "$root" "${packages[@]}"
    step 'formula: checksum, install, test' within "$root" ruby /formula.rb /release/queuetop.rb install /opt/queuetop
}

part_release() {
    local root spec=queuetop.spec
    [ -e "$ROOTS/out/queuetop-$version-linux-$(uname -m).tar.gz" ] ||
        step 'make dist' env VERSION="$version" ui/dist/tarball.sh "$ROOTS/out"
    export GNUPGHOME=$ROOTS/gnupg
    rm -rf "$GNUPGHOME"
    mkdir -m 700 "$GNUPGHOME"
    step 'a key' gpg --batch --passphrase '' --quick-gen-key release@queuetop.invalid
    step 'make release, signed' env VERSION="$version" SIGN=release@queuetop.invalid ui/dist/release.sh "$ROOTS/out/release"
    gpgconf --kill all
    step 'sha256sum -c' sh -c "cd '$ROOTS/out/release' && sha256sum -c SHA256SUMS"

    try_formula

    root=$(fresh bookworm release)
    add_packages "$root" rpm rpmlint build-essential pkg-config libmicrohttpd-dev libncurses-dev libpq-dev libzstd-dev uuid-dev
    cp -a "$ROOTS/out/release" "$root/release"
    step 'rpmspec -P' within "$root" rpmspec -P "/release/$spec"
    step 'rpmlint' within "$root" rpmlint "/release/$spec"
    tail -3 "$ROOTS/step.log"
    # Debian has no rpm macros of systemd, and rpm finds no packages there for what the spec requires
    step 'rpmbuild' within "$root" rpmbuild -bb --nodeps -D '_topdir /rpm' -D '_sourcedir /release' -D 'sysusers_create() %{nil}' \
        -D '_unitdir /usr/lib/systemd/system' -D '_sysusersdir /usr/lib/sysusers.d' -D '_tmpfilesdir /usr/lib/tmpfiles.d' \
        -D 'tmpfiles_create() %{nil}' -D 'systemd_post() %{nil}' -D 'systemd_preun() %{nil}' \
        -D 'systemd_postun_with_restart() %{nil}' "/release/$spec"
    step 'the packages of rpm' within "$root" sh -c 'set -eux
        rpm -qlp /rpm/RPMS/*/queuetop-[0-9]*.rpm | grep -x /usr/bin/queuetop
        rpm -qlp /rpm/RPMS/*/queuetop-devel-*.rpm | grep "/libqueuetop.a$"'
}

# --- container -----------------------------------------------------------------------------------------------------

# Carries out the lines of ui/dist/Containerfile, as a builder of images does; a bare system takes the place of debian:SUITE-slim.
part_container() {
    local line root='' name suite dir=/ user=0 entry='' words from to f
    declare -A stage
    rm -rf "$ROOTS/context"
    source_tree "$ROOTS/context"
    while IFS= read -r line; do
        read -ra words <<<"$line"
        case ${words[0]} in
        FROM)
            suite=${words[1]#debian:}
            name=${words[3]:-last}
            root=$(fresh "${suite%-slim}" "container-$name")
            stage[$name]=$root
            dir=/ user=0
            ;;
        RUN) step "container: ${line:0:100}" within "$root" sh -c "cd $dir && ${line#RUN }" ;;
        WORKDIR)
            dir=${words[1]}
            mkdir -p "$root$dir"
            ;;
        COPY)
            from=$ROOTS/context
            [[ ${words[1]} != --from=* ]] || { from=${stage[${words[1]#--from=}]}; unset 'words[1]'; words=("${words[@]}"); }
            to=${words[-1]}
            [[ $to == /* ]] || to=$dir/$to
            for f in "${words[@]:1:${#words[@]}-2}"; do
                if [ -d "$from/$f" ]; then
                    mkdir -p "$root$to"
                    cp -a "$from/$f/." "$root$to"
                else
                    cp -a "$from/$f" "$root$to"
                fi
            done
            ;;
        USER) user=${words[1]%:*} ;;
        ENTRYPOINT) entry=${line//[^\/a-z]/} ;;
        ENV) ;;
        *) step "container: $line" false ;;
        esac
    done < <(sed -e ':a; /\\$/N; s/\\\n//; ta' -e '/^#/d; /^$/d; s/   */ /g' ui/dist/Containerfile)
    start_server
    new_database container
    # HOME comes from /etc/passwd of the image, as in container engines
    local home
    home=$(awk -F: -v user="$user" '$3 == user { print $6 }' "$root/etc/passwd")
    step 'container: its user, a first day; the program is process 1' within "$root" env "${there[@]}" HOME="$home" PGDATABASE=container \
        setpriv --reuid "$user" --regid "$user" --clear-groups sh -c "cd $dir && $first_day && touch written &&
            exec $entry work --max-idle 1ms -- true" day "$entry"
}

parts=("$@")
[ $# -gt 0 ] || parts=(deb services tarball release container readme)
for part in "${parts[@]}"; do
    echo "=== $part"
    "part_$part"
done
[ "$failed" = 0 ] || { echo "$failed failed"; exit 1; }
