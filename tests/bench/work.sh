# shellcheck shell=bash disable=SC2154
# work: claim and complete over 50 queues with everything on: history in full, counters, fencing, fairness, and the scheduler
# beside. Jobs that are gone are counted in the tables. If too few jobs are left at the end of a run, it is repeated with
# twice as many. Measured beside jobs/s: bytes of WAL for each job, with those of the scheduler and of autovacuum. The part
# `wal` leaves out images of whole pages, because they depend on the time since the last checkpoint (here: a moment).

# jobs a second and client that a backlog must stand (times BACKLOG)
need() { # batch, clients, single
    case $1.$3 in 1.*) echo 12000 ;; *.1) echo 25000 ;; 10.*) echo 45000 ;; *) echo 120000 ;; esac
}

prepare() { # engine, jobs, batch
    empty "$1"
    if has_scheduler "$1"; then
        local keep=full
        [ "$1" = none ] && keep=none
        sql "$1" -c "insert into queues.queue_config (queue, chunk, history) select 'queue' || i, $3, '$keep' from generate_series(10, 59) i
            on conflict (queue) do update set chunk = excluded.chunk, history = excluded.history"
    fi
    fill "$1" "$2"
    settle "$1"
}

# prints jobs/s; writes the bytes of WAL a job into $dir/wal, without and with page images
work_once() { # engine, batch, clients, single
    local e=$1 n=$2 c=$3 more=1 s wal a b
    s=$(script "$e" "$n" "$4")
    while true; do
        prepare "$e" $(($(need "$n" "$c" "$4") * secs * backlog * more)) "$n"
        if has_scheduler "$e"; then start_scheduler "$(base "$e")"; fi
        if [[ $e =~ ^(deferred|prototype)$ ]]; then start_beside "$e" "$n"; fi
        a=$(left "$e")
        wal=$(sql "$e" -c "select pg_current_wal_flush_lsn()")
        bench "$e" "$s" "$c" "$secs" -D l='{}' -D v='{}' -D s='{}' -D cur=0 || {
            stop_scheduler
            stop_beside
            echo failed | tee "$dir/wal"
            return
        }
        stop_beside # its later work would be counted, but not the time that it takes
        "${as[@]}" "$bin/pg_waldump" --stats -p "$dir/data/pg_wal" -s "$wal" \
            -e "$(sql "$e" -c "select pg_current_wal_flush_lsn()")" 2>/dev/null | sed -n 's/[][%()]/ /g; s/^Total *//p' >"$dir/walstats"
        stop_scheduler
        b=$(left "$e")
        if [ "$b" -gt $((n * c * 4 + a / 50)) ] || [ $more = 8 ]; then
            break
        fi
        more=$((more * 2))
        say "$e ran dry: once more with $more times as much"
    done
    awk -v n=$((a - b)) '{ printf "%.0f %.0f\n", $2 / n, $6 / n }' "$dir/walstats" >"$dir/wal"
    per $((a - b)) "$secs"
}

part_work() {
    work_of work "plain ours both none graphile pgboss pgq" "${SHAPES:-1 4 0,10 4 1,10 1 0,10 4 0,10 8 0,50 8 0,100 2 0,100 1 0}"
}
work_of() { # part, engines, shapes
    local shape shapes n c one r e row wal=wal
    [ "$1" = work ] || wal="$1: wal"
    IFS=, read -ra shapes <<<"$3"
    for shape in "${shapes[@]}"; do
        read -r n c one <<<"$shape"
        row="claim $n, complete $n, $c clients"
        [ "$one" = 0 ] || row="claim $n, complete one by one, $c clients"
        for ((r = 0; r < rounds; r++)); do
            for e in $2; do
                if has "$(base "$e")" && has "$e" && wanted "$e" "$n" "$c" "$one"; then
                    figure "$1" "$row" "$e" "$(work_once "$e" "$n" "$c" "$one")"
                    figure "$wal" "$row" "$e" "$(cut -d' ' -f1 "$dir/wal")"
                    [ "$1" != work ] || figure walfull "$row" "$e" "$(cut -d' ' -f2 "$dir/wal")"
                fi
            done
        done
    done
}
wanted() { # not all engines run in all rows: it would take too long, and PgQ has one consumer and can't complete single jobs
    case "$1.$2.$3.$4" in
    pgq.100.1.0) ;;
    *.100.1.*) false ;;
    pgq.* | both.*.1 | pgboss.*.1 | prototype.*.1 | deferred.*.1) false ;;
    none.10.4.0 | none.100.2.0) ;;
    none.*) false ;;
    pgboss.10.4.0 | pgboss.100.2.0 | pgboss.1.4.0) ;;
    pgboss.*) false ;;
    esac
}

# level: ours with 10,000 and with 1,000,000 waiting jobs; a pusher replaces the jobs that are done. Every second round
# begins with the million, so that a drift of the machine affects both. Pages a job don't depend on the machine.
part_level() {
    local r level levels pusher a b t0 t1 p0 p1 e row="claim 10, complete 10, 4 clients"
    e=$(best)
    cat >"$dir/refill" <<SQL
select greatest(0, least(20000, :level - sum(ready + running)))::int as n from queues.overview() \\gset
insert into queues.queue (queue, kind, payload) select $names, 'email', '$payload' from generate_series(1, :n) i;
\\sleep 20 ms
SQL
    for ((r = 0; r < rounds; r++)); do
        levels=(10000 1000000)
        [ $((r % 2)) = 0 ] || levels=(1000000 10000)
        for level in "${levels[@]}"; do
            prepare ours "$level" 10
            start_scheduler
            "$bin/pgbench" -n -M prepared -f "$dir/refill" -c 1 -T $((secs + 4)) -D level="$level" ours >"$dir/refill.out" 2>&1 &
            pusher=$! # keep it: below, $! becomes the process that feeds `read`
            bench "$e" "$(script "$e" 10 0)" 4 2 -D l='{}' -D v='{}' -D s='{}' # until it runs evenly
            read -r a t0 < <(finished)
            p0=$(pages ours)
            bench "$e" "$(script "$e" 10 0)" 4 "$secs" -D l='{}' -D v='{}' -D s='{}'
            read -r b t1 < <(finished)
            p1=$(pages ours)
            wait $pusher
            stop_scheduler
            figure level "$row" "$level" "$(awk -v n=$((b - a)) -v t0="$t0" -v t1="$t1" 'BEGIN { printf "%.0f", n / (t1 - t0) }')"
            figure level "pages a job, the pusher's included" "$level" "$(per $((p1 - p0)) $((b - a)) %.1f)"
        done
    done
}
finished() { sql ours -F ' ' -c "select sum(completed), extract(epoch from statement_timestamp()) from queues.overview()"; }

# counters: what they cost a worker. uncounted: the same, but the CTEs that write to delta write nothing
part_counters() {
    local r e
    e=$(best)
    for ((r = 0; r < rounds; r++)); do
        figure counters "claim 10, complete 10, 4 clients" counted "$(work_once "$e" 10 4 0)"
        uncount
        figure counters "claim 10, complete 10, 4 clients" uncounted "$(work_once "$e" 10 4 0)"
        sql ours <"$dir/counting" >/dev/null
    done
}
uncount() {
    local f
    : >"$dir/counting"
    : >"$dir/uncounting"
    for f in $(sql ours -c "select oid from pg_proc where pronamespace = 'queues'::regnamespace and proname ~ '^complete' and prosrc ~* 'as \(\s*insert into delta'"); do
        sql ours -c "select pg_get_functiondef($f) || ';'" | tee -a "$dir/counting" | awk '
            { text = text $0 "\n" }
            END {
                while (match(text, /as \([ \n]*insert into delta/)) {
                    printf "%sas (select", substr(text, 1, RSTART - 1)
                    text = substr(text, RSTART + 4)
                    for (depth = 1; depth > 0; text = substr(text, 2)) {
                        c = substr(text, 1, 1)
                        depth += (c == "(") - (c == ")")
                    }
                    text = ")" text
                }
                printf "%s", text
            }' >>"$dir/uncounting"
    done
    [ -s "$dir/uncounting" ] || say "counters: nothing was found to switch off"
    sql ours <"$dir/uncounting" >/dev/null
}
