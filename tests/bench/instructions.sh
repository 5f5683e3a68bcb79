# shellcheck shell=bash disable=SC2154
# instructions: how many instructions one job costs the worker's server process in user space. valgrind (callgrind) counts
# them, so the figure is the same again within a few per cent, however busy the machine is. It is the difference of two runs
# of one client, a long and a short one, so neither connecting nor planning counts. Not counted: waiting for the disk, the
# kernel, other clients, and the scheduler. A scheduler under valgrind would be too slow, so lay_leases makes all leases
# before the run. If the server does not start under valgrind, or nothing is counted, the bench says so and exits with 1.
#
# To compare with another commit, run this twice in each of two checkouts: the engine is the one that its program installs.

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

# number of a run of pgbench: prints the instructions of the two processes that served its sessions (in the first, pgbench only asks for its settings)
counted() {
    local pid
    awk '$2 == "pgbench" && /disconnection:/ { print $1 }' "$dir/log.counted" | sed -n "$((2 * $1 - 1)),$((2 * $1))p" | while read -r pid; do
        awk '/^(summary|totals):/ { print $2; exit }' "$dir/callgrind.$pid"
    done | awk '{ n += $1 } END { printf "%.0f\n", n }'
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

count_script() { # engine, script, jobs a transaction, jobs a lease
    local e=$1 t spent few=1
    [ "$3" -ge 100 ] || few=3
    prepare "$e" $(($3 * 400 + 50000)) "$4"
    [ "$(base "$e")" != ours ] || lay_leases "$4"
    valgrind_server on || return 1
    for t in $((10 * few)) $((10 * few)) $((30 * few)); do # the first one fills caches, the figure is the third minus the second
        "$bin/pgbench" -n -M prepared -f "$2" -c 1 -t "$t" -D l='{}' -D v='{}' -D s='{}' "$(base "$e")" >"$dir/pgbench.out" 2>&1 ||
            { say "$e: $(grep -m1 -i error "$dir/pgbench.out")"; return 1; }
    done
    valgrind_server off
    spent=$(($(counted 3) - $(counted 2)))
    [ "$spent" -gt 0 ] || { say "instructions: nothing was counted for $e"; return 1; }
    per $spent $((20 * few * $3))
}

# Scripts for rows of ours alone: calls that the other rows do not make.
own_scripts() {
    local n odd="where o % 2 = 1" even="where o % 2 = 0" half
    for n in 1 10; do
        { cat "$dir/ours.claim.$n"
          echo "select count(*) from queues.fail(:client_id::text, :l::bigint[], :v::int[], :s::bigint[], array_fill('Error: no answer from 10.0.0.1'::text, array[$n]));"; } >"$dir/fail.$n"
    done
    echo "select count(*) from queues.push_many(null, array_fill('queue' || (10 + :client_id), array[100]), array_fill('email'::text, array[100]), payloads := array_fill('$payload'::text, array[100]), unique_keys := array(select random()::text from generate_series(1, 100)));" >"$dir/keys.100"
    cp "$dir/ours.claim.100" "$dir/parts.100"
    for half in "$odd" "$even"; do
        echo "select count(*) from (select array_agg(l) as l, array_agg(v) as v, array_agg(s) as s from unnest(:l::bigint[], :v::int[], :s::bigint[]) with ordinality g (l, v, s, o) $half) g, queues.complete(:client_id::text, g.l, g.v, g.s);"
    done >>"$dir/parts.100"
    cat "$dir/ours.claim.100" "$dir/ours.done.100" >"$dir/leases.100"
}

count_own() {
    local row file n chunk value
    own_scripts
    while IFS=, read -r row file n chunk; do
        [[ $row =~ ${OWN:-.} ]] || continue
        value=$(count_script ours "$dir/$file" "$n" "$chunk") || return 1
        figure instructions "$row" ours "$value"
    done <<'ROWS'
push() 1,push.push.1,1,10
push_many() of 100,push.push.100,100,10
push_many() of 100 with unique keys,keys.100,100,10
claim 1 and fail 1,fail.1,1,1
claim 10 and fail 10,fail.10,10,10
claim and complete 100 in leases of 10,leases.100,100,10
the same in two halves of each lease,parts.100,100,10
ROWS
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
                value=$(count_script "$e" "$(script "$e" "$n" "$one")" "$n" "$n") || exit 1
                figure instructions "$row" "$e" "$value"
            fi
        done
    done
    count_own || exit 1
}
