-- What the soak knows, and its checks. Table push is the ledger: the pusher writes it in the transaction of the push. The
-- other tables are loaded at the end, from the files of the processes (soak.h). Each check is a view that lists what is wrong,
-- with the columns check and what. soak.look() is called all the time: it checks what must hold in every snapshot.
-- soak.faults() is called at the end, when nothing runs any more.
create schema soak;

-- The engine finds a job in a lease by binary search, so a wrong order would lose a job, even if it is wrong only for a moment.
create function soak.ascending(seqs bigint[]) returns boolean language sql immutable as
$$ select not exists (select from unnest($1[:cardinality($1) - 1], $1[2:]) v (a, b) where a >= b) $$;
alter table queues.work_queue add constraint ascending check (soak.ascending(seqs));

create table soak.push (id uuid primary key, queue text not null, key text, expires_at timestamptz, pushed boolean not null, twin uuid);
create table soak.acked (id uuid);
create table soak.rolled (id uuid);
create table soak.run (job uuid, node text, lease bigint, version int, seq bigint, try int, queue text, claimed timestamptz);
create table soak.answer (job uuid, node text, lease bigint, version int, seq bigint, said text, outcome text);
create table soak.act (action uuid, verb text, changed bigint);
create table soak.cmd (job uuid, node text, try int);
create table soak.sample (n int, fault text);
create table soak.bound (queue text primary key, most int); -- the highest max_running that was ever set

create view soak.deleted as
select (r ->> 'id')::uuid as id, (select x ->> 'queue' from jsonb_array_elements(b.before) x where x ->> 'id' = r ->> 'id') as queue from queues.audit_batch b join queues.audit a using (action), jsonb_array_elements(b.rows) r
where a.verb = 'delete' and r ->> 'state' = 'deleted';

-- Jobs that requeue made from finished ones. Only the audit knows all of them.
create view soak.again as
select z.id, coalesce((select queue from queues.queue q where q.id = z.id), (select queue from queues.history h where h.id = z.id),
                      (select d.queue from soak.deleted d where d.id = z.id)) as queue
from (select (regexp_match(r ->> 'why', '^as new job (.*)$'))[1]::uuid as id
      from queues.audit_batch b join queues.audit a using (action), jsonb_array_elements(b.rows) r
      where a.verb = 'requeue' and r ->> 'why' like 'as new job %') z;

create view soak.job as -- all jobs that must exist
select id, queue from soak.push where pushed union all select id, queue from soak.again;

-- Attempts of jobs, from the claim to the end, according to the files of the processes.
create view soak.span as
select queue, id, seq, node, started, finished from (
    select queue, id, null::bigint as seq, node, started, finished from queues.history where state = 'completed'
    union all
    select queue, job, seq, node, started, ended from queues.attempt) z
where started is not null;

create view soak.bad_lost as
select 'lost' as check, 'pushed, and nowhere: ' || j.id as what from soak.job j
where not exists (select from queues.queue q where q.id = j.id) and not exists (select from queues.history h where h.id = j.id)
  and not exists (select from soak.deleted d where d.id = j.id)
union all
select 'lost', 'committed, and not in the ledger: ' || id from soak.acked a where not exists (select from soak.push p where p.id = a.id)
union all
select 'lost', 'its twin was never pushed: ' || p.id from soak.push p
where not p.pushed and p.twin is not null and not exists (select from soak.job j where j.id = p.twin)
union all
select 'lost', 'a run of ' || r.schedule || ' is nowhere: ' || r.job from queues.cron_run r
where r.pushed and not exists (select from queues.queue q where q.id = r.job) and not exists (select from queues.history h where h.id = r.job)
  and not exists (select from soak.deleted d where d.id = r.job);

create view soak.bad_ghost as
select 'ghost' as check, 'nobody pushed ' || id as what from (
    select id from queues.queue where queue not like 'cron%' union all select id from queues.history where queue not like 'cron%') z
where not exists (select from soak.job j where j.id = z.id)
union all
select 'ghost', 'rolled back, and there: ' || r.id from soak.rolled r
where exists (select from soak.job j where j.id = r.id) or exists (select from queues.queue q where q.id = r.id)
   or exists (select from queues.history h where h.id = r.id);

create view soak.bad_twice as
select 'twice' as check, 'finished twice: ' || id as what from queues.history group by id having count(*) > 1
union all
select 'twice', 'finished and not: ' || id from queues.queue q where exists (select from queues.history h where h.id = q.id)
union all
select 'twice', 'deleted and there: ' || d.id from soak.deleted d
where exists (select from queues.queue q where q.id = d.id) or exists (select from queues.history h where h.id = d.id)
union all
select 'twice', 'completions accepted: ' || count(*) || ' of ' || job from soak.answer
where said = 'complete' and outcome = 'done' group by job having count(*) > 1
union all
select 'twice', 'accepted, and not completed in the books: ' || a.job from soak.answer a
where said = 'complete' and outcome = 'done'
  and not exists (select from queues.history h where h.id = a.job and h.state = 'completed' and h.node = a.node)
union all -- every second time of the schedule, also while no scheduler ran
select 'twice', 'runs of ' || schedule || ' are not one a second: ' || due from (
    select schedule, due, lag(due) over (partition by schedule order by due) as before from queues.cron_run) z where due <> before + interval '1 s';

-- A job gets a new seq whenever it goes back into the queue. So each seq has one end, and the last claimed seq completes.
create view soak.bad_fence as
select 'fence' as check, 'two ends of seq ' || seq || ' of ' || job || ': ' || string_agg(what, ', ' order by what) as what from (
    select job, seq, said || ' ' || outcome as what from soak.answer
    where outcome in ('done', 'retry', 'failed', 'cancelled', 'given back')
    union all
    select job, seq, outcome from queues.attempt where outcome = 'lost') z group by job, seq having count(*) > 1
union all
select 'fence', 'completed by seq ' || a.seq || ', and claimed later as ' || max(r.seq) || ': ' || a.job
from soak.answer a join soak.run r on r.job = a.job and r.seq > a.seq
where a.said = 'complete' and a.outcome = 'done' group by a.job, a.seq
union all
select 'fence', 'accepted from a lease or version that nobody claimed: ' || a.job from soak.answer a
where a.outcome in ('done', 'retry', 'failed', 'cancelled', 'given back')
  and not exists (select from soak.run r where (r.job, r.node, r.lease, r.version, r.seq) = (a.job, a.node, a.lease, a.version, a.seq))
union all
select 'fence', 'claimed twice under one token: ' || job from soak.run group by job, lease, version, seq having count(*) > 1
union all
select 'fence', 'completed by ' || h.node || ', who never had it: ' || h.id from queues.history h
where h.state = 'completed' and not exists (select from soak.run r where r.job = h.id and r.node = h.node)
  and not exists (select from soak.cmd c where c.job = h.id and c.node = h.node);

-- How many ran at the same time, according to the files. The time of a claim is the beginning of its transaction, so two
-- attempts that follow closely may seem to overlap a little.
create view soak.bad_limits as
with e as (
    select s.queue, null as key, b.most, started + interval '250 ms' as at, 1 as d, finished from soak.span s join soak.bound b using (queue)
    where finished > started + interval '250 ms'
    union all
    select s.queue, null, b.most, finished, -1, finished from soak.span s join soak.bound b using (queue)
    where finished > started + interval '250 ms'
    union all
    select s.queue, p.key, 1, started + interval '250 ms', 1, finished from soak.span s join soak.push p using (id)
    where p.key is not null and finished > started + interval '250 ms'
    union all
    select s.queue, p.key, 1, finished, -1, finished from soak.span s join soak.push p using (id)
    where p.key is not null and finished > started + interval '250 ms'
), n as (
    select queue, key, most, sum(d) over (partition by queue, key order by at, d) as n from e)
select 'limits' as check, concat_ws(' ', 'at a time in', queue, key) || ': ' || max(n) as what from n where n > most group by queue, key, most
union all
select 'limits', 'sampled: ' || fault from soak.sample where fault <> '';

-- A window of any length may have at most burst + rate * length starts. The bounds are those of queue "rate".
create view soak.bad_rate as
with s as (
    select claimed as at, row_number() over (order by claimed, lease, seq) as k from soak.run where queue = 'rate'
), w as (
    select at, k, max(20 * extract(epoch from at) - (k - 1)) over (order by k) as best from s)
select 'rate' as check, 'starts above burst + rate: ' || max(k - 20 * extract(epoch from at) + best)::int - 10 as what
from w having max(k - 20 * extract(epoch from at) + best) > 10 + 20 * 0.1;

-- An expiry that has passed no longer counts when the job was requeued. The tolerance of a second: the time of a claim is when it
-- began to look.
create view soak.requeued as
select (r ->> 'id')::uuid as id, b.at from queues.audit_batch b join queues.audit a using (action), jsonb_array_elements(b.rows) r
where a.verb = 'requeue' and r ->> 'state' is not null;

create view soak.bad_expired as
select 'expired' as check, 'claimed after its time: ' || r.job as what from soak.run r join soak.push p on p.id = r.job
where r.claimed > p.expires_at
  and not exists (select from soak.requeued q where q.id = r.job and q.at > p.expires_at and q.at < r.claimed + interval '1 s')
union all
select 'expired', 'ended for its time, before it: ' || h.id from queues.history h join soak.push p using (id)
where h.state = 'cancelled' and h.error = 'expired' and h.finished < p.expires_at;

create view soak.bad_counters as
with truth as (
    select queue, count(*) filter (where state = 'scheduled') as scheduled, count(*) filter (where state = 'ready') as ready,
           count(*) filter (where state = 'retry') as retry, count(*) filter (where state = 'failed') as failed,
           count(*) filter (where state = 'blocked') as blocked from queues.queue group by queue
), o as (
    select queue, scheduled, ready + running as ready, retry, failed, blocked from queues.overview()
), done as (
    select h.queue, count(*) filter (where h.state = 'completed') as completed,
           count(*) filter (where h.state = 'cancelled' and a.verb is distinct from 'discard') as cancelled
    from queues.history h left join queues.audit a on a.action = h.last_action group by 1
), lost as (
    select queue, count(*) filter (where outcome = 'lost') as lost from queues.attempt group by 1)
select 'counters' as check, queue || ': ' || row(o.*)::text || ' is ' || row(t.*)::text as what from o full join truth t using (queue)
where (coalesce(o.scheduled, 0), coalesce(o.ready, 0), coalesce(o.retry, 0), coalesce(o.failed, 0), coalesce(o.blocked, 0)) <>
      (coalesce(t.scheduled, 0), coalesce(t.ready, 0), coalesce(t.retry, 0), coalesce(t.failed, 0), coalesce(t.blocked, 0))
union all
select 'counters', queue || ': completed, cancelled, lost ' || concat_ws(' ', v.completed, v.cancelled, v.lost) || ' are '
       || concat_ws(' ', d.completed, d.cancelled, l.lost)
from queues.overview() v left join done d using (queue) left join lost l using (queue)
where (v.completed, v.cancelled, v.lost) <> (coalesce(d.completed, 0), coalesce(d.cancelled, 0), coalesce(l.lost, 0))
union all
select 'counters', 'pushed ' || o.pushed || ', and known are ' || j.n
from (select sum(pushed) as pushed from queues.overview() where queue not like 'cron%') o, (select count(*) as n from soak.job where queue is distinct from 'cron.tick') j where o.pushed <> j.n
union all
select 'counters', 'repaired: ' || queue from queues.checked where repairs > 0;

create view soak.bad_stuck as
select 'stuck' as check, state || ' for ever: ' || id as what from queues.queue where state <> 'failed'
union all
select 'stuck', 'lease ' || lease || ' of nobody''s jobs' from queues.work_queue;

create view soak.bad_audit as
select 'audit' as check, 'no answer is kept of ' || verb || ' ' || action as what from queues.audit a
where not exists (select from queues.audit_batch b where b.action = a.action)
union all
select 'audit', 'batches of ' || action || ' are not 1 to n' from queues.audit_batch group by action having max(batch) <> count(*)
union all
select 'audit', 'the operator was told ' || x.changed || ' of ' || x.verb || ' ' || x.action || ', the audit says ' || coalesce(l.changed::text, 'nothing')
from soak.act x left join queues.audit_log l using (action) where l.changed is distinct from x.changed
union all
select 'audit', 'cancelled by nobody: ' || id from queues.history h left join queues.audit a on a.action = h.last_action
where h.state in ('cancelled', 'failed') and h.error is distinct from 'expired' and coalesce(a.verb not in ('cancel', 'discard'), true);

create view soak.bad_leases as
select 'leases' as check, 'in two leases: ' || queue || ' ' || seq as what
from (select queue, unnest(seqs) as seq from queues.work_queue) z group by queue, seq having count(*) > 1
union all
select 'leases', 'hidden: ' || lease from queues.work_queue where lease not in (select lease from queues.live);

create function soak.faults() returns table ("check" text, what text) language sql stable as $$
    select * from soak.bad_lost union all select * from soak.bad_ghost union all select * from soak.bad_twice
    union all select * from soak.bad_fence union all select * from soak.bad_limits union all select * from soak.bad_rate
    union all select * from soak.bad_expired union all select * from soak.bad_counters union all select * from soak.bad_stuck
    union all select * from soak.bad_audit union all select * from soak.bad_leases
$$;

create function soak.look() returns text language sql stable as $$
    select concat_ws('; ',
        (select string_agg(queue || ' has ' || n || ' in leases', ', ') from (
             select queue, sum(cardinality(seqs)) as n from queues.work_queue group by queue) w join soak.bound b using (queue) where n > most),
        (select string_agg(queue || ' key ' || concurrency_key || ' has ' || n || ' ready', ', ') from (
             select queue, concurrency_key, count(*) as n from queues.queue where state = 'ready' and concurrency_key is not null
             group by 1, 2) k where n > 1),
        (select string_agg(distinct 'paused and handed out: ' || queue, ', ')
         from queues.work_queue join queues.queue_config using (queue) where paused_at is not null and lock_key is null),
        (select string_agg(what, ', ') from soak.bad_leases),
        (select string_agg(what, ', ') from soak.bad_counters where what not like '%: completed, cancelled, lost%' and what not like 'pushed %'))
$$;
