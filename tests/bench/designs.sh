# shellcheck shell=bash disable=SC2154
# designs: claim and complete of ours beside designs that were not taken (designs/*.sql, DESIGNS.md), with the shapes of work.sh.
# Beside the workers of such a design runs a loop of pgbench: the scheduler of the prototype, or the loop of `deferred` that
# moves finished jobs into history.

setup_deferred() {
    setup_ours deferred
    sql deferred <"$here/designs/deferred.sql"
    local n
    for n in 1 10 50 100; do
        sed 's/complete_and_claim(\(.*\), null, null, \([0-9]*\)) where outcome is null/defer_and_claim(\1, \2)/' "$dir/both.claim.$n" >"$dir/deferred.claim.$n"
        : >"$dir/deferred.done.$n"
    done
    printf 'select queues.move_done(400);\n\\sleep 5 ms\n' >"$dir/deferred.beside"
}

setup_prototype() {
    sql prototype <"$here/designs/prototype.sql"
    local n
    for n in 1 10 50 100; do
        cat >"$dir/prototype.claim.$n" <<'SQL'
with c as (select lease from prototype.work where lease > :cur and lock_key is null order by lease limit 1 for update skip locked), u as (update prototype.work w set lock_key = :client_id::text, lock_timeout = now() + '30 s', started = now(), version = version + 1 from c where w.lease = c.lease returning w.*), k as (select u.lease, j.seq, j.payload from u join prototype.job j on j.queue = u.queue and j.priority = u.priority and j.state = 0 and j.seq = any(u.seqs)) select coalesce(array_agg(distinct lease), '{}') as l, coalesce(max(lease), :cur) as cur, count(payload) as p from k \gset
SQL
        cat >"$dir/prototype.done.$n" <<'SQL'
with d as (delete from prototype.work where lease = any(:l::bigint[]) and lock_key = :client_id::text and version = 1 returning queue, priority, seqs), j as (delete from prototype.job j using d where j.queue = d.queue and j.priority = d.priority and j.state = 0 and j.seq = any(d.seqs) returning j.*), h as (insert into prototype.history (id, queue, state, kind, created, finished, tries, lock_key, payload) select id, queue, 4, kind, created, now(), tries, :client_id, payload from j), dd as (insert into prototype.delta (queue, state, n) select queue, 0, -count(*) from j group by 1) select count(*) from j;
SQL
        echo "select next_cur::text as c, next_first as f, next_turn as t from prototype.schedule(:c::bigint[], :f, :t, $n) \\gset" >"$dir/prototype.beside.$n"
    done
}

# starts the loop beside the workers of these two; it runs some seconds longer than they do
beside_pid=
start_beside() { # engine, batch
    local f=$dir/$1.beside
    [ "$1" = deferred ] || f=$f.$2
    "$bin/pgbench" -n -M prepared -f "$f" -c 1 -T $((secs + 3)) -D c="{$(printf '0,%.0s' {1..49})0}" -D f=0 -D t=0 "$1" >"$dir/beside.out" 2>&1 &
    beside_pid=$!
}
stop_beside() {
    [ -n "$beside_pid" ] || return 0
    kill "$beside_pid" 2>/dev/null || true
    wait "$beside_pid" 2>/dev/null || true
    beside_pid=
}

part_designs() {
    work_of designs "plain ours both graphile prototype deferred" "${SHAPES:-1 4 0,10 4 0,10 8 0,50 8 0,100 2 0}"
}
