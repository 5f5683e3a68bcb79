# shellcheck shell=bash disable=SC2154
# slow: the engine beside a plain table on a slow machine: server, clients and scheduler together get PERCENT (25) of one
# core. Claim 10, complete 10, 4 clients. The engines take turns, slow and with all cores, before all other processes of the
# machine. The time begins with the scheduler, for 3 s and for 10 s, so that a warm-up is seen. fsync is off, because the disk
# is not slowed. Bar: slow, at least 0.8 of the ratio to the plain table that the engine has with all cores.

part_slow() {
    local r s e
    sql postgres -c "alter system set fsync = off" -c "select pg_reload_conf()" >/dev/null
    for ((r = 0; r < rounds; r++)); do
        for s in 3 10; do
            for e in plain ours both; do
                figure slow "all cores, $s s" "$e" "$(slow_round "$e" "$s" 450000 $((100 * $(nproc))))"
                figure slow "${PERCENT:-25} % of a core, $s s" "$e" "$(slow_round "$e" "$s" 100000 "${PERCENT:-25}")"
            done
        done
    done
}

slow_round() { # engine, seconds, jobs for 10 s, % of a core
    local e=$1 a b
    prepare "$e" $(($3 * $2 / 10)) 10
    a=$(left "$e")
    slow_down "$4" 'pgbench|queuetop'
    if has_scheduler "$e"; then start_scheduler; fi
    bench "$e" "$(script "$e" 10 0)" 4 "$2" -D l='{}' -D v='{}' -D s='{}'
    slow_end
    stop_scheduler
    b=$(left "$e")
    [ "$b" -gt 0 ] || say "$e ran dry: its figure is too small"
    per $((a - b)) "$2"
}
