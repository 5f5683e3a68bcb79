# shellcheck shell=bash disable=SC2154
# hour: does anything grow? One mixed load for SECONDS (3600): four pushers push RATE (2000) jobs a second into 20 queues;
# two workers with 24 jobs at a time each, and the scheduler, run beside them. Of 100 jobs about 63 come in batches of ten, 4
# have one of 50 concurrency keys, 4 are pushed for later, 3 fail once or twice and are retried, 2 have a unique key, 1 has a
# time at which it expires. One in two thousand fails for good. The queues differ in weight, history and retention (one minute
# and more). HELD says what somebody holds from the second tenth on: nothing, snapshot (one repeatable-read transaction until
# the end) or pg_dump (again and again).
#
# One row every EVERY (10) s: jobs done, backlog, push to start, pages, dead rows, sizes, processor time. The files series.tsv
# and series.svg are written into OUT (default: beside the raw figures). The end compares the means of the last tenth with
# those of the second. Exit code 1 if there is nothing to compare: a program ended, a sample is missing, nothing was done.

hour_secs=${HOUR:-3600} hour_rate=${RATE:-2000} hour_every=${EVERY:-10} hour_held=${HELD:-nothing}
hour_columns="seconds done_s backlog p50_ms p99_ms pages_job dead_queue dead_leases dead_books heap_mb index_mb history_mb scheduler_pct server_pct overview_ms load"

part_hour() {
    [[ $hour_held =~ ^(nothing|snapshot|pg_dump)$ ]] || { say "hour: HELD=$hour_held: nothing, snapshot or pg_dump"; exit 2; }
    hour_run hour "held: $hour_held"
}
hour_ready() { :; }
hour_step() { # its number, rows a tenth
    [ "$1" != $(($2 + 1)) ] || hour_hold $((hour_secs - $2 * hour_every))
}
hour_more() { :; }
hour_end() { :; }

# A part has these functions: PART_ready is called before the load begins, PART_step before each row, PART_more for the
# cells of the part's own columns, PART_end after the last row.
hour_run() { # part, what is special about it
    local tenth=$((hour_secs / hour_every / 10)) k
    part=$1 out=${OUT:-$RAW.$1} special=$2
    [ "$tenth" -ge 1 ] || { say "$part: SECONDS=$hour_secs is too short: $((hour_every * 10)) at least"; exit 2; }
    [ -x "$worker" ] || { say "$worker is missing: make bench"; exit 1; }
    mkdir -p "$out"
    : >"$out/events.tsv"
    fact "$part" "$hour_secs s, $hour_rate jobs/s offered, $special"
    trap 'say "$part: a command of the bench failed in line $LINENO"' ERR
    hour_scripts
    hour_queues
    "${part}_ready"
    hour_start
    tr ' ' '\t' <<<"$hour_columns" >"$out/series.tsv"
    start=$(now)
    hour_begin
    for ((k = 1; k <= tenth * 10; k++)); do
        "${part}_step" "$k" "$tenth"
        hour_wait $((k * hour_every))
        hour_alive
        hour_row >>"$out/series.tsv"
    done
    "${part}_end"
    hour_stop
    say "series: $out/series.tsv"
    awk -v title="$(hour_title)" -v events="$out/events.tsv" -f "$here/hour.awk" "$out/series.tsv" >"$out/series.svg"
    hour_compare "$out/series.tsv" "$tenth"
}

hour_title() {
    echo "$hour_secs s at $hour_rate jobs/s offered, $special; $(nproc) cores, $(date +%Y-%m-%d)"
}

hour_queues() { # settings of hour0 to hour19; all others have their defaults
    empty ours
    sql ours -c "insert into queues.queue_config (queue, weight, backoff_base, history, retention, max_running, rate, max_per_key)
        select 'hour' || i, case i % 5 when 0 then 4 else 1 end, '1 s', case i % 10 when 8 then 'none' when 9 then 'meta' else 'full' end,
               case i % 4 when 0 then interval '1 min' when 1 then interval '5 min' else interval '1 h' end,
               case i when 3 then 20 end, case i when 7 then $hour_rate end, case i when 5 then 2 end
        from generate_series(0, 19) i"
}

# Each script is a kind of push. Its weight says how often it runs, jobs how many jobs it pushes. t is when the job may start.
hour_scripts() {
    local q="'hour' || :q" t="extract(epoch from clock_timestamp())" weight jobs name text
    hour_pushes=() hour_each=() hour_jobs=0 hour_weights=0
    while IFS='|' read -r weight jobs name text; do
        printf '%s\n' '\set q random(0, 19)' "$text" >"$dir/hour.$name"
        hour_pushes+=(-f "$dir/hour.$name@$weight") hour_each+=("$jobs")
        hour_jobs=$((hour_jobs + weight * jobs)) hour_weights=$((hour_weights + weight))
    done <<PUSHES
400|1|plain|insert into queues.queue (queue, kind, priority, payload) values ($q, 'email', 3 + :q % 4, json_build_object('t', $t));
120|10|batch|insert into queues.queue (queue, kind, payload) select $q, 'batch', json_build_object('t', $t) from generate_series(1, 10);
70|1|keyed|\set k random(1, 50)\\; select * from queues.push('hour' || :k % 20, '{"keyed": 1}', 'keyed', concurrency_key => 'key ' || :k);
70|1|later|\set s random(1, 30)\\; select * from queues.push($q, json_build_object('t', $t + :s), 'later', delay => :s * interval '1 s');
60|1|retry|select * from queues.push($q, json_build_object('t', $t, 'fail', 1 + :q % 2), 'retry');
30|1|unique|\set u random(1, 1000)\\; select * from queues.push($q, '{"unique": 1}', 'unique', unique_key => 'one ' || :u);
20|1|expires|select * from queues.push($q, json_build_object('t', $t), 'expires', expires_at => now() + interval '20 s');
1|1|broken|select * from queues.push($q, json_build_object('fail', 9), 'broken', max_tries => 2);
PUSHES
    sed -i 's/\\; /\n/' "$dir"/hour.*
}

hour_start() {
    local n
    fill ours 1000 # leases and statistics of the queues, as after a minute of work
    settle ours
    start_scheduler
    hour_pids=("$scheduler_pid")
    for n in 1 2; do
        hour_worker "$n"
    done
    "$bin/pgbench" -n -M prepared "${hour_pushes[@]}" -c 4 -j 1 -T $((hour_secs + 60)) \
        -R "$(awk -v r="$hour_rate" -v j="$hour_jobs" -v w="$hour_weights" 'BEGIN { printf "%.3f", r * w / j }')" ours >"$dir/hour.push" 2>&1 &
    hour_pids+=($!)
}

hour_worker() { # its number
    "${clock[@]}" "$worker" "$conninfo" queues 24 ${hour_ledger:+"$dir/hour.did.$1"} >>"$dir/hour.waits.$1" 2>>"$dir/hour.worker.$1" &
    hour_pids[$1]=$!
}

hour_hold() { # seconds
    case $hour_held in
    snapshot)
        sql ours -c "begin isolation level repeatable read" -c "select count(*) from queues.queue" -c "select pg_sleep($1)" -c commit >/dev/null &
        ;;
    pg_dump)
        while "$bin/pg_dump" ours >/dev/null; do :; done &
        ;;
    *) return 0 ;;
    esac
    hour_pids+=($!)
}

hour_alive() { # fails if one of the programs has ended
    local p
    for p in "${hour_pids[@]}"; do
        kill -0 "$p" 2>/dev/null && continue
        say "$part: process $p ended: $(tail -qn 1 "$dir/hour.push" "$dir"/hour.worker.* "$dir/schedule.log" 2>/dev/null | tail -4)"
        hour_stop
        exit 1
    done
}

hour_stop() {
    kill "${hour_pids[@]}" 2>/dev/null || true
    wait "${hour_pids[@]}" 2>/dev/null || true
    scheduler_pid=
}

hour_wait() { # seconds since start
    # the times of the rows are fixed, so this sleeps until the time comes
    sleep "$(awk -v a="$start" -v b="$(now)" -v s="$1" 'BEGIN { d = a + s - b; print (d > 0 ? d : 0) }')"
}

# What the server has counted: done, backlog, pages, dead rows, sizes. The books are what the scheduler keeps.
hour_ask() {
    sql ours -F ' ' <<'SQL'
with counts as (
    select sum(completed + fails + cancelled) as done, sum(ready + running) as backlog from queues.overview()
), tables as (
    select s.relname, n_dead_tup, pg_relation_size(s.relid) as heap, pg_indexes_size(s.relid) as indexes, s.relname ~ '^(history|attempt)_' as old
    from pg_stat_user_tables s where s.schemaname = 'queues'
), pages as ( -- of the database: the count of a table is gone when retention drops it
    select blks_hit + blks_read as pages from pg_stat_database where datname = current_database()
)
select c.done, c.backlog, p.pages, sum(n_dead_tup) filter (where relname = 'queue'), sum(n_dead_tup) filter (where relname = 'work_queue'),
       sum(n_dead_tup) filter (where relname not in ('queue', 'work_queue') and not old),
       round(sum(heap) filter (where not old) / 1e6, 1), round(sum(indexes) filter (where not old) / 1e6, 1),
       round(sum(heap + indexes) filter (where old) / 1e6, 1)
from counts c, pages p, tables group by 1, 2, 3
SQL
}
# Processor time in ns, from the kernel's clock of each process: s = of the scheduler (program and sessions), p = of the server
hour_spent() {
    local p server backends
    server=$(head -1 "$dir/data/postmaster.pid")
    backends=$(sql ours -c "select string_agg(pid::text, ' ') from pg_stat_activity where application_name in ('queuetop', 'queuetop books')")
    for p in ${hour_pids[0]:-} $backends; do
        sed "s/^/s $p /" "/proc/$p/schedstat" 2>/dev/null || true
    done
    for p in $server $(pgrep -P "$server"); do
        sed "s/^/p $p /" "/proc/$p/schedstat" 2>/dev/null || true
    done
}
hour_overview() { # ms
    sql ours -c "explain (analyze, timing off) select * from queues.overview()" -c "explain (analyze, timing off) select * from queues.overview()" |
        sed -n 's/^Execution Time: \([0-9.]*\) ms/\1/p' | tail -1
}
hour_waits() { # prints the lines that the workers wrote since the last call, sorted
    local n from
    for n in 1 2; do
        from=$(cat "$dir/hour.from.$n" 2>/dev/null || echo 0)
        tail -c +$((from + 1)) "$dir/hour.waits.$n" >"$dir/hour.new.$n"
        echo $((from + $(stat -c %s "$dir/hour.new.$n"))) >"$dir/hour.from.$n"
    done
    sort -n "$dir/hour.new.1" "$dir/hour.new.2"
}

hour_begin() {
    hour_waits >/dev/null
    hour_spent >"$dir/hour.spent"
    read -r hour_done _ hour_pages _ < <(hour_ask)
    hour_at=$(now)
}
hour_row() {
    local at n=0 backlog pages dead_queue dead_leases dead_books heap index history ms
    read -r n backlog pages dead_queue dead_leases dead_books heap index history < <(hour_ask)
    at=$(now)
    hour_waits >"$dir/hour.sorted"
    ms=$(hour_overview)
    hour_spent >"$dir/hour.spent.new"
    printf '%.0f\t' "$(awk -v a="$at" -v s="$start" 'BEGIN { print a - s }')"
    awk -v n=$((n - hour_done)) -v a="$hour_at" -v b="$at" 'BEGIN { printf "%.0f\t", n / (b - a) }'
    printf '%s\t' "$backlog" "$(quantile 0.5 <"$dir/hour.sorted")" "$(quantile 0.99 <"$dir/hour.sorted")" \
        "$(per $((pages - hour_pages)) $((n - hour_done)) %.1f)" "$dead_queue" "$dead_leases" "$dead_books" "$heap" "$index" "$history"
    awk -v a="$hour_at" -v b="$at" '
        NR == FNR { was[$1, $2] = $3; next }
        ($1, $2) in was { n[$1] += $3 - was[$1, $2] }
        END { printf "%.1f\t%.1f\t", n["s"] / 1e7 / (b - a), n["p"] / 1e7 / (b - a) }' "$dir/hour.spent" "$dir/hour.spent.new"
    printf '%s\t%s' "$ms" "$(cut -d' ' -f1 /proc/loadavg)"
    "${part}_more"
    printf '\n'
    mv "$dir/hour.spent.new" "$dir/hour.spent"
    hour_done=$n hour_pages=$pages hour_at=$at
}

# Writes the means of the second and of the last tenth as figures. Fails if nothing was done or a cell is empty
hour_compare() { # series, rows a tenth
    local name second last
    awk -F'\t' -v rows=$(($2 * 10)) 'NR == 1 { n = NF; next }
        NF != n { print "row " NR - 1 " has " NF " of " n " values"; bad = 1; exit }
        { for (i = 1; i <= NF; i++) if ($i !~ /^-?[0-9.]+$/) { print "row " NR - 1 " says \"" $i "\" in column " i; bad = 1; exit } done += $2 }
        END { if (!bad && NR - 1 != rows) print NR - 1 " rows instead of " rows; else if (!bad && done == 0) print "nothing was done" }' "$1" >"$dir/hour.nonsense"
    if [ -s "$dir/hour.nonsense" ]; then
        say "$part: $(cat "$dir/hour.nonsense")"
        exit 1
    fi
    while read -r name second last; do
        figure "$part" "$name" second "$second"
        figure "$part" "$name" last "$last"
    done < <(awk -F'\t' -v t="$2" 'NR == 1 { split($0, name); next }
        NR - 1 > t && NR - 1 <= 2 * t { for (i = 2; i <= NF; i++) a[i] += $i }
        NR - 1 > 9 * t { for (i = 2; i <= NF; i++) b[i] += $i; n = NF }
        END { for (i = 2; i <= n; i++) printf "%s %.1f %.1f\n", name[i], a[i] / t, b[i] / t }' "$1")
}
