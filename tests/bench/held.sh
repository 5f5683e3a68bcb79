# shellcheck shell=bash disable=SC2154
# held: somebody holds a snapshot for 45 s (HOLD). What does this cost 8 clients that claim and complete batches of 10?
# Measured: jobs/s in the 6 s before and in the last 8 s, counted from the jobs that are gone. The other systems begin with
# 1 M waiting jobs (HELD_JOBS), ours with 2.5 times as many, because it finishes more. Then two rows of ours: a transaction
# that pushed stays open, and pg_dump runs again and again. To compare with these two, the same 45 s with nothing held, and
# with a process that keeps one core busy: the seconds of one run differ by a quarter, and a dump needs a core.

hold_secs=${HOLD:-45}

part_held() {
    local e r
    fact held "for $hold_secs s"
    fact "held," "${HELD_ROUNDS:-3} rounds"
    for ((r = 0; r < ${HELD_ROUNDS:-3}; r++)); do
        for e in plain "$(best)" graphile pgboss; do
            has "$e" && hold "$e" snapshot
        done
        hold "$(best)" nothing
        hold "$(best)" "open push"
        hold "$(best)" "a busy process"
        hold "$(best)" pg_dump
    done
}

hold() { # engine, what is held
    local e=$1 n=${HELD_JOBS:-1000000} a b c d s
    [ "$(base "$e")" != ours ] || n=$((n * 5 / 2))
    s=$(script "$e" 10 0)
    if [ "$2" = snapshot ]; then
        prepare "$e" $((n * backlog)) 10
    else # as the last run left it, filled up
        b=$((n * backlog - $(left "$e")))
        fill "$e" $((b > 0 ? b : 0))
        settle "$e"
    fi
    [ "$(base "$e")" != ours ] || start_scheduler
    start=$(now)
    bench "$e" "$s" 8 $((hold_secs + 11)) -D l='{}' -D v='{}' -D s='{}' &
    local pgbench=$!
    a=$(at 3 "$e") b=$(at 9 "$e")
    "hold_${2// /_}" "$e" &
    local holder=$!
    c=$(at $((hold_secs + 1)) "$e") d=$(at $((hold_secs + 9)) "$e")
    wait $holder $pgbench || true
    stop_scheduler
    [ "${d%% *}" -gt 1000 ] || say "$e ran dry: BACKLOG=$((backlog * 2)) lays more ready"
    figure "held: $2" "jobs/s before" "$e" "$(fall "$a" "$b")"
    figure "held: $2" "jobs/s in its last 8 s" "$e" "$(fall "$c" "$d")"
    figure "held: $2" "pages a job before" "$e" "$(pages_a_job "$a" "$b")"
    figure "held: $2" "pages a job in its last 8 s" "$e" "$(pages_a_job "$c" "$d")"
}
at() { # seconds since start, engine: prints the jobs left, the server's time, the pages read so far
    # the times of the measurement are fixed, so this sleeps until the time comes
    sleep "$(awk -v a="$start" -v b="$(now)" -v s="$1" 'BEGIN { d = a + s - b; print (d > 0 ? d : 0) }')"
    local t
    t=$(now)
    echo "$(left "$2")" "$t" "$(pages "$2")"
}
fall() { awk -v a="$1" -v b="$2" 'BEGIN { split(a, x, " "); split(b, y, " "); printf "%.0f", (x[1] - y[1]) / (y[2] - x[2]) }'; }
pages_a_job() { awk -v a="$1" -v b="$2" 'BEGIN { split(a, x, " "); split(b, y, " "); n = x[1] - y[1]; printf "%.1f", (y[3] - x[3]) / (n > 0 ? n : 1) }'; }

hold_nothing() { sleep "$hold_secs"; }
hold_a_busy_process() { timeout "$hold_secs" bash -c 'while :; do :; done' || true; }
hold_snapshot() {
    sql "$1" -c "begin isolation level repeatable read" -c "select 1" -c "select pg_sleep($hold_secs)" -c commit >/dev/null
}
hold_pg_dump() {
    local until
    until=$(awk -v s="$(now)" -v h="$hold_secs" 'BEGIN { print int(s + h) }')
    while [ "$(now | cut -d. -f1)" -lt "$until" ]; do
        "$bin/pg_dump" "$(base "$1")" >/dev/null
    done
}
hold_open_push() {
    sql "$1" -c begin -c "insert into queues.queue (queue) values ('late')" -c "select pg_sleep($hold_secs)" -c commit >/dev/null
}
