#!/bin/bash
# By hand: changes one place of sql/core at a time, in a copy of the tree, and runs the tests that must notice it. Prints
# for each mutation the test that failed, or "survived"; ends with 1 if one survived. tests/README.md has the table.
#   tests/mutants.sh            all of them: about half an hour on two cores
#   tests/mutants.sh 'fail*'    only these
# First the tests run unchanged: a test that is red by itself would seem to notice everything. Tests that have no end within
# five times as long as this run (a minute at least) notice the mutation, too.
set -eu
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.."
only=${1:-*}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
names=() files=() tests=() olds=() news=()

# mutant NAME FILE "TESTS" OLD NEW: OLD must stand in the file exactly once
mutant() {
    # shellcheck disable=SC2053 # a pattern
    [[ $1 == $only ]] || return 0
    names+=("$1") files+=("sql/core/$2.sql") tests+=("$3") olds+=("$4") news+=("$5")
}

# the cursor and the leases
mutant 'cursor: stays one job behind what was cut' 41_cut 'test_cut' \
    'array_agg(seqs[n]) as cuts from chance' 'array_agg(seqs[n] - 1) as cuts from chance'
mutant 'cursor: does not move' 41_cut 'test_cut' 'select s.queue, a, a, coalesce(s.low, g.low), s.measured' \
    'select s.queue, s.seq, a, coalesce(s.low, g.low), s.measured'
mutant 'claim: the rest keeps the last job that was split off' 50_claim 'test_claim' 'x.seqs[split.n + 1:]' 'x.seqs[split.n:]'
mutant 'claim: waits for a lease that another claim has locked' 50_claim 'test_claim' \
    'order by x.lease limit 1 for update skip locked' 'order by x.lease limit 1 for update'
mutant 'claim: takes the lease without its lock' 50_claim 'test_claim' \
    'order by x.lease limit 1 for update skip locked' 'order by x.lease limit 1'
mutant 'claim: also for a node that drains' 50_claim 'test_acts' "n.state <> 'up' or is_dead" 'false or is_dead'
mutant 'claim: an expired job is handed out' 50_claim 'test_expiry' "and w.seqs[pg_catalog.width_bucket(j.seq, w.seqs)] = j.seq
              and (j.expires_at > at) is not false" 'and w.seqs[pg_catalog.width_bucket(j.seq, w.seqs)] = j.seq'
mutant 'steal: a lease that ends at this moment' 43_schedule 'test_lease' \
    'l.lock_timeout < now() limit 1000))
          and w.lock_key is not null and w.lock_timeout < now()' 'l.lock_timeout <= now() limit 1000))
          and w.lock_key is not null and w.lock_timeout <= now()'
mutant 'steal: waits for an answer' 43_schedule 'test_races' 'order by w.lease + 0 for update skip locked) z;
    if leases is null' 'order by w.lease + 0 for update) z;
    if leases is null'
mutant 'steal: without a lock' 43_schedule 'test_races' 'order by w.lease + 0 for update skip locked) z;
    if leases is null' 'order by w.lease + 0) z;
    if leases is null'
mutant 'take back: in any order' 43_schedule 'test_lease' \
    "where becomes <> 'cancelled' order by was) j" "where becomes <> 'cancelled' order by was desc) j"
mutant 'take back: one try more than max_tries' 43_schedule 'test_lease' \
    'q.tries + 1 >= coalesce(q.max_tries, e.max_tries, 5)' 'q.tries >= coalesce(q.max_tries, e.max_tries, 5)'

# answers
mutant 'complete: one job, without the version' 51_answer 'test_fencing' \
    'where w.lease = complete_single.lease and w.version = complete_single.version and w.lock_key' \
    'where w.lease = complete_single.lease and w.lock_key'
mutant 'complete: the last job of a lease, without the version' 51_answer 'test_fencing' \
    'where w.lease = complete_single.lease and w.version = complete_single.version
          and w.lock_key' 'where w.lease = complete_single.lease
          and w.lock_key'
mutant 'complete: jobs of one lease, without the version' 51_answer 'test_fencing' \
    'where w.lease = leave_lease.lease and w.version = leave_lease.version and w.lock_key = leave_lease.node
      and said' 'where w.lease = leave_lease.lease and w.lock_key = leave_lease.node
      and said'
mutant 'complete: whole leases, without the version' 51_answer 'test_fencing' \
    'where w.ctid = g.at and w.version = g.version and w.lock_key' 'where w.ctid = g.at and w.lock_key'
mutant 'complete, fail: parts of leases, without the version' 51_answer 'test_fencing' \
    'select * from work_queue w where w.lease = g.lease and w.version = g.version
              and' 'select * from work_queue w where w.lease = g.lease
              and'
mutant 'complete: parts of leases, without a lock' 51_answer 'test_races' \
    'where w.lease = any(complete_rest.leases) and w.lock_key = complete_rest.node
      and only_ours()
    order by w.lease + 0 for update' 'where w.lease = any(complete_rest.leases) and w.lock_key = complete_rest.node
      and only_ours()
    order by w.lease + 0'
mutant 'fail: one try more than max_tries' 51_answer 'test_retry' \
    'q.tries + 1 >= coalesce(q.max_tries, m.max_tries, 5)' 'q.tries >= coalesce(q.max_tries, m.max_tries, 5)'
mutant 'fail: without a lock' 51_answer 'test_races' 'w.lease = any(fail.leases) and w.lock_key = fail.node
    order by w.lease + 0 for update' 'w.lease = any(fail.leases) and w.lock_key = fail.node
    order by w.lease + 0'
mutant 'extend: without the version' 51_answer 'test_fencing' \
    'select w.lease from work_queue w where w.lease = g.lease and w.version = g.version
              and w.lock_key = extend.node' 'select w.lease from work_queue w where w.lease = g.lease
              and w.lock_key = extend.node'
mutant 'give back: without the scheduler'"'"'s lock' 51_answer 'test_races' 'perform scheduler_lock(true);
    select coalesce(pg_catalog.array_agg(t.seq)' 'select coalesce(pg_catalog.array_agg(t.seq)'

# which queues a step cuts
mutant 'cut: a queue that stands empty is not looked for' 43_schedule 'test_fair' \
    'whole or t.more and exists (select unnest(t.waiting)' 'whole or false and exists (select unnest(t.waiting)'
mutant 'cut: of a few queues, forgets what was claimed of others' 43_schedule 'test_fair' \
    'new.jobs := new.jobs + greatest(0, t.jobs - free);' 'new.jobs := new.jobs + 0;'

# limits, nodes, folds
mutant 'rate: burst + 1' 44_limits 'test_rate' \
    'coalesce(c.burst, greatest(1, floor(c.rate)))::float8 as burst' \
    '1 + coalesce(c.burst, greatest(1, floor(c.rate)))::float8 as burst'
mutant 'limit: one job more than max_running' 44_limits 'test_limits' \
    'greatest(0, least(c.max_running - coalesce(s.jobs, 0),' 'greatest(0, least(1 + c.max_running - coalesce(s.jobs, 0),'
mutant 'node: dead at the very moment' 00_schema 'test_lease' 'heartbeat operator(pg_catalog.<)' \
    'heartbeat operator(pg_catalog.<=)'
mutant 'fold: two at a time' 42_fold 'test_queues' 'where term = -1 for update skip locked;' 'where term = -1;'
mutant 'fold: forgets what the last fold saw in progress' 42_fold 'test_counters' \
    'xid = any(array(select pg_snapshot_xip(last.snapshot)) || last.xid)
    ), head' 'xid = last.xid
    ), head'
mutant 'fold: forgets the deltas of the transaction that folded last' 42_fold 'test_counters' \
    'array(select pg_snapshot_xip(last.snapshot)) || last.xid)
    ), head' 'array(select pg_snapshot_xip(last.snapshot)))
    ), head'
mutant 'fold: in an old snapshot' 42_fold 'test_session' 'perform isolation_check();' ''
mutant 'books: in an old snapshot' 82_check 'test_session' 'perform isolation_check();
    if moved()' 'if moved()'

# pushes and acts
mutant 'push: rows in the order of the call, not of the ids' 30_push 'test_push' 'from numbered order by id;' 'from numbered;'
mutant 'push: rows in the order of the call, not of the keys' 30_push 'test_push' \
    'order by queue collate "C", unique_key collate "C", case when unique_key is null then id end, seq
        on conflict' 'order by seq
        on conflict'
mutant 'act: may stay open for ever' 40_schedule 'test_scheduler' \
    "perform set_config('idle_in_transaction_session_timeout', '10s', true);" 'null;'
mutant 'act: jobs that wait are not locked' 72_act 'test_acts' \
    "order by q.id for update)" "order by q.id)"
mutant 'pause: free leases are not locked' 73_queues 'test_acts' 'order by w.lease + 0 for update;' 'order by w.lease + 0;'
mutant 'requeue: a key is not looked at' 71_requeue 'test_requeue' \
    "filter (where q.unique_key is null or q.state <> 'failed')" "filter (where true)"
mutant 'requeue: a newer key is an error' 71_requeue 'test_requeue' \
    "exception when unique_violation then" "exception when division_by_zero then"

[ ${#names[@]} -gt 0 ] || { echo "no mutation is called $only" >&2; exit 2; }

mutate() { # mutate I: prints the file with this mutation
    OLD=${olds[$1]} NEW=${news[$1]} awk 'BEGIN { RS = "\001" } {
        at = index($0, ENVIRON["OLD"])
        rest = substr($0, at + length(ENVIRON["OLD"]))
        if (!at || index(rest, ENVIRON["OLD"])) exit 1
        printf "%s%s%s", substr($0, 1, at - 1), ENVIRON["NEW"], rest
    }' "${files[$1]}" || { echo "${names[$1]}: its text does not stand in ${files[$1]} once" >&2; return 2; }
}

limit=7200
check() { # check TESTS TIMES: what make printed is in $tmp/out
    (cd "$tmp/tree" && timeout $limit make -s "-j$(nproc)" WERROR=1 N="$2" check-sql T="$1" >"$tmp/out" 2>&1 </dev/null)
}

for i in "${!names[@]}"; do mutate "$i" >"$tmp/$i"; done
mkdir "$tmp/tree"
tar --exclude=./.git -cf - . | tar -C "$tmp/tree" -xf -
all=$(printf '%s\n' "${tests[@]}" | tr ' ' '\n' | sort -u | tr '\n' ' ')
SECONDS=0
check "$all" 1 || { cat "$tmp/out"; echo "these tests fail without a mutation"; exit 1; }
limit=$((5 * SECONDS > 60 ? 5 * SECONDS : 60))

survivors=0
echo "| mutation of \`sql/core\` | noticed by |"
echo "|---|---|"
for i in "${!names[@]}"; do
    file=$tmp/tree/${files[i]}
    cp "$file" "$tmp/was"
    cp "$tmp/$i" "$file"
    failed=0
    check "${tests[i]}" 2 || failed=$? # twice: the first failure ends it, and no program is given a second try
    if [ $failed = 0 ]; then
        by='**survived**'
        survivors=$((survivors + 1))
    else
        by=$(awk '/^\[  FAILED  \] [a-z]/ && !name { name = $4 } /^FAIL/ && !test { n = split($2, part, "/"); test = part[n] }
                  END { if (test) print "`" test "`" (name ? ", " name : "") }' "$tmp/out")
        [ $failed != 124 ] || by="${tests[i]}: no end"
        [ -n "$by" ] || { cat "$tmp/out"; exit 1; } # it does not build
    fi
    echo "| ${names[i]} | $by |"
    cp "$tmp/was" "$file"
done
[ $survivors = 0 ]
