# shellcheck shell=bash disable=SC2154
# instructions: what one job costs the worker's server process in user space, counted by valgrind (callgrind) instead of
# timed: the same figure again within a few per cent, however busy the machine is. The difference of two runs of one
# client, so that neither connecting nor planning counts. Without: waiting for the disk, the kernel, other clients, and
# the scheduler, which could not keep up with its own pace here: its leases are laid ready. Where the counted server does
# not start, or counts nothing, the bench says so and exits with 1.

valgrind_server() { # on or off
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -w -t 120 -m fast stop >/dev/null
    if [ "$1" = off ]; then
        "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w start >/dev/null
        return
    fi
    rm -f "$dir"/callgrind.* "$dir/log.counted"
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -l "$dir/log.counted" -w -t 120 -p "$dir/counted" \
        -o "-c log_disconnections=on -c log_line_prefix='%p %a ' -c autovacuum=off" start >/dev/null || {
        say "instructions: the server does not start under valgrind: $(tail -3 "$dir/log.counted" | tr '\n' ' ')"
        return 1
    }
}

# of a run of pgbench, by its number: instructions of the processes that served its two sessions, of which the first only asks
counted() {
    local pid
    awk '$2 == "pgbench" && /disconnection:/ { print $1 }' "$dir/log.counted" | sed -n "$((2 * $1 - 1)),$((2 * $1))p" | while read -r pid; do
        awk '/^(summary|totals):/ { print $2; exit }' "$dir/callgrind.$pid"
    done | awk '{ n += $1 } END { print n }'
}

lay_leases() { # chunk
    sql ours -c "select queues.schedule('bench')" -c "create temp table model as select * from queues.work_queue limit 1" -c "delete from queues.work_queue" \
        -c "insert into queues.work_queue (batch_order, priority, max_tries, history, queue, seqs, lease_time, run_timeout)
            select m.batch_order, m.priority, m.max_tries, m.history, c.queue, c.seqs, m.lease_time, m.run_timeout from model m, (
                select queue, array_agg(seq order by seq) as seqs, nth from (
                    select queue, seq, (row_number() over (partition by queue order by seq) - 1) / $1 as nth from queues.queue) j
                group by queue, nth order by nth, queue) c" >/dev/null
    settle ours
}

count_work() { # engine, batch, single
    local e=$1 n=$2 s t spent
    s=$(script "$e" "$n" "$3")
    prepare "$e" $((n * 400 + 50000)) "$n"
    [ "$(base "$e")" != ours ] || lay_leases "$n"
    valgrind_server on || return 1
    for t in 30 30 90; do # the first warms
        "$bin/pgbench" -n -M prepared -f "$s" -c 1 -t "$t" -D l='{}' -D v='{}' -D s='{}' "$(base "$e")" >"$dir/pgbench.out" 2>&1 ||
            { say "$e: $(grep -m1 -i error "$dir/pgbench.out")"; return 1; }
    done
    valgrind_server off
    spent=$(($(counted 3) - $(counted 2)))
    [ "$spent" -gt 0 ] || { say "instructions: nothing was counted for $e"; return 1; }
    per $spent $((60 * n))
}

part_instructions() {
    local n one e row shapes shape value
    command -v valgrind >/dev/null || { say "instructions: valgrind is not installed"; exit 1; }
    printf '#!/bin/sh\nexec valgrind -q --tool=callgrind --trace-children=yes --callgrind-out-file=%s/callgrind.%%p %s/postgres "$@"\n' \
        "$dir" "$bin" >"$dir/counted"
    chmod 755 "$dir/counted"
    IFS=, read -ra shapes <<<"${SHAPES:-1 1 0,10 1 1,10 1 0,50 1 0,100 1 0}"
    for shape in "${shapes[@]}"; do
        read -r n _ one <<<"$shape"
        row="claim $n, complete $n"
        [ "$one" = 0 ] || row="claim $n, complete one by one"
        for e in plain ours both graphile; do
            if has "$e" && [ "$e.$one" != both.1 ]; then
                value=$(count_work "$e" "$n" "$one") || exit 1
                figure instructions "$row" "$e" "$value"
            fi
        done
    done
}
