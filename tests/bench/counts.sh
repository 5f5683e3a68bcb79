# shellcheck shell=bash disable=SC2154
# counts: overview(), what a console reads each second, with 10 thousand, 1 million and 10 million (COUNTS_MAX) jobs in
# 50 queues; after vacuum, and with autovacuum off after a tenth of the rows were rewritten and workers were busy. Each
# time 2,000 pushes have not been summed up by the scheduler yet. Median of 20 calls in one session.

part_counts() {
    local want have=0 r
    sql ours -c "alter system set autovacuum = off" -c "select pg_reload_conf()" >/dev/null
    prepare ours 0 10
    for want in 10000 1000000 ${COUNTS_MAX:-10000000}; do
        fill ours $((want - have))
        have=$want
        settle ours
        start_scheduler
        bench ours "$(script ours 10 0)" 1 1
        stop_scheduler
        sql ours -c vacuum
        read_overview "$want jobs, vacuumed"
        sql ours -c "update queues.queue set last_action = null where seq % 10 = 0"
        start_scheduler
        bench ours "$(script ours 10 0)" 4 2
        stop_scheduler
        read_overview "$want jobs, not vacuumed"
    done
    sql ours -c "alter system reset autovacuum" -c "select pg_reload_conf()" >/dev/null
    empty ours
}

read_overview() { # row
    local r
    "$bin/pgbench" -n -M prepared -f "$dir/insert.push.1" -c 4 -t 500 ours >/dev/null 2>&1
    for ((r = 0; r < 20; r++)); do
        echo "explain (analyze, buffers) select * from queues.overview();"
    done | sql ours >"$dir/overview"
    figure counts "$1" ms "$(sed -n 's/^Execution Time: \([0-9.]*\) ms/\1/p' "$dir/overview" | quantile 0.5)"
    figure counts "$1" buffers "$(awk '/Function Scan/ { getline; n = 0; while (match($0, /(hit|read)=[0-9]+/)) {
        split(substr($0, RSTART, RLENGTH), v, "="); n += v[2]; $0 = substr($0, RSTART + RLENGTH) } print n }' "$dir/overview" | quantile 0.5)"
}
