# shellcheck shell=bash disable=SC2154
# queues: what the number of queues costs (QUEUES, "100 1000 10000 50000"): one job is pushed to each in one statement. Processor time and
# pages of the backend that makes the scheduler's steps: until all are handed out and finished (and the longest of these steps), a step that
# hands out a thousand jobs of one queue while all others are idle, a take-over, a claim, and one refresh of the console (overview).

part_queues() {
    local n name value
    for n in ${QUEUES:-100 1000 10000 50000}; do
        psql -XAtq -d postgres -c "drop database if exists many" -c "create database many"
        "$QUEUETOP" install "host=$dir user=postgres dbname=many" >/dev/null
        psql -XAtq -v ON_ERROR_STOP=1 -d many -v n="$n" -f "$here/queues.sql" >"$dir/queues.out"
        while IFS='|' read -r name value; do
            figure queues "$name" "$n" "$value"
        done <"$dir/queues.out"
    done
    psql -XAtq -d postgres -c "drop database many"
}
