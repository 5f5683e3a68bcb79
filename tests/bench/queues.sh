# shellcheck shell=bash disable=SC2154
# queues: what the number of queues costs (QUEUES, "100 1000 10000 50000"). One statement pushes a job to each queue. Measured:
# processor time and pages of the session that makes the steps. Rows: all jobs are handed out and finished; the longest step
# of these; the folds beside them; a step that hands out a thousand jobs of one queue while all others are idle; a take-over;
# a claim; one refresh of the console (overview). Exit code 1 if a bar is missed: no step takes longer than 1 s; a take-over
# takes 5 s at most; ten times as many queues cost at most 15 times as much; a step and a claim cost the same with any number
# of queues.

part_queues() {
    local n name value missed
    for n in ${QUEUES:-100 1000 10000 50000}; do
        psql -XAtq -d postgres -c "drop database if exists many" -c "create database many"
        "$QUEUETOP" install "host=$dir user=postgres dbname=many" >/dev/null
        psql -XAtq -v ON_ERROR_STOP=1 -d many -v n="$n" -f "$here/queues.sql" >"$dir/queues.out"
        while IFS='|' read -r name value; do
            [ -n "$value" ] && figure queues "$name" "$n" "$value"
        done <"$dir/queues.out"
    done
    psql -XAtq -d postgres -c "drop database many"
    missed=$(judge_queues <"$RAW")
    [ -z "$missed" ] || { say "missed: $missed"; exit 1; }
}

# Reads raw figures; prints a line for each bar that was missed.
judge_queues() {
    awk -F'\t' '
        $1 == "queues" {
            v[$2, $3 + 0] = $4 + 0; row[$2] = 1
            if ($3 + 0 > most) { before = most; most = $3 + 0 } else if ($3 + 0 > before && $3 + 0 < most) before = $3 + 0
        }
        function miss(what, is, bar) { printf "%s: %s (%s at most)\n", what, is, bar }
        END {
            for (r in row) {
                now = v[r, most]; was = before ? v[r, before] : 0
                if (r ~ /longest step ms$/ && now > 1000) miss(r, now, 1000)
                if (r == "a take-over, ms" && now > 5000) miss(r, now, 5000)
                if (r ~ /^(all new|all again|a refresh.*), ms$/ && was > 0 && now > 1.5 * was * most / before)
                    miss(r " against " before " queues", now / was, 1.5 * most / before)
                if (r ~ /^(a step|a claim).*, ms$/ && was > 0 && now > 1.5 * was + 0.5)
                    miss(r " against " before " queues", now, 1.5 * was + 0.5)
            }
        }'
}
