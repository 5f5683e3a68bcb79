# shellcheck shell=bash disable=SC2154
# latency: from push to the start of a waiting worker at 100 jobs a second; then what the idle installation costs.
# programs: whole workers end to end: ours in C through the library (bench_worker, no-op callback, 24 at a time) beside
# graphile-worker's own runner with its published settings (graphile.mjs).

worker=$BUILD/tests/bench/bench_worker
conninfo="host=$dir user=postgres dbname=ours"

run_ours() { # more arguments: replaces the shell that calls it
    exec "$worker" "$conninfo" queues 24 "$@"
}
run_graphile() { PEERS=$cache/npm exec node "$here/graphile.mjs" "$@"; }
able() {
    case $1 in
    ours)
        [ -x "$worker" ] || ! has ours-worker || skip ours-worker "tests/bench/bench_worker is not built: make bench"
        [ -x "$worker" ]
        ;;
    *) has "$1" ;;
    esac
}

part_latency() {
    local e r pid
    echo "insert into queues.queue (queue, kind, payload) values ('queue10', 'email', json_build_object('t', extract(epoch from clock_timestamp())));" >"$dir/ours.tick"
    echo "select count(*) from graphile_worker.add_job('queue10', json_build_object('t', extract(epoch from clock_timestamp())));" >"$dir/graphile.tick"
    for ((r = 0; r < rounds; r++)); do
        for e in ours graphile; do
            able "$e" || continue
            empty "$e"
            settle "$e"
            [ "$e" != ours ] || start_scheduler
            ("run_$e" >"$dir/waits" 2>"$dir/worker.err") &
            pid=$!
            bench "$e" "$dir/$e.tick" 1 2 -R 100 # into its stride
            : >"$dir/waits.begin"
            wc -l <"$dir/waits" >"$dir/waits.begin"
            bench "$e" "$dir/$e.tick" 1 $((secs * 2)) -R 100
            [ $r != 0 ] || idle "$e" $pid
            kill $pid 2>/dev/null || true
            wait $pid 2>/dev/null || true
            stop_scheduler
            tail -n +$(($(<"$dir/waits.begin") + 1)) "$dir/waits" >"$dir/waits.all"
            figure latency "mean ms" "$e" "$(awk '{ s += $1 } END { printf "%.2f", NR ? s / NR : 0 }' "$dir/waits.all")"
            figure latency "median ms" "$e" "$(quantile 0.5 <"$dir/waits.all")"
            figure latency "p99 ms" "$e" "$(quantile 0.99 <"$dir/waits.all")"
            figure latency "jobs" "$e" "$(wc -l <"$dir/waits.all")"
        done
    done
}

# processor time of the worker, our scheduler and all of the server's processes, in hundredths of a second
spent() { # pid
    local pids
    pids="$1 $scheduler_pid $(head -1 "$dir/data/postmaster.pid") $(pgrep -P "$(head -1 "$dir/data/postmaster.pid")")"
    for p in $pids; do
        sed 's/.*) //' "/proc/$p/stat" 2>/dev/null || true
    done | awk '{ n += $12 + $13 } END { print n }'
}
idle() { # engine, pid
    local a
    sleep 2 # what the load left behind is over
    a=$(spent "$2")
    sleep 10 # the time that is measured
    figure latency "idle, % of a core" "$1" "$(awk -v n=$(($(spent "$2") - a)) -v hz="$(getconf CLK_TCK)" 'BEGIN { printf "%.1f", 100 * n / hz / 10 }')"
}

part_programs() {
    local e r jobs=$((40000 * secs * backlog)) TIMEFORMAT='%R %U %S' real user sys
    for ((r = 0; r < rounds; r++)); do
        for e in ours graphile; do
            able "$e" || continue
            empty "$e"
            [ "$e" != ours ] || sql ours -c "update queues.queue_config set chunk = null, history = 'full'"
            fill "$e" $jobs
            settle "$e"
            [ "$e" != ours ] || start_scheduler
            { time (if [ "$e" = ours ]; then run_ours drain; else run_graphile once; fi) >/dev/null 2>"$dir/worker.err"; } 2>"$dir/time"
            stop_scheduler
            read -r real user sys <"$dir/time"
            [ "$(left "$e")" = 0 ] || say "$e left $(left "$e") jobs: $(tail -1 "$dir/worker.err")"
            figure programs "jobs/s end to end" "$e" "$(per $((jobs - $(left "$e"))) "$real")"
            figure programs "worker process, us of processor a job" "$e" "$(awk -v u="$user" -v s="$sys" -v n=$jobs 'BEGIN { printf "%.1f", (u + s) * 1e6 / n }')"
        done
    done
}
