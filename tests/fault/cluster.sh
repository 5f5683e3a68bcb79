#!/bin/bash
# Makes a cluster: two PostgreSQL servers under patroni with one etcd; clients come through haproxy, or through the pgbouncer
# beside each server.
#   cluster.sh run COMMAND...   starts a cluster and the command; the whole cluster ends when the command ends
#   cluster.sh VERB             for the command: the functions do_VERB at the end
# Everything runs in namespaces of its own (processes, mounts, network), which unshare makes. When their first process ends, in
# whatever way, the kernel removes all of it: no server, mount, address or route can stay. The addresses exist only in these
# namespaces. The servers run as the system's user postgres. MODE=sync (or async) chooses the replication.
# Each node has a network namespace. etcd has an address of its own, so a node can lose its peers and keep its clients.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
hub=10.77.0.1 etcd=10.77.0.2
declare -A address=([a]=10.77.0.11 [b]=10.77.0.12)
MODE=${MODE:-sync}

skip() { # why: ends with the exit code of a skipped test; `make failover` shows the reason
    echo "failover: SKIPPED: $1" >&2
    exit 77
}

log() { # name of the log, command...: runs the command in the background, in a session of its own
    local file=$DIR/$1.log
    shift
    setsid "$@" >>"$file" 2>&1 </dev/null &
    disown # otherwise the shell reports how it ended
}

# the words before a command that has to run as the user of the servers
as_server=(setpriv --reuid postgres --regid postgres --clear-groups env -u TMPDIR "HOME=${DIR-}" "PATH=${bin-}:$PATH:/usr/sbin")
kv() { ETCDCTL_API=3 etcdctl --endpoints "http://$etcd:2379" "$@"; }
# prints the leader as etcd knows it: a, b, or nothing
leader() { kv get /service/queuetop/leader --print-value-only 2>/dev/null || :; }
other() { if [ "$1" = a ]; then echo b; else echo a; fi; }

wait_for() { # seconds, what, command...
    local until=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -gt $until ]; then
            echo "cluster: not in time: $what" >&2
            tail -n 30 "$DIR"/*.log >&2
            return 1
        fi
        sleep 0.1 # before it looks at the state again
    done
}

# --- the network -----------------------------------------------------------------------------------------------------

make_network() {
    local node
    ip link set lo up
    ip link add hub type bridge
    ip addr add "$hub/24" dev hub
    ip addr add "$etcd/24" dev hub
    ip link set hub up
    for node in a b; do
        ip netns add $node
        ip link add "to-$node" type veth peer name eth0 netns $node
        ip link set "to-$node" master hub up
        ip -n $node addr add "${address[$node]}/24" dev eth0
        ip -n $node link set lo up
        ip -n $node link set eth0 up
    done
}

# --- the disks -------------------------------------------------------------------------------------------------------

make_disks() { # two for each node, so that a test can fill the disk of the tables or that of the WAL
    local dir
    for dir in "$DIR"/{data,wal}-{a,b}; do
        mkdir "$dir"
        mount -t tmpfs -o size=512m disk "$dir"
    done
}

fill() { # data or wal: fills this disk of the leader
    local at
    at=$(leader)
    [ -n "$at" ] || return 1
    if cat /dev/zero >"$DIR/$1-$at/filler" 2>/dev/null; then return 1; fi
    [ -s "$DIR/$1-$at/filler" ]
}

# --- the programs ----------------------------------------------------------------------------------------------------

write_patroni() { # node
    cat >"$DIR/$1.yml" <<YML
scope: queuetop
name: $1
restapi: {listen: "${address[$1]}:8008", connect_address: "${address[$1]}:8008"}
etcd3: {hosts: "$etcd:2379"}
bootstrap:
  dcs:
    # the shortest time that patroni accepts
    ttl: 20
    loop_wait: 1
    retry_timeout: 3
    primary_start_timeout: 5
    master_start_timeout: 5
    maximum_lag_on_failover: 104857600
    synchronous_mode: $([ "$MODE" = sync ] && echo true || echo false)
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 100, wal_log_hints: "on", fsync: "off", wal_keep_size: 64MB, max_wal_size: 96MB,
                   wal_sender_timeout: 5s, wal_receiver_timeout: 5s}
  initdb: [{encoding: UTF8}, {locale: C}, {waldir: $DIR/wal-$1/wal}]
postgresql:
  listen: ${address[$1]}:5432
  connect_address: ${address[$1]}:5432
  data_dir: $DIR/data-$1/data
  bin_dir: $bin
  pgpass: $DIR/pgpass-$1
  authentication: {superuser: {username: postgres}, replication: {username: replicator}}
  basebackup: [{checkpoint: fast}, {waldir: $DIR/wal-$1/wal}]
  parameters: {unix_socket_directories: "$DIR/socket-$1"}
  pg_hba: [local all all trust, host all all 10.77.0.0/24 trust, host replication all 10.77.0.0/24 trust]
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
YML
}

write_bouncer() { # node
    cat >"$DIR/bouncer-$1.ini" <<INI
[databases]
pooled = host=$DIR/socket-$1 user=postgres dbname=app pool_mode=transaction
* = host=$DIR/socket-$1 user=postgres
[pgbouncer]
listen_addr = ${address[$1]}
listen_port = 6432
unix_socket_dir =
auth_type = any
pool_mode = session
default_pool_size = 60
server_login_retry = 1
INI
}

write_haproxy() {
    cat >"$DIR/haproxy.cfg" <<CFG
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    option clitcpka
    option srvtcpka
listen primary
    bind $hub:5000
    option httpchk GET /primary
    http-check expect status 200
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
    server a ${address[a]}:6432 check port 8008
    server b ${address[b]}:6432 check port 8008
CFG
}

start_node() { # node: starts its programs, as when its machine boots
    log "patroni-$1" nsenter --net="/run/netns/$1" "${as_server[@]}" patroni "$DIR/$1.yml"
}

start() {
    local node
    chmod 755 "$DIR"
    mkdir "$DIR/etcd"
    make_disks
    for node in a b; do
        mkdir "$DIR/socket-$node"
        write_patroni $node
        write_bouncer $node
    done
    write_haproxy
    chown -R postgres: "$DIR"
    log etcd "${as_server[@]}" etcd --name one --data-dir "$DIR/etcd" --unsafe-no-fsync --listen-client-urls "http://$etcd:2379" \
        --advertise-client-urls "http://$etcd:2379" --listen-peer-urls "http://$etcd:2380" \
        --initial-advertise-peer-urls "http://$etcd:2380" --initial-cluster "one=http://$etcd:2380"
    wait_for 60 'etcd answers' kv endpoint health
    for node in a b; do
        start_node $node
        log "bouncer-$node" nsenter --net=/run/netns/$node "${as_server[@]}" pgbouncer -q "$DIR/bouncer-$node.ini"
    done
    log haproxy "${as_server[@]}" haproxy -db -f "$DIR/haproxy.cfg"
    do_whole
}

# --- the verbs for the command --------------------------------------------------------------------------------------------

is_whole() {
    local at standby state
    at=$(leader)
    [ -n "$at" ] || return 1
    standby=$(other "$at")
    state=$("$bin/psql" -XAtqc "select count(*) from pg_stat_replication where state = 'streaming' and application_name = '$standby'
        and (sync_state in ('sync', 'quorum') or '$MODE' = 'async')" "host=${address[$at]} user=postgres dbname=postgres connect_timeout=2")
    [ "$state" = 1 ] || return 1
    # patroni promotes only the standby that this key names
    [ "$MODE" = async ] || kv get /service/queuetop/sync --print-value-only | grep -q "\"sync_standby\": *\"$standby\""
}
do_whole() { wait_for 180 'a leader, and a standby that follows' is_whole; } # waits until the cluster is complete
do_leader() { leader; }
do_address() { echo "${address[$1]}"; } # prints the address of node $1
do_proxy() { echo "$hub 5000"; }
ask_switch() { # from, to
    curl -sS -f -m 60 -d "{\"leader\": \"$1\", \"candidate\": \"$2\"}" "http://${address[$1]}:8008/switchover"
}
do_switch() { # a planned switchover; patroni rejects the request until it has seen that the other server can lead
    local at
    at=$(leader)
    wait_for 60 'patroni agrees to a switchover' ask_switch "$at" "$(other "$at")"
}
do_kill() { # kills the leader's patroni and all processes of its server with kill -9, as if the machine lost power
    local at
    at=$(leader)
    echo "$at" >"$DIR/down"
    for pid in $(ip netns pids "$at"); do
        if ! grep -q pgbouncer "/proc/$pid/comm" 2>/dev/null; then kill -9 "$pid" 2>/dev/null || :; fi
    done
}
do_cut() { # the leader loses etcd and the standby; its clients still reach it
    local at peer
    at=$(leader)
    echo "$at" >"$DIR/down"
    for peer in "$etcd" "${address[$(other "$at")]}"; do
        ip -n "$at" route add blackhole "$peer/32"
    done
}
do_vanish() { # pulls the leader's cable: no packet gets to it or from it, and nobody is notified
    leader >"$DIR/down"
    ip link set "to-$(<"$DIR/down")" down
}
do_full() { fill data; } # the leader's tables cannot grow
do_wal() { fill wal; } # the leader's server ends, because it cannot write WAL
do_room() { rm "$DIR"/*/filler; } # undoes do_full and do_wal
do_heal() { # undoes do_kill, do_cut and do_vanish
    local at
    at=$(<"$DIR/down")
    ip link set "to-$at" up
    ip -n "$at" route flush type blackhole
    [ -n "$(pgrep -f "patroni $DIR/$at.yml")" ] || start_node "$at"
    do_whole
}

# --- beginning -----------------------------------------------------------------------------------------------------------

find_bin() {
    local dir
    for dir in /usr/lib/postgresql/*/bin; do bin=$dir; done
    [ -x "${bin-}/postgres" ] || skip 'no PostgreSQL server in /usr/lib/postgresql'
}

case ${1-} in
run)
    shift
    [ "$(id -u)" = 0 ] || skip 'only root may make network namespaces'
    for program in etcd etcdctl patroni haproxy pgbouncer ip nsenter curl; do
        command -v $program >/dev/null || skip "$program is not installed: sudo make deps-failover"
    done
    find_bin
    unshare --net --mount --pid --fork --kill-child true 2>/dev/null || skip 'this machine lets nobody make namespaces'
    DIR=$(mktemp -d)
    trap 'rm -rf "$DIR"' EXIT
    export DIR bin MODE
    unshare --net --mount --pid --fork --kill-child --mount-proc "$here/cluster.sh" inside "$@"
    ;;
inside) # the first process of the namespaces
    shift
    mount -t tmpfs run /run # where names of network namespaces are kept
    make_network
    start
    status=0
    (cd "$DIR" && "$@") || status=$?
    if [ $status != 0 ]; then tail -n "${LINES_OF_LOGS:-15}" "$DIR"/*.log >&2; fi
    exit $status
    ;;
*)
    verb=$1
    shift
    "do_$verb" "$@"
    ;;
esac
