#!/bin/bash
# Measures the queue's SQL functions beside the plain single table with SKIP LOCKED that everybody starts with: push, and
# claim + complete in batches, alternately on one throwaway server with fsync on; then the overview query at growing size.
# Ratios are what counts: absolute figures belong to the machine. Medians of ROUNDS (3) runs of SECONDS_EACH (8) s.
#   tests/bench/engine.sh [push] [work] [held] [counts]     default: push work counts (held takes minutes)
set -euo pipefail

rounds=${ROUNDS:-3} secs=${SECONDS_EACH:-8} backlog=${BACKLOG:-400000}
src=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(pg_config --bindir 2>/dev/null || true)
[ -x "$bin/initdb" ] || bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -1)
dir=$(mktemp -d "${TMPDIR:-/tmp}/qbench.XXXXXX")
as=()
if [ "$(id -u)" = 0 ]; then
    as=(runuser -u postgres --)
    chown postgres "$dir"
fi

finish() {
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

start() {
    "${as[@]}" "$bin/initdb" -D "$dir/data" -A trust -U postgres --no-locale -E UTF8 >/dev/null
    "${as[@]}" tee -a "$dir/data/postgresql.conf" >/dev/null <<EOF
unix_socket_directories = '$dir'
listen_addresses = ''
shared_buffers = 1GB
max_wal_size = 8GB
jit = off
EOF
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w start >/dev/null
    export PGHOST=$dir PGUSER=postgres PGDATABASE=bench PGOPTIONS='-c client_min_messages=warning'
    psql -XAtq -d postgres -c 'create database bench'
    {
        echo "begin; select set_config('queuetop.schema', 'queues', true);"
        cat "$src"/sql/core/*.sql
        echo "commit;"
    } | sql >/dev/null
}

sql() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }

# --- the scripts of pgbench -------------------------------------------------------------------------
scripts() {
    cat >"$dir/push.ours" <<'EOF'
select * from queues.push('q' || :client_id, '{"user_id": 12345, "template": "welcome", "locale": "en"}', 'email');
EOF
    cat >"$dir/push.insert" <<'EOF'
insert into queues.queue (queue, kind, payload) values ('q' || :client_id, 'email', '{"user_id": 12345, "template": "welcome", "locale": "en"}');
EOF
    cat >"$dir/push.plain" <<'EOF'
insert into plain (queue, kind, payload) values ('q' || :client_id, 'email', '{"user_id": 12345, "template": "welcome", "locale": "en"}');
EOF
    cat >"$dir/work.ours" <<'EOF'
select coalesce(array_agg(lease), '{}') as l, coalesce(array_agg(version), '{}') as v, coalesce(array_agg(seq), '{}') as s, count(payload) as p from queues.claim(:client_id::text, :n) \gset
select count(*) from queues.complete(:client_id::text, :l::bigint[], :v::int[], :s::bigint[]);
EOF
    cat >"$dir/work.plain" <<'EOF'
with c as (select id from plain where state = 'ready' order by id limit :n for update skip locked), u as (update plain p set state = 'running', lock_key = :client_id::text, started = now() from c where p.id = c.id returning p.id, p.payload) select coalesce(array_agg(id), '{}') as ids, count(payload) as p from u \gset
delete from plain where id = any(:ids::bigint[]);
EOF
    cat >"$dir/schedule" <<'EOF'
select greatest(wait_ms, 1) as w from queues.schedule('bench') \gset
\sleep :w ms
EOF
}

plain_table() {
    sql -c "drop table if exists plain; create table plain (id bigserial primary key, queue text, kind text, state text not null
        default 'ready', created timestamptz default now(), lock_key text, started timestamptz, tries int default 0,
        run_after timestamptz default now(), payload json); create index on plain (id) where state = 'ready'"
}

fill() { # table rows
    sql -c "insert into $1 (queue, kind, payload) select 'queue' || lpad((i % 50)::text, 2, '0'), 'email',
        '{\"user_id\": 12345, \"template\": \"welcome\", \"locale\": \"en\"}' from generate_series(1, $2) i"
}

empty() { sql -c "truncate queues.queue, queues.work_queue, queues.history, queues.delta, queues.counter" -c "select queues.recount()" >/dev/null; }
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / (b > 0 ? b : 1) }'; }

run() { # script clients seconds [n]: transactions a second
    "$bin/pgbench" -n -M prepared -f "$dir/$1" -c "$2" -j 1 -T "$3" -D n="${4:-1}" 2>/dev/null | sed -n 's/^tps = \([0-9]*\).*/\1/p'
}

# --- push ---------------------------------------------------------------------------------------------
bench_push() {
    echo "push, one at a time, jobs/s:     plain table   insert (ratio)   push() (ratio)"
    for c in 1 8; do
        for ((i = 0; i < rounds; i++)); do
            for s in plain insert ours; do
                empty
                plain_table
                run push.$s $c "$secs" >>"$dir/push.$s.$c"
            done
        done
        p=$(median <"$dir/push.plain.$c") q=$(median <"$dir/push.insert.$c") o=$(median <"$dir/push.ours.$c")
        printf '  %d clients %26d %10d (%s) %10d (%s)\n' $c "$p" "$q" "$(ratio "$q" "$p")" "$o" "$(ratio "$o" "$p")"
    done
}

# --- claim and complete -----------------------------------------------------------------------------------
work_ours() { # n clients: jobs a second that really went, the scheduler beside it
    empty
    fill queues.queue "$backlog"
    sql -c "insert into queues.queue_config (queue, chunk) select distinct queue, $1 from queues.queue
            on conflict (queue) do update set chunk = excluded.chunk" -c "vacuum analyze" -c checkpoint
    "$bin/pgbench" -n -M prepared -f "$dir/schedule" -c 1 -T $((secs + 4)) >/dev/null 2>&1 &
    local s=$! a b
    a=$(sql -c "select count(*) from queues.queue")
    run work.ours "$2" "$secs" "$1" >/dev/null
    b=$(sql -c "select count(*) from queues.queue")
    wait $s
    sql -c "select queues.scheduler_stop('bench')" >/dev/null
    echo $(((a - b) / secs))
}

work_plain() {
    plain_table
    fill plain "$backlog"
    sql -c "vacuum analyze plain" -c checkpoint
    local a b
    a=$(sql -c "select count(*) from plain")
    run work.plain "$2" "$secs" "$1" >/dev/null
    b=$(sql -c "select count(*) from plain")
    echo $(((a - b) / secs))
}

bench_work() {
    echo "claim + complete, 50 queues, history in full, jobs/s:     plain table       ours (ratio)"
    for shape in "1 4" "10 1" "10 4" "10 8" "50 8" "100 2"; do
        # shellcheck disable=SC2086 # two words: n and clients
        for ((i = 0; i < rounds; i++)); do
            work_plain $shape >>"$dir/work.plain.${shape/ /.}"
            work_ours $shape >>"$dir/work.ours.${shape/ /.}"
        done
        p=$(median <"$dir/work.plain.${shape/ /.}") o=$(median <"$dir/work.ours.${shape/ /.}")
        printf '  batches of %-3s %s clients %29d %10d (%s)\n' "${shape% *}" "${shape#* }" "$p" "$o" "$(ratio "$o" "$p")"
    done
}

# --- a snapshot held open elsewhere ---------------------------------------------------------------------------
hold() { # table script: jobs/s in the 8 s before, and in the last 8 s of 45 s
    local a b c
    (sleep 14 && echo "begin isolation level repeatable read; select 1; select pg_sleep(45); commit" | sql >/dev/null) &
    run "$2" 8 62 10 >/dev/null &
    sleep 5
    a=$(sql -c "select count(*) from $1") && sleep 8 && b=$(sql -c "select count(*) from $1")
    sleep 37
    c=$(sql -c "select count(*) from $1") && sleep 8
    set -- "$1" $(((a - b) / 8)) $(((c - $(sql -c "select count(*) from $1")) / 8))
    wait
    printf '%10d %10d (%s)\n' "$2" "$3" "$(ratio "$3" "$2")"
}

bench_held() {
    echo "a snapshot held for 45 s, batches of 10, 8 clients, jobs/s:   before   at its end (ratio)"
    plain_table && fill plain 1500000 && sql -c "vacuum analyze plain"
    printf '  plain table %40s' '' && hold plain work.plain
    empty && fill queues.queue 1500000 && sql -c "vacuum analyze"
    "$bin/pgbench" -n -M prepared -f "$dir/schedule" -c 1 -T 66 >/dev/null 2>&1 &
    printf '  ours        %40s' '' && hold queues.queue work.ours
}

# --- counts -------------------------------------------------------------------------------------------------
bench_counts() {
    echo "overview() of 50 queues:  jobs        ms   buffers"
    empty
    local have=0
    for want in 10000 1000000; do
        fill queues.queue $((want - have))
        have=$want
        sql -c "select queues.schedule('bench')" -c "select count(*) from queues.claim('n', 100)" >/dev/null
        sql -c "update queues.fold set at = at - interval '1 s'" -c "select queues.schedule('bench')" >/dev/null
        for ((i = 0; i < 20; i++)); do
            echo "explain (analyze, buffers) select * from queues.overview();"
        done | sql >"$dir/counts"
        printf '  %28d %9s %9s\n' $want "$(sed -n 's/^Execution Time: \([0-9.]*\) ms/\1/p' "$dir/counts" | median)" \
            "$(sed -n 's/^ *Buffers: shared hit=\([0-9]*\).*/\1/p' "$dir/counts" | median)"
    done
}

start
scripts
for part in "${@:-push work counts}"; do
    for p in $part; do
        "bench_$p"
    done
done
