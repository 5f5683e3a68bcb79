# shellcheck shell=bash disable=SC2154
# counts: overview(), which a console calls each second, with 10 thousand, 1 million and 10 million (COUNTS_MAX) jobs in
# 50 queues. Each size is measured twice: after vacuum, and without autovacuum after a tenth of the rows were rewritten and
# workers were busy. Meanwhile 200 jobs a second are pushed one by one, and the scheduler folds the counters. One more row:
# the scheduler is stopped and 2,000 pushes are not folded yet. Each figure is the median of 20 calls in one session, 30 ms
# apart, so that the last fold is of every age.

part_counts() {
    local want have=0 r
    sql ours -c "alter system set autovacuum = off" -c "select pg_reload_conf()" >/dev/null
    prepare ours 0 10
    for want in 10000 1000000 10000000; do
        [ $want -le "${COUNTS_MAX:-10000000}" ] || break
        fill ours $((want - have))
        have=$want
        settle ours
        busy 1
        sql ours -c vacuum
        read_overview "$want jobs, vacuumed"
        sql ours -c "update queues.queue set last_action = null where seq % 10 = 0"
        busy 4
        read_overview "$want jobs, not vacuumed"
    done
    "$bin/pgbench" -n -M prepared -f "$dir/insert.push.1" -c 4 -t 500 ours >/dev/null 2>&1
    overview "$have jobs, 2000 pushes not summed up"
    sql ours -c "alter system reset autovacuum" -c "select pg_reload_conf()" >/dev/null
    empty ours
}

busy() { # clients
    start_scheduler
    bench ours "$(script ours 10 0)" "$1" 2
    stop_scheduler
}

read_overview() { # row
    start_scheduler
    "$bin/pgbench" -n -M prepared -f "$dir/insert.push.1" -c 1 -T 3 -R 200 ours >/dev/null 2>&1 &
    sleep 2 # let the load begin; how long it takes is known
    overview "$1"
    wait $!
    stop_scheduler
}

overview() { # row
    local r
    for ((r = 0; r < 20; r++)); do
        echo "explain (analyze, buffers) select * from queues.overview(); select pg_sleep(0.03);"
    done | sql ours >"$dir/overview"
    figure counts "$1" ms "$(sed -n 's/^Execution Time: \([0-9.]*\) ms/\1/p' "$dir/overview" | quantile 0.5)"
    figure counts "$1" buffers "$(awk '/Function Scan/ { getline; n = 0; while (match($0, /(hit|read)=[0-9]+/)) {
        split(substr($0, RSTART, RLENGTH), v, "="); n += v[2]; $0 = substr($0, RSTART + RLENGTH) } print n }' "$dir/overview" | quantile 0.5)"
}
