# shellcheck shell=bash
# What all parts of the bench share: the throwaway server, one database for each engine, running pgbench, and the raw
# figures. A raw figure is a line `part TAB row TAB engine TAB value`. Several lines with the same part, row and engine are
# its rounds, in order. table.sh makes medians and ratios of them.

# shellcheck disable=SC2034 # the parts use them
rounds=${ROUNDS:-3} secs=${SECONDS_EACH:-5} backlog=${BACKLOG:-1}
src=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck disable=SC2034
here=$src/tests/bench
cache=${XDG_CACHE_HOME:-$HOME/.cache}/queuetop-engines
BUILD=${BUILD:-$src/build}
QUEUETOP=${QUEUETOP:-$BUILD/queuetop}
bin=$(pg_config --bindir 2>/dev/null || true)
[ -x "$bin/initdb" ] || bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)
# shellcheck disable=SC2034
payload='{"user_id": 12345, "template": "welcome", "locale": "en"}'
dir=$(mktemp -d "${TMPDIR:-/tmp}/qbench.XXXXXX")
chmod 755 "$dir"
as=() clock=() # clock: a command under which the server and our programs run (long.sh)
if [ "$(id -u)" = 0 ]; then
    as=(runuser -u postgres --)
    chown postgres "$dir"
fi
declare -A skipped

say() { echo "bench: $*" >&2; }
figure() { # part, row, engine, value
    printf '%s\t%s\t%s\t%s\n' "$@" >>"$RAW"
    printf '  %-8s %-34s %-10s %12s\n' "$@"
}
fact() { printf 'fact\t%s\t-\t%s\n' "$1" "$2" >>"$RAW"; }
skip() { # engine, reason
    skipped[$1]=$2
    say "$1 is skipped: $2"
    printf 'skip\t%s\t-\t%s\n' "$1" "$2" >>"$RAW"
}
has() { [ -z "${skipped[$1]:-}" ]; }

finish() {
    slow_end
    stop_scheduler
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$dir"
}

start_server() {
    "${as[@]}" "$bin/initdb" -D "$dir/data" -A trust -U postgres --no-locale -E UTF8 >/dev/null
    "${as[@]}" tee -a "$dir/data/postgresql.conf" >/dev/null <<CONF
unix_socket_directories = '$dir'
listen_addresses = ''
fsync = on
synchronous_commit = on
shared_buffers = 2GB
max_wal_size = 16GB
checkpoint_timeout = 30min
jit = off
CONF
    run_server
    export PGHOST=$dir PGUSER=postgres PGOPTIONS='-c client_min_messages=warning'
    unset PGPORT PGDATABASE PGSERVICE PGPASSWORD
}

run_server() { "${as[@]}" "${clock[@]}" "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w start >/dev/null; }

has_scheduler() { [[ $(base "$1") =~ ^(ours|deferred)$ ]]; } # whether queuetop's scheduler runs beside it

# sql ENGINE [options of psql]. Variants of one engine share its database
base() { case $1 in insert | push | uncounted | both | none) echo ours ;; *) echo "$1" ;; esac; }
sql() {
    local d
    d=$(base "$1")
    shift
    psql -XAtq -v ON_ERROR_STOP=1 -d "$d" "$@"
}

# Runs a script for some seconds. It prints nothing, because the tps of pgbench count transactions that found no job, too.
bench() { # engine, script, clients, seconds, more of pgbench's options
    local e=$1 s=$2 c=$3 t=$4
    shift 4
    "${slow_join[@]}" "$bin/pgbench" -n -M prepared -f "$s" -c "$c" -j 1 -T "$t" "$@" "$(base "$e")" >"$dir/pgbench.out" 2>"$dir/pgbench.err" || {
        say "pgbench of $(basename "$s") failed: $(grep -m1 -i error "$dir/pgbench.err")"
        return 1
    }
}
tps() { sed -n 's/^tps = \([0-9]*\).*/\1/p' "$dir/pgbench.out"; }

# The real scheduler, started as a user starts it.
scheduler_pid=
start_scheduler() { # database (ours)
    [ -x "$QUEUETOP" ] || { say "$QUEUETOP is missing: make"; exit 1; }
    "${slow_join[@]}" "${clock[@]}" "$QUEUETOP" schedule "host=$dir user=postgres dbname=${1:-ours}" >>"$dir/schedule.log" 2>&1 &
    scheduler_pid=$!
}
stop_scheduler() {
    [ -n "$scheduler_pid" ] || return 0
    kill "$scheduler_pid" 2>/dev/null || true
    wait "$scheduler_pid" 2>/dev/null || true
    scheduler_pid=
}

# slow_down PERCENT [PROGRAMS]: from here on all processes of the server together get PERCENT of one core, before all other
# processes of the machine: by a cgroup, or, if none can be made, stopped and continued in turn. slow_join: a command that
# runs in the group. If stopped: the children of this bench with these names (a pattern) are, too. slow_end ends it.
slow_join=() slow_loop=''
slow_group=/sys/fs/cgroup$([ ! -d /sys/fs/cgroup/cpu ] || echo /cpu)/queuetop-bench-$$
slow_down() {
    local main p
    main=$(head -1 "$dir/data/postmaster.pid")
    if mkdir "$slow_group" 2>/dev/null && slow_limit "$1"; then
        for p in $main $(pgrep -P "$main"); do
            echo "$p" >"$slow_group/cgroup.procs" 2>/dev/null || true # it has just ended
        done
        # shellcheck disable=SC2016 # its own $0 and $$
        slow_join=(sh -c 'echo $$ >"$0" && exec "$@"' "$slow_group/cgroup.procs")
        slow_fact "$1 % of a core, by a cgroup"
    else
        rmdir "$slow_group" 2>/dev/null || true
        slow_stop "$main" "$1" "${2:-}" &
        slow_loop=$!
        slow_fact "$1 % of a core, stopped and continued"
    fi
}
slow_limit() { # percent
    if [ -e "$slow_group/cpu.max" ]; then
        echo "$(($1 * 1000)) 100000" >"$slow_group/cpu.max" && echo 10000 >"$slow_group/cpu.weight"
    else
        echo $(($1 * 1000)) >"$slow_group/cpu.cfs_quota_us" && echo 262144 >"$slow_group/cpu.shares"
    fi 2>/dev/null
}
slow_fact() { grep -q "slowed to:.*$1" "$RAW" 2>/dev/null || fact "slowed to:" "$1"; }
slow_all() { # the postmaster, programs: all that is slow if it is stopped
    echo "$1"
    pgrep -P "$1" || true
    [ -z "${2:-}" ] || pgrep -g 0 -x "$2" || true
}
slow_stop() { # the postmaster, percent, programs: all run for 10 ms of each 10 ms / PERCENT
    [ "$2" -lt 100 ] || return 0
    while kill -0 $$ 2>/dev/null; do
        # shellcheck disable=SC2046 # one word each
        kill -STOP $(slow_all "$1" "$3") 2>/dev/null || true
        sleep "$(awk -v p="$2" 'BEGIN { print 1 / p - 0.01 }')"
        # shellcheck disable=SC2046
        kill -CONT $(slow_all "$1" "$3") 2>/dev/null || true
        sleep 0.01
    done
}
slow_end() {
    local p
    if [ -n "$slow_loop" ]; then
        kill "$slow_loop" 2>/dev/null || true
        wait "$slow_loop" 2>/dev/null || true
        # shellcheck disable=SC2046
        kill -CONT $(slow_all "$(head -1 "$dir/data/postmaster.pid")" 'pgbench|queuetop') 2>/dev/null || true
    fi
    while [ -d "$slow_group" ] && ! rmdir "$slow_group" 2>/dev/null; do
        while read -r p; do
            echo "$p" >"${slow_group%/*}/cgroup.procs" 2>/dev/null || true
        done < <(cat "$slow_group/cgroup.procs" 2>/dev/null)
    done
    slow_loop='' slow_join=()
}

pages() { # engine: pages of its tables and indexes read so far. What a session reads is counted within a second
    sql "$1" -c "select sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0))
        from pg_statio_user_tables"
}
now() { # seconds of a clock that nobody can set
    local up
    read -r up _ </proc/uptime
    echo "$up"
}
per() { awk -v n="$1" -v s="$2" -v f="${3:-%.0f}" 'BEGIN { printf f, n / (s > 0 ? s : 1e-9) }'; }
quantile() { sort -n | awk -v q="$1" '{ v[NR] = $1 } END { if (NR) print v[int((NR - 1) * q) + 1]; else print 0 }'; }

facts() { # the machine and the versions of this run
    fact date "$(date +%Y-%m-%d)"
    fact machine "$(nproc) cores, $(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), disk $(disk)"
    fact system "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release 2>/dev/null || uname -sr)"
    fact versions "PostgreSQL $("$bin/postgres" --version | sed 's/.*) \([0-9.]*\).*/\1/')$(npm_version graphile-worker)$(npm_version pg-boss)$(node_version)$(pgq_version)"
    fact settings "fsync and synchronous_commit on, unix socket, shared_buffers 2 GB, jit off"
}
disk() { # the kind of the block device under the server
    local d
    d=$(lsblk -nro pkname,name,tran,rota "$(df --output=source "$dir" | tail -1)" 2>/dev/null | head -1 || true)
    case $(df --output=source "$dir" | tail -1) in
    /dev/vd*) echo virtio ;;
    /dev/nvme*) echo NVMe ;;
    tmpfs) echo "memory (tmpfs)" ;;
    *) case $d in *" 1") echo rotating ;; *) echo "$(df --output=source "$dir" | tail -1), solid state" ;; esac ;;
    esac
}
npm_version() { sed -n "s/^  \"version\": \"\(.*\)\",\{0,1\}$/, $1 \1/p" "$cache/npm/node_modules/$1/package.json" 2>/dev/null || true; }
node_version() { if command -v node >/dev/null; then echo ", node $(node --version | tr -d v)"; fi; }
pgq_version() { find "$cache" -maxdepth 2 -name '*pgq3_*.deb' | sort | tail -1 | sed 's/.*pgq3_\([0-9.]*\).*/, PgQ \1/'; }
rounds_of() { fact "$1:" "$rounds rounds of $secs s, backlog $backlog"; }
