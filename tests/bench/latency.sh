# shellcheck shell=bash disable=SC2154
# latency: the time from a push to the start of the job by a waiting worker, at 100 jobs a second; then what the idle
# installation costs. programs: whole workers from end to end: ours in C through the library (bench_worker: a callback that
# does nothing, 24 jobs at a time) beside graphile-worker's own runner with its published settings (graphile.mjs).

worker=$BUILD/tests/bench/bench_worker
conninfo="host=$dir user=postgres dbname=ours"

runner() { # engine: puts the command line of its worker into cmd
    case $1 in
    ours) cmd=("$worker" "$conninfo" queues 24) ;;
    graphile) cmd=(env PEERS="$cache/npm" node "$here/graphile.mjs") ;;
    esac
}
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
    local e r pid cmd
    echo "insert into queues.queue (queue, kind, payload) values ('queue10', 'email', json_build_object('t', extract(epoch from clock_timestamp())));" >"$dir/ours.tick"
    echo "select count(*) from graphile_worker.add_job('queue10', json_build_object('t', extract(epoch from clock_timestamp())));" >"$dir/graphile.tick"
    for ((r = 0; r < rounds; r++)); do
        for e in ours graphile; do
            able "$e" || continue
            empty "$e"
            settle "$e"
            [ "$e" != ours ] || start_scheduler
            runner "$e"
            "${cmd[@]}" >"$dir/waits" 2>"$dir/worker.err" &
            pid=$!
            bench "$e" "$dir/$e.tick" 1 2 -R 100 # until it runs evenly
            wc -l <"$dir/waits" >"$dir/waits.begin"
            bench "$e" "$dir/$e.tick" 1 $((secs * 2)) -R 100
            idle "$e" $pid
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

# processor time, in ticks, of the worker, our scheduler and each process of the server: lines of pid and ticks
spent() { # pid
    local p server
    server=$(head -1 "$dir/data/postmaster.pid")
    for p in $1 $scheduler_pid $server $(pgrep -P "$server"); do
        sed -n 's/^\([0-9]*\) .*) \(.*\)/\1 \2/p' "/proc/$p/stat" 2>/dev/null || true
    done | awk '{ print $1, $13 + $14 }'
}
idle() { # engine, pid
    sleep 2 # until the rest of the load is over
    spent "$2" >"$dir/spent"
    sleep 10 # the seconds that are measured
    figure latency "idle, % of a core" "$1" "$(spent "$2" | awk -v hz="$(getconf CLK_TCK)" '
        NR == FNR { was[$1] = $2; next }
        { n += $2 - was[$1] }
        END { printf "%.1f", 100 * n / hz / 10 }' "$dir/spent" -)"
}

part_programs() {
    local e r cmd jobs=$((40000 * secs * backlog)) TIMEFORMAT='%R %U %S' real user sys
    for ((r = 0; r < rounds; r++)); do
        for e in ours graphile; do
            able "$e" || continue
            empty "$e"
            [ "$e" != ours ] || sql ours -c "update queues.queue_config set chunk = null, history = 'full'"
            fill "$e" $jobs
            settle "$e"
            [ "$e" != ours ] || start_scheduler
            runner "$e"
            { time "${cmd[@]}" drain >/dev/null 2>"$dir/worker.err" || true; } 2>"$dir/time"
            stop_scheduler
            read -r real user sys <"$dir/time"
            [ "$(left "$e")" = 0 ] || say "$e left $(left "$e") jobs: $(tail -1 "$dir/worker.err")"
            figure programs "jobs/s end to end" "$e" "$(per $((jobs - $(left "$e"))) "$real")"
            figure programs "worker process, us of processor a job" "$e" "$(awk -v u="$user" -v s="$sys" -v n=$jobs 'BEGIN { printf "%.1f", (u + s) * 1e6 / n }')"
        done
    done
}
