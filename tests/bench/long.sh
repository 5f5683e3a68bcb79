# shellcheck shell=bash disable=SC2034,SC2154
# long: the load of hour.sh (1,000 jobs a second for 7,200 s; HOUR, RATE), and meanwhile everything that happens to a queue in
# a day: schedules push, an operator acts, programs are killed, somebody holds a snapshot, backups are taken, and the UTC day
# changes in the middle. The plan, in parts of the run:
#   schedules     ten at * * * * *, five @every 10s, one at midnight; missed runs are made up for
#   acts          thirty-nine: requeue failed jobs, pause a queue, resume this queue, purge; extend the leases of a killed worker
#   kill -9       at twelfths: the scheduler at 2, 6 and 10, the first worker at the others; each is started again a row later
#   snapshot      one transaction from 1/6 on, for 1/3
#   pg_dump       at 1/8, 3/8, 5/8 and 7/8
#   midnight      at 1/2: the server and our programs see a clock that is ahead (libfaketime, FAKETIME_LIB). If the library
#                 is missing, the run says so and uses the real clock.
# OUT gets events.tsv and acts.log beside the series. Further columns: the memory of the second worker (which is never
# killed), of the scheduler, of a console that shows its screens in turn, and of the server's processes without shared
# memory; partitions. At the end the queues run empty; then long_books checks all sums. Exit code 1 if a sum is wrong.

part_long() {
    hour_secs=${HOUR:-7200} hour_rate=${RATE:-1000}
    hour_columns+=" worker_mb scheduler_mb console_mb server_mb partitions"
    # a killed program runs again before the next kill
    [ $((hour_secs / hour_every)) -ge 24 ] || { say "long: SECONDS=$hour_secs is too short: $((hour_every * 24)) at least"; exit 2; }
    command -v tmux >/dev/null || { say "long: tmux is missing: make deps-check"; exit 1; }
    hour_run long "cron, acts, kills, a snapshot, dumps, midnight"
    [ -z "$long_wrong" ] || exit 1
}

long_ready() {
    trap 'tmux -L "long$$" kill-server 2>/dev/null || true; finish' EXIT
    long_clock
    sql ours -c "create table public.refused ()"
    printf '%s\n' '\set q random(0, 19)' '\set u random(1, 1000)' \
        "select 1 - pushed::int as met from queues.push('hour' || :q, '{\"unique\": 1}', 'unique', unique_key => 'one ' || :u) \\gset" \
        "insert into public.refused select where :met = 1;" >"$dir/hour.unique"
    long_plan | sort -n >"$dir/long.plan"
    long_schedules
    long_wrong='' hour_ledger=yes long_waits=0 long_paused='' long_act=0
}

long_schedules() {
    local i
    for ((i = 0; i < 10; i++)); do
        act cron add "minute $i" '* * * * *' -q "hour$i" -k minute --catch-up all
    done
    for ((i = 0; i < 5; i++)); do
        act cron add "often $i" '@every 10s' -q "hour$((10 + i))" -k often --catch-up all
    done
    act cron add midnight '0 0 * * *' -q hour19 -k midnight --catch-up all
}

# Starts the server again, with a clock that reaches midnight in the middle of the run.
long_clock() {
    local lib=${FAKETIME_LIB:-$(find /usr/lib -name libfaketimeMT.so.1 2>/dev/null | head -1)}
    long_ahead=0
    if [ ! -e "$lib" ]; then
        say "long: libfaketime is missing (make deps-engines): the day does not change"
        fact "long:" "the real clock, libfaketime is missing"
        return
    fi
    long_ahead=$((86400 - ($(date +%s) + hour_secs / 2 + 15) % 86400))
    clock=(env "LD_PRELOAD=$lib" "FAKETIME=+$long_ahead" FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DISABLE_SHM=1)
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -m fast -w stop >/dev/null
    run_server
    say "long: the server's clock says $(sql ours -c "select now() at time zone 'UTC'")"
}

long_plan() { # second, what
    local i acts=(requeue pause resume purge)
    for ((i = 1; i < 40; i++)); do
        echo "$((hour_secs * i / 40)) ${acts[(i - 1) % 4]}"
    done
    for ((i = 1; i < 12; i++)); do
        echo "$((hour_secs * i / 12)) kill $([ $((i % 4)) = 2 ] && echo 0 || echo 1)"
    done
    echo "$((hour_secs / 6)) snapshot"
    for ((i = 1; i < 8; i += 2)); do
        echo "$((hour_secs * i / 8)) pg_dump"
    done
}

long_event() { printf '%.0f\t%s\n' "$(awk -v a="$(now)" -v s="$start" 'BEGIN { print a - s }')" "$1" >>"$out/events.tsv"; }

long_step() { # its number
    local at=$((($1 - 1) * hour_every)) second what which
    [ "$1" != 1 ] || long_begin
    [ -z "$long_killed" ] || long_again "$long_killed"
    while read -r second what which; do
        if [ "$second" -gt $((at - hour_every)) ] && [ "$second" -le "$at" ]; then
            "long_$what" "$which"
        fi
    done <"$dir/long.plan"
}

long_begin() {
    long_killed=''
    tmux -L "long$$" new-session -d -x 140 -y 45 "exec ${clock[*]} $QUEUETOP --tv '$conninfo'"
    hour_pids[4]=$(tmux -L "long$$" list-panes -F '#{pane_pid}')
    [ "$long_ahead" = 0 ] || long_midnight=$((86400 - ($(date +%s) + long_ahead) % 86400))
    [ "$long_ahead" = 0 ] || printf '%s\tmidnight\n' "$long_midnight" >>"$out/events.tsv"
}

long_again() { # starts the program again that was killed a row ago
    if [ "$1" = 0 ]; then
        start_scheduler
        hour_pids[0]=$scheduler_pid
    else
        act extend --node "$long_node" --by 1m
        hour_worker "$1"
    fi
    long_killed=''
}

act() { # a verb with its options; if no job matched, this is no failure
    local status=0
    echo "$(date +%T) $*" >>"$out/acts.log"
    "${clock[@]}" "$QUEUETOP" "$@" --yes -d "$conninfo" </dev/null >>"$out/acts.log" 2>&1 || status=$?
    [ "$status" -le 1 ] || { say "long: queuetop $* ended with $status: $(tail -1 "$out/acts.log")"; exit 1; }
}
long_requeue() { act requeue -s failed -k broken --reason "the long run"; }
long_pause() {
    long_paused=hour$((long_act++ % 20))
    act pause "$long_paused"
    long_event "pause"
}
long_resume() {
    act resume "$long_paused"
    long_paused=''
}
long_purge() { act purge --state completed --older-than 2m --force; }
long_kill() { # place in hour_pids
    kill -9 "${hour_pids[$1]}"
    wait "${hour_pids[$1]}" 2>/dev/null || true
    long_node=$(sql ours -c "select lock_key from queues.node where pid = ${hour_pids[$1]}")
    unset "hour_pids[$1]"
    long_killed=$1
    long_event "kill $([ "$1" = 0 ] && echo scheduler || echo worker)"
}
long_snapshot() {
    long_event snapshot
    long_beside long_hold
}
long_hold() {
    sql ours -c "begin isolation level repeatable read" -c "select count(*) from queues.queue" -c "select pg_sleep($((hour_secs / 3)))" \
        -c commit >/dev/null || return 1
    long_event "snapshot ends"
}
long_pg_dump() {
    long_event pg_dump
    long_beside long_write_dump
}
long_write_dump() {
    "$bin/pg_dump" ours | wc -c >>"$dir/long.dumped"
}

# Runs a function beside the load. It writes its exit status into a file: `wait` forgets the status if another process gets
# the same process id later.
long_beside() {
    long_waits=$((long_waits + 1))
    { "$1" && echo well >"$dir/long.end.$long_waits" || echo "$1 failed" >"$dir/long.end.$long_waits"; } &
}

long_mb() { # field of /proc/PID/status, processes: the sum in MB
    local field=$1 p
    shift
    for p; do
        cat "/proc/$p/status" 2>/dev/null || true
    done | awk -v f="$field:" '$1 == f { kb += $2 } END { printf "%.1f", kb / 1024 }'
}
long_more() {
    local server backends
    server=$(head -1 "$dir/data/postmaster.pid")
    mapfile -t backends < <(pgrep -P "$server")
    printf '\t%s' "$(long_mb VmRSS "${hour_pids[2]}")" "$(long_mb VmRSS "${hour_pids[0]:-0}")" "$(long_mb VmRSS "${hour_pids[4]}")" \
        "$(long_mb RssAnon "$server" "${backends[@]}")" \
        "$(sql ours -c "select count(*) from pg_class where relispartition and relkind = 'r' and relnamespace = 'queues'::regnamespace")"
}

# Waits until the pushers end, because pgbench says only at its end how much it pushed. The workers finish the rest.
long_end() {
    local p left=1 tries
    [ -z "$long_killed" ] || long_again "$long_killed"
    [ -z "$long_paused" ] || long_resume
    for p in $(seq "$long_waits"); do
        while [ ! -s "$dir/long.end.$p" ]; do sleep 1; done # these processes end by themselves; wait before the next look
        [ "$(cat "$dir/long.end.$p")" = well ] || { say "long: $(cat "$dir/long.end.$p")"; exit 1; }
    done
    wait "${hour_pids[3]}" || { say "long: the pushers failed: $(tail -1 "$dir/hour.push")"; exit 1; }
    for p in $(seq 0 9); do act cron pause "minute $p"; done
    for p in $(seq 0 4); do act cron pause "often $p"; done
    for ((tries = 0; tries < 120 && left > 0; tries++)); do
        left=$(sql ours -c "select sum(scheduled + ready + retry + running) from queues.overview()")
        sleep 1 # these processes end by themselves; wait before the next look
    done
    long_books
}

# The jobs that the pushers and the schedules pushed must equal what the counters, the tables and the ledgers of the workers say.
long_books() {
    local pushed cron refused c_pushed completed failed cancelled left t_failed t_left runs distinct twice
    pushed=$(awk -v each="${hour_each[*]}" 'BEGIN { split(each, jobs, " ") } /^SQL script/ { i++ }
        /^ - [0-9]+ transactions/ && i { n += $2 * jobs[i] } END { print n }' "$dir/hour.push")
    refused=$(sql ours -c "select count(*) from public.refused")
    cp "$dir"/hour.push "$dir"/hour.worker.* "$dir/schedule.log" "$out"
    sort "$dir"/hour.did.[12] >"$dir/long.did"
    runs=$(wc -l <"$dir/long.did")
    twice=$(uniq -d "$dir/long.did" | wc -l)
    distinct=$(cut -d' ' -f1 "$dir/long.did" | uniq | wc -l)
    read -r c_pushed completed failed cancelled left < <(sql ours -F ' ' -c "select sum(pushed), sum(completed), sum(failed), sum(cancelled),
        sum(scheduled + ready + retry + running) from queues.overview()")
    read -r t_failed t_left < <(sql ours -F ' ' -c "select count(*) filter (where state = 'failed'), count(*) filter (where state <> 'failed')
        from queues.queue")
    cron=$(awk '$3 ~ /^(minute|often|midnight)$/ && $1 != last { n++ } { last = $1 } END { print n + 0 }' "$dir/long.did")
    figure long "jobs pushed" books $((pushed + 1000 - refused))
    figure long "jobs of schedules" books "$cron"
    figure long "unique refused" books "$refused"
    figure long "pushed" counters "$c_pushed"
    figure long "completed" counters "$completed"
    figure long "failed" counters "$failed"
    figure long "failed" tables "$t_failed"
    figure long "cancelled or expired" counters "$cancelled"
    figure long "left" counters "$left"
    figure long "left" tables "$t_left"
    figure long "started" ledgers "$runs"
    figure long "jobs started" ledgers "$distinct"
    figure long "one try started twice" ledgers "$twice"
    figure long "minutes" ledgers "$(grep -c ' minute$' "$dir/long.did" || true)"
    figure long "at midnight" ledgers "$(grep -c ' midnight$' "$dir/long.did" || true)"
    long_fault "$((pushed + 1000 - refused + cron))" "$c_pushed" "the pushers' count and the counter of pushed"
    long_fault "$c_pushed" $((completed + failed + cancelled + left)) "what was pushed and what became of it"
    long_fault "$t_failed" "$failed" "failed jobs in the table and the counter"
    long_fault "$t_left" "$left" "waiting jobs in the table and the counters"
    # a job that expired may never have started
    if [ "$distinct" -gt "$c_pushed" ] || [ $((distinct + cancelled)) -lt "$c_pushed" ]; then
        long_fault "$distinct" "$c_pushed" "jobs started and jobs pushed"
    fi
    long_fault "$twice" 0 "tries that were started twice and none"
}
long_fault() {
    [ "$1" = "$2" ] || { say "long: $3 differ: $1 and $2"; long_wrong=1; }
}
