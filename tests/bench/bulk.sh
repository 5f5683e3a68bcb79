# shellcheck shell=bash disable=SC2154
# bulk: somebody requeues BULK_FAILED (100,000) failed jobs and purges BULK_FINISHED (200,000) finished ones with the keys of
# the real console (bench_bulk), while 4 workers claim and complete 10 jobs at a time. Measured: the p99 of one claim with its
# complete, before and during the acts. The jobs of the workers are in other queues than those that are requeued and purged.
# For the figures of a large queue: BULK_FAILED=1000000 BULK_FINISHED=10000000.

part_bulk() {
    local driver=$BUILD/tests/bench/bench_bulk failed=${BULK_FAILED:-100000} finished=${BULK_FINISHED:-200000}
    [ -x "$driver" ] || { say "$driver is missing: make bench"; exit 1; }
    bulk_fill "$failed" "$finished"
    start_scheduler
    figure bulk "claim + complete p99 ms, alone" ours "$(workers_p99 "$secs")"
    bulk_act "$driver" requeue "$failed"
    bulk_act "$driver" purge "$finished"
    stop_scheduler
    empty ours
}

bulk_fill() { # failed, finished
    empty ours
    fill ours $((2000000 + 3 * $1)) # enough for the workers until the end
    sql ours <<SQL
insert into queues.queue (queue, kind, payload, state, tries, error, error_key)
    select 'broken' || i % 5, 'email', '$payload', 'failed', 5, 'connection refused', queues.error_key('connection refused') from generate_series(1, $1) i;
insert into queues.history (id, created, started, finished, state, priority, tries, queue, kind, node, payload)
    select queues.uuid_v7(), t, t, t, 'completed', 5, 1, 'done' || i % 5, 'email', 'w', '$payload' from generate_series(1, $2) i,
        (select greatest(date_trunc('day', now(), 'UTC'), now() - interval '20 min')) x (first), lateral (select first + i * interval '60 us') y (t);
select count(*) from queues.recount();
SQL
    settle ours
}

# runs 4 workers for some seconds; prints the p99 of a claim with its complete
workers_p99() { # seconds
    rm -f "$dir"/workers.*
    "$bin/pgbench" -n -M prepared -f "$(script ours 10 0)" -c 4 -j 2 -T "$1" -l --log-prefix="$dir/workers" ours >"$dir/pgbench.out" 2>"$dir/pgbench.err" || say "pgbench: $(tail -1 "$dir/pgbench.err")"
    cut -d' ' -f3 "$dir"/workers.* | quantile 0.99 | awk '{ printf "%.1f", $1 / 1000 }'
}

bulk_act() { # driver, act, rows
    local name value pid
    rm -f "$dir"/workers.*
    "$bin/pgbench" -n -M prepared -f "$(script ours 10 0)" -c 4 -j 2 -T 3600 -l --log-prefix="$dir/workers" ours >"$dir/pgbench.out" 2>"$dir/pgbench.err" &
    pid=$!
    "$1" "$2" "host=$dir user=postgres dbname=ours" >"$dir/bulk.out" 2>"$dir/bulk.err" || { say "$2: $(tail -40 "$dir/bulk.err")"; cat "$dir/bulk.out"; }
    kill $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    while IFS=$'\t' read -r name value; do
        figure bulk "$2 of $3: $name" ours "$value"
    done < <(grep -P '\t' "$dir/bulk.out")
    figure bulk "$2 of $3: claim + complete p99 ms" ours "$(cut -d' ' -f3 "$dir"/workers.* | quantile 0.99 | awk '{ printf "%.1f", $1 / 1000 }')"
}
