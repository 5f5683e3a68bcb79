#!/bin/bash
# Makes tables of the raw figures that run.sh wrote: the median of the rounds, and ratios (a ratio is the median of the
# rounds' ratios). Prints Markdown; with --readme it writes it between the markers of the README.md beside it.
#   tests/bench/table.sh [--readme] RAW...
set -euo pipefail
cd "$(dirname "$0")/../.."
readme=
if [ "${1:-}" = --readme ]; then
    readme=1
    shift
fi

table() {
    awk -F'\t' '
function median(list,   v, n, i, j, t) {
    n = split(list, v, " ")
    for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return n ? v[int((n + 1) / 2)] : ""
}
function ratio(part, row, a, b,   x, y, n, m, i, list) {
    n = split(value[part, row, a], x, " "); m = split(value[part, row, b], y, " ")
    for (i = 1; i <= n && i <= m; i++) if (y[i] + 0 != 0) list = list " " x[i] / y[i]
    return list == "" ? "" : sprintf("%.2f", median(list))
}
function shown(v,   s) { # with commas between the thousands
    if (v == "" || v !~ /^-?[0-9]+$/) return v
    while (length(v) > 3) { s = "," substr(v, length(v) - 2) s; v = substr(v, 1, length(v) - 3) }
    return v s
}
function name(e) { return e in label ? label[e] : e }
function print_part(part,   i, j, k, n, r, line, under, pairs, ab) {
    line = "| " (part in title ? title[part] : part) " |"; under = "|---|"
    for (i = 1; i <= columns[part]; i++) { line = line " " name(column[part, i]) " |"; under = under "---|" }
    n = split(ratios[part], pairs, " ")
    for (j = 1; j <= n; j++) { split(pairs[j], ab, "/"); line = line " " name(ab[1]) " : " name(ab[2]) " |"; under = under "---|" }
    print "\n" line "\n" under
    for (k = 1; k <= rows[part]; k++) {
        r = row[part, k]; line = "| " r " |"
        for (i = 1; i <= columns[part]; i++) line = line " " shown(median(value[part, r, column[part, i]] "")) " |"
        for (j = 1; j <= n; j++) { split(pairs[j], ab, "/"); line = line " " ratio(part, r, ab[1], ab[2]) " |" }
        print line
    }
    if (part in note) print "\n" note[part]
}
function print_held(   n, k, i, p, e, what, before, after, pages, any) { # a line for each engine and each thing that was held
    n = split("nothing|snapshot|open push|a busy process|pg_dump", what, "|")
    before = "jobs/s before"; after = "jobs/s in its last 8 s"; pages = "pages a job"
    for (k = 1; k <= n; k++) {
        p = "held: " what[k]
        for (i = 1; i <= columns[p]; i++) {
            e = column[p, i]
            if (!any++) print "\n| held " fact["held"] " | engine | " before " | " after " | last : before | " pages " before | in its last 8 s |\n|---|---|---|---|---|---|---|"
            # here a ratio compares two rows of one engine, not two engines in one row
            value[p, "both", "after"] = value[p, after, e]; value[p, "both", "before"] = value[p, before, e]
            print "| " title[p] " | " name(e) " | " shown(median(value[p, before, e])) " | " shown(median(value[p, after, e])) " | " \
                ratio(p, "both", "after", "before") " | " median(value[p, pages " before", e]) " | " median(value[p, pages " in its last 8 s", e]) " |"
        }
    }
    if (any) print "\n" note["held"]
}
BEGIN {
    split("plain insert push uncounted ours both none graphile pgboss pgq prototype deferred second last", e, " ")
    split("plain table|ours, INSERT|ours, push()|ours uncounted|ours|ours, complete_and_claim|ours, no history|graphile-worker|pg-boss|PgQ|prototype|deferred books|second tenth|last tenth", l, "|")
    for (i in e) label[e[i]] = l[i]
    title["push"] = "push, jobs/s"; ratios["push"] = "insert/plain insert/uncounted insert/graphile push/graphile insert/pgboss"
    title["work"] = "claim + complete, jobs/s"; ratios["work"] = "ours/graphile both/graphile ours/plain both/plain"
    title["wal"] = "the same, bytes of WAL a job without page images"; ratios["wal"] = "ours/graphile both/graphile none/graphile"
    title["walfull"] = "with the page images after a checkpoint"
    title["instructions"] = "the same, instructions a job in the server process"; ratios["instructions"] = "ours/graphile both/graphile both/plain"
    title["designs"] = "claim + complete beside designs not taken, jobs/s"; ratios["designs"] = "ours/graphile both/graphile prototype/graphile deferred/graphile plain/graphile"
    title["designs: wal"] = "the same, bytes of WAL a job without page images"
    title["level"] = "ours by the number of waiting jobs, jobs/s"; ratios["level"] = "1000000/10000"
    title["counters"] = "ours with and without counters, jobs/s"; ratios["counters"] = "counted/uncounted"
    title["held: nothing"] = "nothing, to compare"
    title["held: snapshot"] = "a repeatable-read snapshot"
    title["held: open push"] = "an open transaction that pushed"
    title["held: a busy process"] = "a core, by a process that counts, to compare"
    title["held: pg_dump"] = "pg_dump, again and again"
    title["counts"] = "overview() of 50 queues"
    title["queues"] = "many queues, a job each, while their number grows"; ratios["queues"] = "10000/1000 50000/10000"
    title["fair"] = "49 queues with a job a second, one with 1 M"; ratios["fair"] = "beside/alone"
    title["latency"] = "push to start at 100 jobs/s"; ratios["latency"] = "ours/graphile"
    title["programs"] = "whole programs, no-op jobs"; ratios["programs"] = "ours/graphile"
    title["hour"] = "a mixed load, means"; ratios["hour"] = "last/second"
    note["push"] = "Ours uncounted: INSERT without the statement trigger, which checks the jobs and keeps the counters."
    note["work"] = "50 queues. Ours: claim() and complete() in two transactions, or complete_and_claim() in one; history in full, counters, fencing, scheduler beside. graphile-worker and pg-boss: the statements that their own libraries send (50 task identifiers, no queue names; pg-boss 10 with the fetch index of 12). PgQ: one consumer, whole batches. The figures count jobs that are gone from the tables, not transactions."
    note["instructions"] = "One client, counted by valgrind. Not counted: the kernel, the disk and the scheduler."
    note["counters"] = "Uncounted: complete() writes nothing to table delta."
    note["level"] = "A pusher replaces the jobs that are done. Pages: how often a page of a table or an index was read, from memory or disk."
    note["held"] = "Batches of 10, 8 clients. At the start 1 M jobs wait, of ours 2.5 M."
    note["fair"] = "4 workers, up to 10 jobs at a time, 20 ms a batch."
    note["latency"] = "graphile-worker: its own runner with its published settings. Idle: processor time of the worker, the scheduler and all processes of the server."
    title["long"] = "a mixed load with all that happens in a day, means"; ratios["long"] = "last/second"
    note["long"] = "At the end the sums are checked (tests/bench/long.sh)."
    title["slow"] = "on a slow machine, jobs/s"; ratios["slow"] = "ours/plain both/plain"
    note["slow"] = "Claim 10, complete 10, 4 clients; the first seconds after the start of the scheduler count (tests/bench/slow.sh)."
    title["starved"] = "a server with a twentieth of a core"
    note["starved"] = "Two clients that claim and complete without a pause beside it (tests/bench/starved.sh)."
    note["hour"] = "From the second tenth to the last only history should grow, until its retention is over (tests/bench/hour.sh)."
    note["programs"] = "24 at a time: ours in C through the library, graphile-worker with its published settings (local queue of 500, batched completion)."
    order = "push work wal walfull designs designs:_wal instructions level counters held counts fair queues latency programs hour long starved slow"
}
$1 == "fact" { if ($2 !~ /^seconds of/ && !($2 in fact)) { fact[$2] = $4; facts = facts (facts ? "; " : "") $2 " " $4 } next }
$1 == "skip" { why[$2] = $4; next }
NF == 4 {
    if (!(($1, $3) in seen)) { seen[$1, $3]; column[$1, ++columns[$1]] = $3 }
    if (!(($1, $2) in known)) { known[$1, $2]; row[$1, ++rows[$1]] = $2 }
    value[$1, $2, $3] = value[$1, $2, $3] " " $4
}
END {
    print facts ".\n"
    print "Each figure is the median of the rounds; a ratio is the median of the rounds'\'' ratios. To measure again: `make bench` (`make bench T=\"push work\"`; `tests/bench/run.sh` says more)."
    n = split(order, p, " ")
    for (k = 1; k <= n; k++) { gsub(/_/, " ", p[k]); if (p[k] == "held") print_held(); else if (rows[p[k]]) print_part(p[k]) }
    for (s in why) print "\nSkipped: " s " (" why[s] ")."
}' "$@"
}

if [ -z "$readme" ]; then
    table "$@"
    exit 0
fi
table "$@" >"${TMPDIR:-/tmp}/bench.table.$$"
trap 'rm -f "${TMPDIR:-/tmp}/bench.table.$$" tests/bench/README.md.new' EXIT
TEXT=${TMPDIR:-/tmp}/bench.table.$$ awk '
    $0 == "<!-- bench -->" { print; while ((getline line < ENVIRON["TEXT"]) > 0) print line; skip = 1; found = 1; next }
    $0 == "<!-- /bench -->" { skip = 0 }
    !skip
    END { if (!found) { print "tests/bench/README.md has no <!-- bench --> marker" >"/dev/stderr"; exit 1 } }' tests/bench/README.md >tests/bench/README.md.new
cat tests/bench/README.md.new >tests/bench/README.md
