# shellcheck shell=bash disable=SC2154
# fair: 49 queues get one job a second each, and one queue has a million jobs. How long do the jobs of the 49 wait, alone and
# beside the big queue? 4 workers take up to 10 jobs at a time and spend 20 ms on them. They only pause, because the wait is
# measured, not the load on the processor. A worker that finds nothing asks again after 5 ms.
# Then urgent (also a part of its own): two real workers, one job at a time each, work on a hundred jobs that take 1 s, or 60 s.
# Meanwhile a job of priority 0 is pushed, and a job of a queue that was idle. Both should start within the time of one job.

part_fair() {
    local e r big
    e=$(best)
    cat "$dir/$e.claim.10" - "$dir/$e.done.10" >"$dir/fair.work" <<'PAUSE'
\if :p = 0
\sleep 5 ms
\else
\sleep 20 ms
\endif
PAUSE
    printf '%s\n' '\set q random(10, 58)' "insert into queues.queue (queue, kind, payload) values ('queue' || :q, 'email', '$payload');" >"$dir/fair.push"
    for ((r = 0; r < rounds; r++)); do
        for big in 0 1000000; do
            prepare ours 0 10
            sql ours -c "update queues.queue_config set chunk = null" \
                -c "insert into queues.queue (queue, kind, payload) select 'big', 'email', '$payload' from generate_series(1, $big)"
            settle ours
            start_scheduler
            "$bin/pgbench" -n -M prepared -f "$dir/fair.work" -c 4 -j 2 -T $((secs * 3 + 2)) -D l='{}' -D v='{}' -D s='{}' ours >"$dir/fair.out" 2>&1 &
            bench ours "$dir/fair.push" 1 $((secs * 3)) -R 49
            wait $!
            stop_scheduler
            sql ours -c "select round((1000 * extract(epoch from started - created))::numeric, 1) from queues.history where queue <> 'big'" >"$dir/waits"
            fair_figures "$([ $big = 0 ] && echo alone || echo beside)"
        done
    done
    part_urgent
}
fair_figures() {
    figure fair "jobs of the 49" "$1" "$(wc -l <"$dir/waits")"
    figure fair "wait, median ms" "$1" "$(quantile 0.5 <"$dir/waits")"
    figure fair "wait, p99 ms" "$1" "$(quantile 0.99 <"$dir/waits")"
}

part_urgent() {
    local r
    for ((r = 0; r < rounds; r++)); do
        urgent_once 1
    done
    urgent_once 60
}
urgent_once() { # how long the jobs take, s
    local workers=() w started="from queues.queue q join queues.work_queue w on w.queue = q.queue and q.seq = any(w.seqs)
        where q.state = 'ready' and w.lock_key is not null and q.kind"
    empty ours
    sql ours -c "insert into queues.queue (queue, kind, payload) select 'big', 'slow', '$payload' from generate_series(1, 100)"
    start_scheduler
    for w in 1 2; do
        "$QUEUETOP" work "host=$dir user=postgres dbname=ours" --jobs 1 --node "slow$w" -- sleep "$1" >>"$dir/work.log" 2>&1 &
        workers+=($!)
    done
    until [ "$(sql ours -c "select count(*) $started = 'slow'")" = 2 ]; do sleep 0.05; done
    sql ours -c "insert into queues.queue (queue, kind, priority, payload) values ('big', 'urgent', 0, '$payload'), ('idle', 'first', 5, '$payload')"
    for w in urgent first; do # read from the lease while the job runs, from history when it has ended
        until [ -s "$dir/$w" ]; do
            sql ours -c "select round(extract(epoch from w.started - q.created)::numeric, 2) $started = '$w'" \
                -c "select round(extract(epoch from started - created)::numeric, 2) from queues.history where kind = '$w'" | head -1 >"$dir/$w"
            sleep 0.05
        done
    done
    while kill "${workers[@]}" 2>/dev/null; do # the second signal: they do not wait for their jobs
        sleep 0.5
    done
    wait "${workers[@]}" 2>/dev/null || true
    stop_scheduler
    figure fair "jobs of $1 s: priority 0 waits, s" beside "$(cat "$dir/urgent")"
    figure fair "jobs of $1 s: idle queue waits, s" beside "$(cat "$dir/first")"
    rm "$dir/urgent" "$dir/first"
}
