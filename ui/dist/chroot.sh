# shellcheck shell=bash
# Sourced: bare Debian systems in folders, and commands inside them. Root only, because of chroot and mount.
# ROOTS is the folder that holds them. If the caller sets it, it is kept, and the next run fetches nothing;
# otherwise a temporary folder is used and removed at the end.

if [ "$(id -u)" != 0 ]; then
    echo "${0##*/}: only root can make a chroot: sudo $0" >&2
    exit 1
fi
for program in debootstrap unshare; do
    command -v $program >/dev/null || { echo "${0##*/}: $program is missing: apt install debootstrap util-linux" >&2; exit 1; }
done

# shellcheck disable=SC2034 # keep_roots is for traps of the caller
if [ -n "${ROOTS:-}" ]; then
    mkdir -p "$ROOTS"
    keep_roots=1
else
    ROOTS=$(mktemp -d /var/tmp/queuetop-roots.XXXXXX)
    keep_roots=
    trap 'rm -rf --one-file-system "$ROOTS"' EXIT
fi
trap 'exit 1' HUP INT TERM

# The mirror that apt of this machine uses, and its proxy. So this tree names no mirror.
# shellcheck disable=SC2016 # apt expands it
mirror() {
    apt-get indextargets --format '$(REPO_URI)|$(COMPONENT)' 'Created-By: Packages' | awk -F'|' '
        $2 == "main" && $1 !~ /security/ { print $1; found = 1; exit }
        END { exit !found }' || { echo "${0##*/}: apt has no mirror of Debian" >&2; return 1; }
}
proxy=$(apt-config shell p Acquire::http::Proxy | sed "s/^p='\(.*\)'$/\1/")
[ -z "$proxy" ] || export http_proxy=$proxy

# Makes the bare system of a suite, if it does not exist. Prints its folder.
bare() { # suite
    local dir=$ROOTS/bare-$1 from
    if [ ! -e "$dir/etc/debian_version" ]; then
        from=$(mirror) || return 1
        rm -rf --one-file-system "$dir.new"
        debootstrap --variant=minbase "$1" "$dir.new" "$from" >"$ROOTS/debootstrap.log" 2>&1 ||
            { tail -5 "$ROOTS/debootstrap.log" >&2; return 1; }
        echo 'Acquire::Retries "3";' >"$dir.new/etc/apt/apt.conf.d/retries"
        mv "$dir.new" "$dir"
    fi
    echo "$dir"
}
# Makes a copy of it to work in. Prints its folder.
fresh() { # suite, name
    local from dir=$ROOTS/$2
    from=$(bare "$1") || return 1
    rm -rf --one-file-system "$dir"
    mkdir "$dir"
    cp -a "$from/." "$dir"
    echo "$dir"
}

# Runs a command in a system, in namespaces for processes and mounts. They end with the command, in whatever way it ends.
# The environment is that of a new login.
within() { # folder, command...
    local root=$1
    shift
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --pid --fork --kill-child bash -c '
        root=$1; shift
        mount --make-rprivate /
        mount -t proc proc "$root/proc" && mount -t tmpfs tmpfs "$root/dev/shm" &&
            mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts" &&
            mount --bind "$root/dev/pts/ptmx" "$root/dev/ptmx" || exit 1
        cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null
        exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            TERM=xterm-256color LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} "$@"
    ' within "$root" "$@"
}
# Installs packages in a system and starts none of their services.
add_packages() { # folder, package...
    local root=$1
    shift
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    within "$root" sh -c 'apt-get -q update && apt-get -q -y --no-install-recommends install "$@"' apt "$@" \
        >"$ROOTS/apt.log" 2>&1 || { tail -5 "$ROOTS/apt.log" >&2; return 1; }
}
