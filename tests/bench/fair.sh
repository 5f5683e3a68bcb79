# shellcheck shell=bash disable=SC2154
# fair: 49 queues with one job a second each, and one with 1 M jobs: how long the 49 wait, alone and beside the big one.
# 4 workers take up to 10 jobs at a time and spend 20 ms on them (a pause: the wait is what is asked for here, not how
# many jobs the processor stands); one that finds nothing asks again after 5 ms.

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
}
fair_figures() {
    figure fair "jobs of the 49" "$1" "$(wc -l <"$dir/waits")"
    figure fair "wait, median ms" "$1" "$(quantile 0.5 <"$dir/waits")"
    figure fair "wait, p99 ms" "$1" "$(quantile 0.99 <"$dir/waits")"
}
