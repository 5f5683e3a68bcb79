-- adapter: native
-- title: queuetop's own queue
-- format: 2
-- schema: queues
-- touches: *
-- tables: meta work_queue
-- id-type: uuid
-- note: The format, by this example. Header lines, then sections; a section is ONE statement. `-- params:` names
-- note: its parameters in the order of $1, $2, ... from the vocabulary of model/adapter/params.h; a value that was not
-- note: given is NULL. Columns are matched by name with model/adapter/record.h; more columns may follow. Times are
-- note: milliseconds since 1970 (*_ms). Watcher sections only read and are cheap at any size. {schema} is the
-- note: quoted schema, {schema_lit} the same as a literal. A capability is a section that is there. What acts
-- note: answers one row a job: id, state (NULL = left alone, why), cursor (NULL = nothing follows), n.

-- name: detect
select n.nspname::text as schema from pg_namespace n where true
-- part: has_column table='meta'; column='min_protocol'
-- part: has_column table='work_queue'; column='started_seqs'
order by 1

-- name: version
select version::text from {schema}.meta

-- name: role
-- from the catalogs only: the section must answer even if the login may do nothing at all
select role, act and not standby as can_act,
       case when standby then 'this server is a standby: it takes no changes'
            when act then null
            when role = '' then format('user %s may not read schema %s: grant queues_viewer', session_user,
                                       {schema_lit})
            else format('user %s may only look: changing needs the operator''s role', session_user) end as why
from (select case when pg_has_role(n.nspowner, 'usage') then 'owner' when act then 'operator' when work then 'worker'
                  when has_schema_privilege(n.oid, 'usage') then 'viewer' else '' end as role,
             coalesce(act, false) as act, pg_is_in_recovery() as standby
      from pg_namespace n
      cross join lateral (select bool_or(proname = 'requeue' and has_function_privilege(p.oid, 'execute')) as act,
                                 bool_or(proname = 'claim' and has_function_privilege(p.oid, 'execute')) as work
                          from pg_proc p where p.pronamespace = n.oid and proname in ('requeue', 'claim')) f
      where n.nspname = {schema_lit}) r

-- name: queues
select queue, paused_at is not null as paused, paused_by, left(pause_reason, 1000) as pause_reason,
       {ms(paused_at)} as paused_ms, weight, max_running,
       format('weight %s, lease %ss, tries %s, finished jobs %s', weight, extract(epoch from lease_timeout)::float8,
              max_tries,
              case history when 'none' then 'not kept'
                           when 'meta' then format('kept without payloads for %s', retention)
                           else format('kept for %s', retention) end) as info, history <> 'none' as keeps
from {schema}.queue_config order by queue

-- name: counts
select queue, scheduled, ready, retry, running, failed, {ms(oldest)} as oldest_ms,
       pushed, completed, fails, retried, run_ms, blocked
from {schema}.overview() order by queue

-- name: rates
select queue, {ms(at)} as at_ms, pushed, completed, fails, ready, {ms(oldest)} as oldest_ms from {schema}.rates()

-- name: times
-- how long the jobs that completed in the last hour waited and ran, and how many failed for good. Read from histograms:
-- ask for it rarely. Of more than 200 queues fewer minutes are read, one at least: about 12,000
-- histograms of up to 12,000 queues. failed_left: how many of those are failed still, counted up to 10; NULL: not known
with hour as materialized (
    select * from {schema}.failed_within_hour()
), groups as materialized (
    select queue, error_key from {schema}.failure_groups()
    where last_at > now() - interval '1 h' and exists (select from hour where failed > 0)
), remain as (
    select g.queue, sum(j.n) as n, bool_or(g.error_key = '*') as more
    from groups g cross join lateral (
        select count(*) as n from (
            select from {schema}.queue q
            where q.queue = g.queue and q.error_key >= g.error_key and q.error_key <= g.error_key
              and q.state = 'failed' and q.changed > now() - interval '1 h'
            order by q.error_key desc, q.changed desc limit 10) f) j
    group by g.queue
)
select queue, completed, failed,
       case when failed > 0 and more is not true then least(10, coalesce(n, 0))::bigint end as failed_left,
       round(wait_p50)::bigint as wait_p50_ms, round(wait_p99)::bigint as wait_p99_ms,
       round(run_p50)::bigint as run_p50_ms, round(run_p99)::bigint as run_p99_ms
from {schema}.percentiles(null, now() - (
    select make_interval(mins => greatest(1, least(60, 12000 / greatest(1, count(*))))::int)
    from {schema}.queue_config))
full join hour using (queue) left join remain using (queue)

-- name: pace
-- how many jobs came in and went out in the last five whole minutes; nets: for a queue that grows, the growth in each
-- minute of the last hour
select queue, minutes, pushed, gone, completed, fails, run_ms, {ms(upto)} as upto_ms, nets::text, tokens
from {schema}.queue_pace()

-- name: life
-- A worker need not register: leases that have not expired count as signs of a worker, and sessions that wait in a slot
-- for a push (48_wake), too. The scheduler also waits in slot 0. A worker that finds no scheduler makes the step
-- itself, so a schedule may run without a scheduler.
-- Column scheduler_ms is the last sign of a scheduler that is not alive any more; if a sleeping one promised a time
-- that has not come, the last step counts. Columns held_* name the transaction that holds the scheduler's row
-- (scheduler_lock) for so long that it is no step, 10 s idle or a minute. Without pg_monitor its start is not known.
with worker as (
    select count(*) as n from (
        select lock_key from {schema}.node n where not (
-- part: node_is_dead
          ) and (heartbeat <= now() + interval '1 s' or pg_is_in_recovery() -- asleep: alive while its session exists
               or exists (select from pg_stat_activity a where a.pid = n.backend_pid))
        union
        select lock_key from {schema}.living() where lock_key is not null and lock_timeout > now()) known
), slot as (
    select count(distinct l.pid) as n from pg_locks l
    where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.granted and l.objsubid = 2
      and l.classid::bigint between {schema}.slot_class() and {schema}.slot_class() + 16
      and l.objid = (select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
                     where n.nspname = {schema_lit} and c.relname = 'queue')
      and l.database = (select oid from pg_database where datname = current_database())
), held as (
    select l.pid, coalesce(nullif(a.application_name, ''), 'no name') as app, a.usename::text as "user", a.xact_start
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.mode = 'ShareLock' and l.granted and l.objsubid = 2
      and l.classid::bigint = {schema}.slot_class() + 18
      and l.objid = (select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
                     where n.nspname = {schema_lit} and c.relname = 'queue')
      and l.database = (select oid from pg_database where datname = current_database())
      and (a.xact_start is null
           or a.xact_start < now() - case when a.state like 'idle in transaction%' then interval '10 s'
                                          else interval '1 min' end)
    order by a.xact_start limit 1
), scheduler as (
    select holder, case when until < clock_timestamp() then until - interval '3 s'
                        else (select k.at from {schema}.tick k order by k.tick desc limit 1) end as seen,
           until > clock_timestamp()
           and (until < clock_timestamp() + interval '10 s' or pg_is_in_recovery() -- or asleep: 61_sleep
                or exists (select from pg_locks l
                           where l.locktype = 'advisory' and l.mode = 'ShareLock' and l.granted and l.objsubid = 2
                             and l.classid::bigint = {schema}.slot_class() + 17 and l.objid = tab.oid
                             and l.database = (select oid from pg_database where datname = current_database())
                             and l.pid not in (select backend_pid from {schema}.node where backend_pid is not null))
               ) as alive
    from {schema}.scheduler cross join (
        select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = {schema_lit} and c.relname = 'queue') tab where term > 0 order by term desc limit 1
), late as (
    select count(*) as n, min(next_run) as since from {schema}.schedule
    where paused_at is null and next_run < now() - interval '5 s'
)
select worker.n + greatest(0, slot.n - (coalesce(scheduler.alive, false))::int) as workers,
       coalesce(scheduler.alive, false) as scheduler_alive, scheduler.holder as scheduler, late.n as overdue,
       {ms(late.since)} as overdue_ms, {ms(scheduler.seen)} as scheduler_ms,
       (select count(*) from {schema}.schedule where paused_at is null) as schedules,
       held.pid as held_pid, coalesce(left(held.app, 100), '') as held_app, coalesce(held."user", '') as held_user,
       {ms(held.xact_start)} as held_ms, short.counting, {ms(short.counting_since)} as counting_ms, short.unserved,
       short.max_queues
from worker cross join slot cross join late cross join {schema}.shortfalls() short left join scheduler on true
left join held on true

-- name: steps (queue at by)
-- what happened in one queue in each step of time (by) since the time at, for its charts; a time without a row is
-- unknown. Buckets of half an octave: bucket n holds times from 2^((n-2)/2) ms on
select {ms(at)} as at_ms, seconds, pushed, completed, fails, retried, lost, backlog,
       buckets::text, waits::text, runs::text
from {schema}.minute_steps($1::text, $2::timestamptz, $3::interval)

-- name: minutes
-- minute by minute, the last hour; a queue has no row where nothing happened
select queue, {ms(minute)} as at_ms, pushed, completed, fails, retried from {schema}.minutes()

-- name: jobs
-- params: queue states kind node error words not_words older_than younger_than min_tries top_tries ids n limit cursor
--   path in_payload
-- order: running: longest running first; failed: last failed first; ready: next to start first; completed,cancelled:
--   last finished first; queue: last in line first; failed,scheduled,retry: failed, then next due first; *: newest
--   first
-- The filter decides which index is read in which order (mode). The statement is planned with the values known, so only
-- one arm of live jobs remains. If terms must be checked row by row, at most n rows are read: the row that ends the
-- search is marked (last), and a row without an id gives the cursor to continue from. The payload is read last, when
-- all other terms fit, and only its first megabyte; a payload that is no valid text (\u0000, half a surrogate pair) has
-- no values.
with recursive params as not materialized (
    select $1::text as queue, $2::text[] as states, $3::text as kind, $4::text as node,
           case when $5::text like '~%' then lower(substr($5::text, 2)) end as part,
           case when $5::text not like '~%' then {schema}.error_key($5::text) end as error_key,
           $6::text[] as words, $7::text[] as not_words, $8::interval as older, $9::interval as younger,
           $10::int as min_tries, $11::int as top_tries, $12::text[] as ids, coalesce($13::int, 10000) as n,
           coalesce($14::int, 100) as top, $15::text as cursor, $16::text[] as path, left($17::text, 1) as how,
           substr($17::text, 2) as inside,
           lower(encode(convert_to(substr($17::text, 2), 'UTF8'), 'escape')) as inside_bytes,
           case when $12::text[] is not null then 'ids'
                when $2::text[] <@ '{completed,cancelled}' then 'final'
                when $2::text[] <@ '{running}' or ($2::text[] is null and $4::text is not null) then 'running'
                when $2::text[] <@ '{failed}' or ($1::text is null and $2::text[] <@ '{failed,scheduled,retry}')
                    then 'stuck'
                when $2::text[] <@ '{ready}' then case when $1::text is null then 'ready' else 'next' end
                when $1::text is not null then 'queue'
                else 'all' end as mode,
           coalesce($3::text, $4::text, $5::text) is null and $6::text[] is null and $7::text[] is null
               and $8::interval is null and $9::interval is null and $10::int is null and $11::int is null
               and $17::text is null as plain,
           coalesce($2::text[] && '{completed,cancelled}', $12::text[] is not null) as final
), run as materialized (
    select seq, w.queue, w.priority, w.lease, w.lock_key, w.started, w.lock_timeout
    from params p, {schema}.living() w, unnest(w.seqs) seq
    where w.lock_key is not null and (p.queue is null or w.queue = p.queue)
), ready_queues (queue) as (
    (select q.queue from {schema}.queue q where q.state = 'ready' order by q.queue limit 1)
    union all
    select (select q.queue from {schema}.queue q where q.state = 'ready' and q.queue > r.queue order by q.queue limit 1)
    from ready_queues r where r.queue is not null
), live as (
    select * from (
        select 1 as arm, row_number() over () as o, 'i' || id as cursor, x.* from params p cross join lateral (
            select id, seq, queue, kind, state::text, priority, tries, max_tries, created, run_after, changed,
                   null::timestamptz as started, null::timestamptz as finished, null::text as node, error, error_key
            from {schema}.queue q
            where p.mode = 'all' and (p.cursor is null
                                      or id < case when p.cursor like 'i%' then substr(p.cursor, 2)::uuid end)
            order by id desc limit p.n) x
        union all
        select 1, row_number() over (), 's' || seq, x.* from params p cross join lateral (
            select * from (
                select z.* from generate_series(0, 9) prio cross join lateral (
-- part live_columns:
                    select id, seq, queue, kind, state::text, priority, tries, max_tries, created, run_after, changed,
                           null::timestamptz, null::timestamptz, null::text, error, error_key
                    from {schema}.queue q
-- end part
                    where p.mode = 'queue' and coalesce(p.states && '{ready,running}', true) and q.queue = p.queue
                      and q.state = 'ready' and q.priority = prio
                      and (p.cursor is null or seq < case when p.cursor like 's%' then substr(p.cursor, 2)::bigint end)
                    order by seq desc
                    limit case when p.plain and p.states is null then p.top else p.n end) z
                union all
                (
-- part: live_columns
                 where p.mode = 'queue' and q.queue = p.queue and q.state <> 'ready'
                   and (p.cursor is null or seq < case when p.cursor like 's%' then substr(p.cursor, 2)::bigint end)
                 order by seq desc limit p.n)) y
            order by seq desc limit p.n) x
        union all
        select 1, row_number() over (), 'n' || priority || '/' || seq, x.* from params p cross join lateral (
-- part: live_columns
            where p.mode = 'next' and q.queue = p.queue and q.state = 'ready'
              and (p.cursor is null
                   or (priority, seq) > (case when p.cursor like 'n%' then substr(p.cursor, 2, 1)::smallint end,
                                         case when p.cursor like 'n%' then substr(p.cursor, 4)::bigint end))
            order by priority, seq
            limit case when p.plain then p.top + (select count(*) from run) else p.n end) x
        union all
        select 1, row_number() over (), 'n' || priority || '/' || seq, x.* from params p cross join lateral (
            select z.* from ready_queues r cross join generate_series(0, 9) prio cross join lateral (
-- part: live_columns
                where q.queue = r.queue and q.state = 'ready' and q.priority = prio
                  and (p.cursor is null
                       or (prio, seq) > (case when p.cursor like 'n%' then substr(p.cursor, 2, 1)::int end,
                                         case when p.cursor like 'n%' then substr(p.cursor, 4)::bigint end))
                order by seq limit case when p.plain then p.top + (select count(*) from run) else p.n end) z
            where p.mode = 'ready' order by priority, seq limit p.n) x
        union all
        select 1, row_number() over (), 'f' || changed || '/' || id, x.* from params p cross join lateral (
-- part: live_columns
            where p.mode = 'stuck' and p.states @> '{failed}' and q.state = 'failed'
              and (p.queue is null or q.queue = p.queue)
              and (p.error_key is null or q.error_key = p.error_key)
              and (p.cursor is null
                   or (changed, id) <
                          (case when p.cursor like 'f%'
                                then split_part(substr(p.cursor, 2), '/', 1)::timestamptz end,
                           case when p.cursor like 'f%' then split_part(p.cursor, '/', 2)::uuid end))
            order by changed desc, id desc limit p.n) x
        union all
        select 2, row_number() over (), 'd' || run_after || '/' || id, x.* from params p cross join lateral (
-- part: live_columns
            where p.mode = 'stuck' and p.states && '{scheduled,retry}' and q.state in ('scheduled', 'retry')
              and run_after is not null and (p.cursor is null or p.cursor like 'f%'
                                             or (run_after >= case when p.cursor like 'd%'
                                                     then split_part(substr(p.cursor, 2), '/', 1)::timestamptz end
                   and (run_after, id) >
                           (case when p.cursor like 'd%'
                                 then split_part(substr(p.cursor, 2), '/', 1)::timestamptz end,
                            case when p.cursor like 'd%' then split_part(p.cursor, '/', 2)::uuid end)))
            order by run_after, id limit p.n) x
        union all
        select 1, row_number() over (), 'r' || since || '/' || id, x.id, x.seq, x.queue, x.kind, x.state, x.priority,
               x.tries, x.max_tries, x.created, x.run_after, x.changed, null::timestamptz, null::timestamptz,
               null::text, x.error, x.error_key from params p cross join lateral (
            select q.*, coalesce(r.started, '-infinity') as since from run r cross join lateral (
                select id, seq, queue, kind, state::text, priority, tries, max_tries, created, run_after, changed,
                       error, error_key
                from {schema}.queue q
                where q.queue = r.queue and q.priority = r.priority and q.state = 'ready' and q.seq = r.seq limit 1) q
            where p.mode = 'running' and (p.node is null or r.lock_key = p.node)
              and (p.cursor is null or (coalesce(r.started, '-infinity'), id) >
                   (case when p.cursor like 'r%' then split_part(substr(p.cursor, 2), '/', 1)::timestamptz end,
                                        case when p.cursor like 'r%' then split_part(p.cursor, '/', 2)::uuid end))
            order by 14, 1 limit p.n) x
        union all
        select 1, row_number() over (), null, x.* from params p cross join lateral (
-- part: live_columns
            where p.mode = 'ids' and id = any({uuids(p.ids)})
            order by id desc) x
    ) a
), found as materialized (
    select l.arm, l.o, l.cursor, l.id, l.seq, l.queue, l.kind, s.state, l.priority, l.tries, l.max_tries, l.created,
           l.run_after, l.changed, l.started, l.finished, l.node, l.error, l.o = p.n as last, s.fits
    from params p, live l cross join lateral (
        select case when l.state = 'ready' and l.seq in (select seq from run) then 'running'
                    else l.state end as state) e
    cross join lateral (
        select e.state, (p.states is null or e.state = any(p.states))
           and (p.queue is null or l.queue = p.queue)
           and (p.kind is null or l.kind = p.kind)
           and (p.node is null or l.seq in (select seq from run where lock_key = p.node)
                or l.state = 'failed' and p.node = (select t.node from {schema}.attempt t where t.job = l.id
                                                    order by t.number desc limit 1))
           and (p.error_key is null or l.error_key = p.error_key)
-- part: text_terms error=l.error; created=l.created; tries=l.tries; text=l.id, l.queue, l.kind, l.error
           and (p.inside is null or exists (select from {schema}.queue h where h.id = l.id and case
-- part payload_has:
                    when p.path is null then strpos(lower(left(h.payload::text, 1000000)), lower(p.inside)) > 0
                                          or strpos(lower(encode(substr(h.body, 1, 1000000), 'escape')),
                                                    p.inside_bytes) > 0
                    when strpos(h.payload::text, '\u') > 0 and regexp_replace(h.payload::text,
                            '\\u[dD][89abAB]..\\u[dD][c-fC-F]..', '', 'g') ~ '\\u(0000|[dD][89a-fA-F])' then false
                    when p.how = '=' then h.payload #>> p.path = p.inside
-- end part
                    else strpos(lower(h.payload #>> p.path), lower(p.inside)) > 0 end)) as fits) s
    where s.fits or l.o = p.n limit (select top from params)
), final as materialized (
    select 3 as arm, row_number() over (order by h.finished desc, h.id desc) as o,
           'h' || h.finished || '/' || h.id as cursor,
           h.id, null::bigint as seq, h.queue, h.kind, h.state::text, h.priority, h.tries, h.max_tries, h.created,
           null::timestamptz as run_after, h.finished as changed, h.started, h.finished, h.node, h.error,
           coalesce(h.rank = h.n and h.finished = h.ends, false) as last, s.fits
    from (select z.*, p.n, max(z.finished) filter (where z.rank = p.n) over () as ends
          from params p, (select c.queue from {schema}.queue_config c, params p
                          where p.queue is null or c.queue = p.queue
                   union select p.queue from params p where p.queue is not null) c
          cross join lateral (
              select y.*, row_number() over (order by y.finished desc, y.id desc) as rank from (
                  select h.id, h.queue, h.kind, h.state, h.priority, h.tries, h.max_tries, h.created, h.started,
                         h.finished, h.node, h.error, h.payload, h.body
                  from {schema}.history h where p.final and p.ids is null and h.queue = c.queue
                    and (p.cursor is null or p.cursor not like 'h%'
                         or (h.finished <= case when p.cursor like 'h%'
                                                    then split_part(substr(p.cursor, 2), '/', 1)::timestamptz end
                             and (h.finished, h.id) <
                                     (case when p.cursor like 'h%'
                                           then split_part(substr(p.cursor, 2), '/', 1)::timestamptz end,
                                      case when p.cursor like 'h%' then split_part(p.cursor, '/', 2)::uuid end)))
                    and (select count(*) from found) < p.top and not exists (select from found where last)
                    and (h.state = 'completed' or p.states @> '{cancelled}')
                  order by h.finished desc
                  limit case when p.plain and p.states @> '{completed}' then p.top + 1 else p.n end) y) z
          union all
          select h.* from params p, unnest(p.ids) i cross join lateral ( -- one by one, each by its index
              select id, queue, kind, state, priority, tries, max_tries, created, started, finished, node, error,
                     payload, body, 1, 0, null::timestamptz
              from {schema}.history_of(array[
                  case when i ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then i::uuid end]) h limit 1) h
         ) h
    cross join params p cross join lateral (
        select (p.states is null or h.state::text = any(p.states))
           and (p.queue is null or h.queue = p.queue)
           and (p.kind is null or h.kind = p.kind)
           and (p.node is null or h.node = p.node)
           and (p.error_key is null or {schema}.error_key(h.error) = p.error_key)
-- part: text_terms error=h.error; created=h.created; tries=h.tries; text=h.id, h.queue, h.kind, h.error
           and (p.inside is null or case
-- part: payload_has
                    else strpos(lower(h.payload #>> p.path), lower(p.inside)) > 0 end) as fits) s
    where (h.ends is null or h.finished >= h.ends) and (s.fits or h.rank = h.n and h.finished = h.ends)
    order by h.finished desc, h.id desc limit (select top from params)
), rows_all as (
    select * from found union all select * from final
), top as (
    select * from (
        select *, row_number() over (order by arm, o) as place,
               count(*) filter (
                   where last) over (order by arm, o rows between unbounded preceding and 1 preceding) as stops
        from rows_all) r
    where stops = 0 and place <= (select top from params)
)
select id, queue, kind, state, priority, tries, max_tries, created_ms, run_after_ms, changed_ms, started_ms,
       finished_ms, node, lease, lease_until_ms, error, cursor
from (
    select t.id::text, t.queue, t.kind, t.state, t.priority::int, t.tries::int,
           coalesce(t.max_tries, c.max_tries, 5)::int as max_tries, {ms(t.created)} as created_ms,
           {ms(t.run_after)} as run_after_ms, {ms(t.changed)} as changed_ms,
           {ms(coalesce(r.started, t.started))} as started_ms, {ms(t.finished)} as finished_ms,
           coalesce(r.lock_key, t.node) as node, r.lease, {ms(r.lock_timeout)} as lease_until_ms,
           left(t.error, 300) as error, t.cursor, t.place, 0 as mark
    from top t left join run r on r.seq = t.seq left join {schema}.queue_config c on c.queue = t.queue where t.fits
    union all
    select '', '', '', '', null, 0, null, 0, null, null, null, null, null, null, null, '', t.cursor, t.place, 1
    from top t where t.last
) z order by place, mark

-- name: jobs_back
-- params: queue states kind node error words not_words older_than younger_than min_tries top_tries ids n limit cursor
--   in_payload
-- The way up in the order of section jobs: the cursor behind which the `limit` rows begin that end at the given cursor
-- (NULL = at the end of all). The result is NULL if that is the top. There is no row if only the way down is cheap:
-- then the filter has more than a queue and states that one index knows. At most n rows are read, mostly index entries.
with params as not materialized (
    select $1::text as queue, $2::text[] as states, coalesce($13::int, 10000) as n, coalesce($14::int, 100) as top,
           $15::text as cursor,
           case when num_nonnulls($3::text, $4::text, $5::text, $6::text[], $7::text[], $8::interval, $9::interval,
                                  $10::int, $11::int, $12::text[], $16::text) > 0 then null
                when $2::text[] <@ '{completed,cancelled}' then case when $2::text[] @> '{completed}' then 'final' end
                when $2::text[] = '{failed}' then 'failed'
                when $2::text[] <@ '{scheduled,retry}' then case when $1::text is null
                        and cardinality($2::text[]) = 2 then 'due' end
                when $2::text[] = '{ready}' then case when $1::text is not null then 'next' end
                when $2::text[] is not null then null
                when $1::text is not null then 'queue'
                else 'all' end as mode
), cursor_parts as (
    select split_part(substr(cursor, 2), '/', 1) as one, split_part(cursor, '/', 2) as two from params
), found as materialized (
    select z.* from params p, cursor_parts c cross join lateral (
        select changed, id, queue from {schema}.queue q where p.mode = 'failed' and q.state = 'failed'
          and (p.cursor is null or (changed, id) >= (case when p.cursor like 'f%' then c.one::timestamptz end,
                                                     case when p.cursor like 'f%' then c.two::uuid end))
        order by changed, id limit case when p.queue is null then p.top + 1 else p.n end) z
), keys_back as (
    select x.cursor, x.o from params p, cursor_parts c cross join lateral (
        select 'i' || id as cursor, row_number() over () as o from (
            select id from {schema}.queue q where p.mode = 'all'
                                              and (p.cursor is null
                                                   or id >= case when p.cursor like 'i%' then c.one::uuid end)
            order by id limit p.top + 1) z
        union all
        select 's' || seq, row_number() over () from (
            select * from (
                select y.* from generate_series(0, 9) prio cross join lateral (
                    select seq from {schema}.queue q
                    where p.mode = 'queue' and q.queue = p.queue and q.state = 'ready' and q.priority = prio
                      and (p.cursor is null or seq >= case when p.cursor like 's%' then c.one::bigint end)
                    order by seq limit p.top + 1) y
                union all
                (select seq from {schema}.queue q
                 where p.mode = 'queue' and q.queue = p.queue and q.state <> 'ready'
                   and (p.cursor is null or seq >= case when p.cursor like 's%' then c.one::bigint end)
                 order by seq limit p.top + 1)) y
            order by seq limit p.top + 1) z
        union all
        select 'n' || priority || '/' || seq, row_number() over () from (
            select priority, seq from {schema}.queue q where p.mode = 'next' and q.queue = p.queue and q.state = 'ready'
              and (p.cursor is null or (priority, seq) <= (case when p.cursor like 'n%' then c.one::smallint end,
                                                           case when p.cursor like 'n%' then c.two::bigint end))
            order by priority desc, seq desc limit p.top + 1) z
        union all
        select 'f' || changed || '/' || id, row_number() over () from (
            select changed, id from found f where p.queue is null or f.queue = p.queue order by changed, id
            limit p.top + 1) z
        union all
        select 'd' || run_after || '/' || id, row_number() over () from (
            select run_after, id from {schema}.queue q
            where p.mode = 'due' and q.state in ('scheduled', 'retry') and run_after is not null
              and (p.cursor is null or run_after <= case when p.cursor like 'd%' then c.one::timestamptz end
                   and (run_after, id) <= (case when p.cursor like 'd%' then c.one::timestamptz end,
                                           case when p.cursor like 'd%' then c.two::uuid end))
            order by run_after desc, id desc limit p.top + 1) z
        union all
        select 'h' || finished || '/' || id, row_number() over () from (
            select y.* from {schema}.queue_config f cross join lateral (
                select finished, id from {schema}.history h
                where p.mode = 'final' and h.queue = f.queue and (h.state = 'completed' or p.states @> '{cancelled}')
                  and (p.cursor is null or finished >= case when p.cursor like 'h%' then c.one::timestamptz end
                       and (finished, id) >= (case when p.cursor like 'h%' then c.one::timestamptz end,
                                              case when p.cursor like 'h%' then c.two::uuid end))
                order by finished limit p.top + 1) y
            where p.queue is null or f.queue = p.queue
            order by finished, id limit p.top + 1) z) x
)
select (select cursor from keys_back where o = p.top + 1) as cursor from params p where p.mode is not null
  and (p.mode <> 'failed' or p.queue is null or exists (select from keys_back where o = p.top + 1)
       or (select count(*) from found) < p.n)

-- name: job (ids)
-- one job by its full id, live or finished; up to a megabyte of the payload
with wanted as (
    select i::uuid as id from unnest($1::text[]) i where i ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' limit 1
), found as (
    select q.id, q.seq, q.queue, q.kind, q.state::text, q.priority, q.tries, q.max_tries, q.created, q.run_after,
           q.changed, null::timestamptz as started, null::timestamptz as finished, null::text as node, q.error,
           q.unique_key, q.payload, q.body, q.payload_type, q.run_timeout, q.lease_timeout, null::bytea as result,
           q.origin_id, q.cancel_asked is not null as cancel_asked, true as kept
    from wanted w cross join lateral (select * from {schema}.queue q where q.id = w.id offset 0) q
    union all
    select h.id, null, h.queue, h.kind, h.state::text, h.priority, h.tries, h.max_tries, h.created, h.run_after,
           h.finished, h.started, h.finished, h.node, h.error, h.unique_key, h.payload, h.body, h.payload_type,
           h.run_timeout, h.lease_timeout, h.result, h.origin_id, false, h.kept
    from wanted w cross join lateral (select * from {schema}.history_of(array[w.id]) h limit 1) h limit 1
)
select j.id::text, j.queue, j.kind, case when r.lease is not null then 'running' else j.state end as state,
       j.priority::int, j.tries::int, coalesce(j.max_tries, c.max_tries, 5)::int as max_tries,
       {ms(j.created)} as created_ms, {ms(j.run_after)} as run_after_ms, {ms(j.changed)} as changed_ms,
       {ms(coalesce(r.started, j.started))} as started_ms, {ms(j.finished)} as finished_ms,
       coalesce(r.lock_key, j.node) as node, r.lease, {ms(r.lock_timeout)} as lease_until_ms,
       j.error, null::text as cursor, j.unique_key,
       case when j.payload is not null then left(j.payload::text, 1000000)
            when j.body is null then null
            when t.body is not null then t.body
            else encode(substr(j.body, 1, 65536), 'hex') end as payload,
       case when j.payload is not null then 'json'
            when j.body is null then case when j.kept then '' else 'gone' end
            when t.body is not null then 'text'
            else 'bytes' end as payload_format,
       coalesce(left(j.payload_type, 200), case when j.payload is not null then 'application/json' end) as payload_type,
       coalesce(octet_length(j.payload::text), octet_length(j.body))::bigint as payload_size,
       (extract(epoch from coalesce(j.run_timeout, c.run_timeout)) * 1000)::bigint as run_timeout_ms,
       (extract(epoch from coalesce(j.lease_timeout, c.lease_timeout)) * 1000)::bigint as lease_timeout_ms,
       coalesce(left(t.result, 65536), encode(substr(j.result, 1, 65536), 'escape')) as result,
       j.origin_id::text, j.cancel_asked,
       j.state || '/' || coalesce(j.seq, (extract(epoch from j.finished) * 1000000)::bigint) as version
from found j left join {schema}.queue_config c on c.queue = j.queue
cross join lateral (
    select case when j.payload_type like 'text/%' and length(j.body) <= 1000000 then {schema}.as_text(j.body) end,
           case when length(j.result) <= 1000000 then {schema}.as_text(j.result) end
) t (body, result)
left join lateral (select w.lease, w.lock_key, w.started, w.lock_timeout from {schema}.living() w
                   where w.lock_key is not null and w.queue = j.queue and j.seq = any(w.seqs) limit 1) r on true

-- name: attempts (ids)
select number, node, {ms(started)} as started_ms, {ms(ended)} as ended_ms, outcome, error, left(trace, 65536) as trace
from {schema}.attempt where job = any(({uuids($1)})[:1]) order by number desc, ended desc limit 200

-- name: nodes
-- heartbeats of registered workers; a node that only claims is known by its leases; session_alive is NULL without
-- pg_monitor; a queue of version 2 has no column clock_ahead: there the name means that of `older`. (The row as JSON
-- would do, too, but at 1000 queues a node that takes five times as long as all else)
with held_leases as materialized (
    select lock_key, count(*) as leases, sum(cardinality(seqs)) as running,
           count(*) filter (where lock_timeout < now()) as expired,
           sum(cardinality(seqs)) filter (where lock_timeout < now()) as expired_jobs, max(lock_timeout) as until
    from {schema}.living() where lock_key is not null group by lock_key
)
select left(coalesce(n.lock_key, l.lock_key), 200) as node,
       case when n.lock_key is null then 'unknown'
            when
-- part: node_is_dead
                then 'dead'
            when n.heartbeat < now() - {schema}.setting_interval('node_late') then 'late'
            when n.heartbeat > now() + interval '1 s' and a.pid is null and not pg_is_in_recovery() then 'dead'
            when n.heartbeat > now() + interval '1 s' and n.state = 'up' then 'asleep'
            else n.state end as state,
       left(n.host, 255) as host, n.pid, left(n.version, 100) as version, {ms(n.started)} as started_ms,
       {ms(least(n.heartbeat, now()))} as heartbeat_ms, n.slots,
       coalesce(l.running, 0)::bigint as running, coalesce(l.leases, 0) as leases, coalesce(l.expired, 0) as expired,
       coalesce(l.expired_jobs, 0)::bigint as expired_jobs,
       coalesce(left(array_to_string(n.queues[:100], ','), 1000), '') as queues,
       case when n.backend_pid is null or pg_is_in_recovery() then null
            when a.pid is null then false else a.backend_start <= n.heartbeat end as session_alive,
       {ms(l.until)} as lease_until_ms, n.backend_pid, a.state as session_state, {ms(a.state_change)} as session_ms,
       (1000 * extract(epoch from (select clock_ahead from {schema}.node c where c.lock_key = n.lock_key)))::bigint
           as clock_ahead_ms
from {schema}.node n full join held_leases l on l.lock_key = n.lock_key
left join pg_stat_activity a on a.pid = n.backend_pid and a.datname = current_database()
cross join (values (null::interval)) older (clock_ahead) order by 1

-- name: leases (node queue limit)
select w.lease, w.lock_key as node, w.queue, cardinality(w.seqs)::bigint as jobs, {ms(w.started)} as started_ms,
       {ms(w.lock_timeout)} as lease_until_ms, w.version::bigint, j.job_ids, j.tries, j.max_tries,
       case when j.ends = 0 then '→ retry' when j.ends = j.n then '→ failed (last try)'
            else format('→ retry, %s → failed (last try)', j.ends) end as effect
from {schema}.living() w
cross join lateral (
    select string_agg(id::text, ',' order by o) filter (where o <= 5) as job_ids, max(tries)::int as tries,
           min(most)::int as max_tries, count(*) filter (where started and tries + 1 >= most) as ends, count(*) as n
    from (select q.id, q.tries, coalesce(q.max_tries, w.max_tries, 5) as most, o,
                 w.all_started or s = any(w.started_seqs) as started
          from unnest(w.seqs) with ordinality u (s, o)
          cross join lateral (select id, tries, max_tries from {schema}.queue q
                              where q.queue = w.queue and q.priority = w.priority and q.state = 'ready' and q.seq = s
                              limit 1) q
         ) z) j
where w.lock_key is not null and ($1::text is null or w.lock_key = $1::text)
  and ($2::text is null or w.queue = $2::text)
order by w.lock_timeout, w.lease limit coalesce($3::int, 200)

-- name: groups (queue limit)
-- the counts are maintained; the sample is the newest failed job of the group, in an order that only the index
-- queue_failed has
select g.error_key, g.queue, g.n, g.error_key = '*' as capped, {ms(g.first_at)} as first_ms, {ms(g.last_at)} as last_ms,
       coalesce(s.error, g.error_key) as sample, s.id::text as sample_id
from (select * from {schema}.failure_groups() f where $1::text is null or f.queue = $1::text
      order by f.n desc, f.queue, f.error_key limit coalesce($2::int, 200)) g
left join lateral (select left(q.error, 1000) as error, q.id from {schema}.queue q
                   where q.queue = g.queue and q.error_key >= g.error_key and q.error_key <= g.error_key
                     and q.state = 'failed'
                   order by q.error_key desc, q.changed desc limit 1) s on true
order by g.n desc, g.queue, g.error_key

-- name: groups_by (settings queue limit n)
-- settings = what to group by: kind, node or hour. Of the newest n failed jobs of all queues; capped if there are more.
-- The node is that of the last attempt, which ended when the job failed
with failed_jobs as materialized (
    select id, queue, kind, changed, error, error_key from {schema}.queue
    where state = 'failed' order by changed desc, id desc limit coalesce($4::int, 5000)
), grouped as (
    select f.*, case $1::text when 'kind' then f.kind
                     when 'hour' then to_char(date_trunc('hour', f.changed) at time zone 'UTC',
                                              'YYYY-MM-DD HH24:MI "UTC"')
                 when 'node' then (select a.node from {schema}.attempt a
                                   where a.job = f.id and a.ended between f.changed - interval '1 min'
                                   and f.changed + interval '1 min' order by a.ended desc limit 1) end as by
    from failed_jobs f where $2::text is null or queue = $2::text
)
select coalesce(by, '') as "group", case when count(distinct queue) = 1 then min(queue) else '' end as queue,
       count(*) as n, (select count(*) from failed_jobs) >= coalesce($4::int, 5000) as capped,
       {ms(min(changed))} as first_ms, {ms(max(changed))} as last_ms,
       mode() within group (order by error_key) as error_key,
                              (array_agg(left(error, 1000) order by changed desc))[1] as sample,
       (array_agg(id::text order by changed desc))[1] as sample_id
from grouped g group by 1 order by 3 desc, 1 limit coalesce($3::int, 200)

-- name: fail_times (queue limit n)
-- when jobs failed in the last 24 hours, by half hours, and how many of them in the last hour. Of the groups that
-- `groups` shows, the newest n jobs in all: small groups are counted completely, the rest of n is shared among the
-- others, and for these since_ms says from when on they are counted
with shown as materialized (
    select g.*, sum(g.n) over smaller - g.n as before, count(*) over () - row_number() over smaller + 1 as sharers
    from (select f.queue, f.error_key, f.n from {schema}.failure_groups() f
          where ($1::text is null or f.queue = $1::text) and f.last_at > now() - interval '24 h'
            and f.error_key <> '*'
          order by f.n desc, f.queue, f.error_key limit coalesce($2::int, 200)) g
    window smaller as (order by g.n, g.queue, g.error_key)
), share as materialized (
    select coalesce(max(part) filter (where n > part), max(part), 0) as most
    from (select n, ceil((coalesce($3::int, 10000) - before) / sharers)::bigint as part from shown) s
)
select s.queue, s.error_key, t.half * 1800000 as at_ms, t.n, t.hour,
       case when s.n > c.most and t.counted = c.most then {ms(t.oldest)} end as since_ms
from shown s cross join share c
cross join lateral (
    select floor(date_part('epoch', j.changed) / 1800)::bigint as half, count(*) as n,
           count(*) filter (where j.changed > now() - interval '1 h') as hour,
           sum(count(*)) over () as counted, min(min(j.changed)) over () as oldest
    from (select q.changed from {schema}.queue q
          where q.queue = s.queue and q.error_key >= s.error_key and q.error_key <= s.error_key
            and q.state = 'failed' and q.changed > now() - interval '24 h'
          order by q.error_key desc, q.changed desc limit c.most) j
    group by 1) t

-- name: group (queue error)
-- one group of errors, in addition to `groups`: jobs that wait for a retry with this error (of the 1000 newest that are
-- not ready); what was tried since the last one failed (of the 40 jobs of the queue that ended last, those whose kind
-- is among the kinds of the 100 newest of the group); and the last act on the group, with the outcome of up to 200 of
-- its jobs
with newest as materialized (
    select q.kind, q.changed from {schema}.queue q
    where q.queue = $1::text and q.error_key >= $2::text and q.error_key <= $2::text and q.state = 'failed'
    order by q.error_key desc, q.changed desc limit 100
), last_one as (
    select max(changed) as at from newest
), tried as (
    select count(*) filter (where h.state = 'completed' and h.kind in (select kind from newest)) as done,
           max(h.finished) filter (where h.state = 'completed' and h.kind in (select kind from newest)) as done_at
    from (select state, kind, finished from {schema}.history
          where queue = $1::text and finished > (select at from last_one) order by finished desc limit 40) h
), retrying as (
    select count(*) filter (where o.state = 'retry' and o.error_key = $2::text) as n
    from (select q.state, q.error_key from {schema}.queue q
          where q.queue = $1::text and q.state <> 'ready' order by q.queue desc, q.seq desc limit 1000) o
), act as materialized (
    select a.action, a.at, a.who, a.verb from (select * from {schema}.audit order by at desc limit 1000) a
    where a.queue = $1::text and a.verb in ('requeue', 'discard', 'delete')
      and {schema}.error_key(left(a.params ->> 'error', 1000)) = $2::text
      and (select max(b.changed) from {schema}.audit_batch b where b.action = a.action) > 0
    order by a.at desc limit 1
), looked_at as (
    select q.state, q.error_key from act a
    cross join lateral (select r.value ->> 'id' as id
                        from {schema}.audit_batch b cross join lateral jsonb_array_elements(b.rows) r
                        where b.action = a.action and b.batch = 1 and r.value ->> 'state' is not null
                          and r.value ->> 'id' is not null limit 200) i
    left join lateral (select j.state, j.error_key from {schema}.queue j where j.id = i.id::uuid offset 0) q on true
)
select r.n as retrying, t.done, {ms(t.done_at)} as done_ms, {ms(a.at)} as past_ms, a.who as past_who,
       a.verb as past_verb,
       (select sum(b.changed)::bigint from {schema}.audit_batch b where b.action = a.action) as past_jobs,
       (select count(*) from looked_at) as past_looked,
       (select count(*) from looked_at l where l.state = 'failed') as past_failed,
       (select count(*) from looked_at l where l.state <> 'failed') as past_waiting
from retrying r cross join tried t left join act a on true

-- name: group_parts (queue error by n)
-- what the newest n jobs of a group have in common and where they differ: nodes and kinds, tries, how long the last try
-- took (of the attempt that ended when the job failed), and the numbers that the group hides, each with the word before
-- it. step = how many failed in each step of time, of the 10,000 newest; since = from when on, if there are more
with failed_jobs as materialized (
    select q.id, q.kind, q.tries, q.changed, left(q.error, 300) as error,
           coalesce(q.max_tries, (select c.max_tries from {schema}.queue_config c where c.queue = $1::text), 5)
           as max_tries
    from {schema}.queue q
    where q.queue = $1::text and q.error_key >= $2::text and q.error_key <= $2::text and q.state = 'failed'
    order by q.error_key desc, q.changed desc limit coalesce($4::int, 1000)
), last_tries as materialized (
    select coalesce(a.node, '') as node, a.took from failed_jobs f
    left join lateral (select t.node, date_part('epoch', t.ended - t.started) * 1000 as took
                       from {schema}.attempt t where t.job = f.id and t.ended between f.changed - interval '1 min'
                             and f.changed + interval '1 min'
                       order by t.ended desc limit 1) a on true
), errors as materialized (
    select error, count(*) as n from failed_jobs where error is not null group by error
), numbers as (
    select m.place, m.parts[1] as name, sum(e.n)::bigint as n from errors e
    cross join lateral regexp_matches(e.error, '("[^"]*"|''[^'']*''|`[^`]*`|[[:alpha:]_-]*(?:'
        '[[:xdigit:]]{8}(?:-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}|0[xX][[:xdigit:]]+|[0-9]+(?:[.,:][0-9]+)*))', 'g')
        with ordinality m (parts, place)
    where m.place <= 8 group by 1, 2
), ranked as (
    select place, name, n, row_number() over (partition by place order by n desc, name) as rank,
           count(*) over (partition by place) as of
    from numbers
), newest as materialized (
    select q.changed from {schema}.queue q
    where q.queue = $1::text and q.error_key >= $2::text and q.error_key <= $2::text and q.state = 'failed'
      and q.changed > now() - 61 * $3::interval
    order by q.error_key desc, q.changed desc limit 10000
)
(select 'jobs' as what, '' as name, null::int as place, count(*) as n, null::bigint as of from failed_jobs)
union all
(select 'node', left(node, 200), null, count(*), count(*) over () from last_tries group by node order by 4 desc, 2
 limit 10)
union all
(select 'kind', kind, null, count(*), count(*) over () from failed_jobs group by kind order by 4 desc, 2 limit 10)
union all
(select 'tries', tries || ' of ' || max_tries, (tries < max_tries)::int, count(*), count(*) over () from failed_jobs
 group by tries, max_tries order by 4 desc, 2 limit 10)
union all
(select 'took', case p when 0.5 then 'p50' else 'p99' end, null,
        (percentile_disc(p) within group (order by took))::bigint, count(took)
 from last_tries, unnest(array[0.5, 0.99]) p group by p having count(took) > 0 order by p)
union all
(select 'number', left(name, 100), place::int, n, of from ranked where rank <= 4 order by place, rank)
union all
(select 'step', '', null, count(*), (s * date_part('epoch', $3::interval) * 1000)::bigint
 from (select floor(date_part('epoch', changed) / date_part('epoch', $3::interval)) as s from newest) z group by s)
union all
(select 'since', '', null, {ms(min(changed))}, null from newest having count(*) = 10000)

-- name: group_samples (queue error limit)
-- the newest jobs of a group, each with its last try
select q.id::text, q.kind, {ms(q.changed)} as failed_ms, q.tries::int, a.node,
       coalesce(q.max_tries, (select c.max_tries from {schema}.queue_config c where c.queue = $1::text), 5)::int
       as max_tries, left(q.error, 4000) as error, left(a.trace, 4000) as trace,
       coalesce(left(q.payload::text, 1000), left(encode(substr(q.body, 1, 1000), 'escape'), 1000)) as payload
from {schema}.queue q
left join lateral (select t.node, t.trace from {schema}.attempt t
                   where t.job = q.id and t.ended between q.changed - interval '1 min' and q.changed + interval '1 min'
                   order by t.ended desc limit 1) a on true
where q.queue = $1::text and q.error_key >= $2::text and q.error_key <= $2::text and q.state = 'failed'
order by q.error_key desc, q.changed desc limit coalesce($3::int, 5)

-- name: audit (limit cursor)
select action::text, {ms(at)} as at_ms, who, addr::text, left(verb, 100) as verb,
       left(coalesce(node, queue, params ->> 'schedule', params ->> 'job',
                     (params ->> 'verb') || ' ' || left(params ->> 'of', 8), ''), 300) as target,
       left(reason, 1000) as reason, expected, changed, skipped, a.no_undo, a.change,
       case when length(params::text) <= 4000 then params::text
            else jsonb_build_object('cut', left(params::text, 4000))::text end as params,
       a.before, (extract(epoch from at) * 1000000)::bigint::text as cursor
from (select * from {schema}.audit_log
      where $2::text is null or at < to_timestamp($2::bigint / 1000000.0)
      order by at desc limit coalesce($1::int, 200)) l
cross join lateral (
    select {schema}.undo_why(a) as no_undo, {schema}.audit_change(a) as change,
           (select b.before::text from {schema}.audit_batch b
            where b.action = a.action and b.batch = 1 and b.changed = 1 and pg_column_size(b.before) < 2000) as before
    from {schema}.audit a where a.action = l.action offset 0) a
order by at desc

-- name: happened (queue node error limit)
-- what happened to a queue, a node, an error of a queue, or at all, the newest first: acts, of the 2000 newest; nodes
-- that came or died (a node that left has no row any more); and each error that jobs are failed with, at its first and
-- its last time. The errors of a node are those of the 1000 newest failed jobs; if there are more, their first times
-- are not known. A node takes the jobs of a queue if it names the queue or none. At most half of the rows are errors,
-- and a quarter nodes: thousands of errors hide no act
with acts as materialized (
    select a.* from (select * from {schema}.audit order by at desc limit 2000) a
    where ($1::text is null or a.queue = $1::text) and ($2::text is null or a.node = $2::text)
      and ($3::text is null or a.params ->> 'error' is null
           or {schema}.error_key(left(a.params ->> 'error', 1000)) = $3::text)
    order by a.at desc limit coalesce($4::int, 200)
), newest as materialized (
    select q.id, q.queue, q.error_key, q.changed from {schema}.queue q
    where $2::text is not null and q.state = 'failed' order by q.changed desc, q.id desc limit 1000
), errors as materialized (
    select f.queue, f.error_key, f.n, f.first_at, f.last_at from {schema}.failure_groups() f
    where $2::text is null and f.error_key <> '*' and ($1::text is null or f.queue = $1::text)
      and ($3::text is null or f.error_key = $3::text)
    union all
    select f.queue, f.error_key, count(*), case when (select count(*) from newest) < 1000 then min(f.changed) end,
           max(f.changed)
    from newest f
    where (select t.node from {schema}.attempt t
           where t.job = f.id and t.ended between f.changed - interval '1 min' and f.changed + interval '1 min'
           order by t.ended desc limit 1) = $2::text
    group by f.queue, f.error_key
), node_events as materialized (
    select n.lock_key, e.what, e.at
    from {schema}.node n cross join lateral (
        values ('came', n.started),
               ('died', case when
-- part: node_is_dead
                   then n.heartbeat end)
        ) e (what, at)
    where e.at is not null and ($1::text is null or n.queues is null or n.queues = '{}' or $1::text = any(n.queues))
      and ($2::text is null or n.lock_key = $2::text)
    order by e.at desc, n.lock_key limit ceil(coalesce($4::int, 200) / 4.0)
), error_events as materialized (
    select t.what, t.at, e.queue, e.error_key, e.n
    from errors e cross join lateral (
        values ('first', case when e.first_at < e.last_at then e.first_at end),
               (case when e.first_at = e.last_at then 'failed' else 'last' end, e.last_at)) t (what, at)
    where t.at is not null order by t.at desc, e.n desc, e.queue, e.error_key limit ceil(coalesce($4::int, 200) / 2.0)
), events as (
    select 'act' as what, a.at, left(coalesce(a.node, a.queue, a.params ->> 'schedule', a.params ->> 'job', ''), 300)
           as target, a.queue, null as error_key, a.action, a.who, a.verb, a.reason, null as text, null::bigint as n
    from acts a
    union all
    select e.what, e.at, left(n.lock_key, 200), null, null, null, null, null, null,
           left(concat_ws(', ', 'version ' || nullif(n.version, ''), 'host ' || nullif(n.host, ''), n.slots || ' slots',
                          'queues ' || coalesce(nullif(array_to_string(n.queues[:100], ' '), ''), 'all')), 1000), null
    from node_events e join {schema}.node n using (lock_key)
    union all
    select e.what, e.at, e.queue, e.queue, e.error_key, null, null, null, null, e.error_key, e.n from error_events e
), newest_events as materialized (
    select * from events where at is not null order by at desc limit coalesce($4::int, 200)
)
select e.what || ' ' || coalesce(e.action::text, e.queue || e'\n' || e.error_key, e.target) as id, e.what,
       {ms(e.at)} as at_ms, e.target, e.queue, e.error_key, e.action::text, e.who, left(e.verb, 100) as verb,
       left(e.reason, 1000) as reason, coalesce(e.text, a.change) as text, coalesce(e.n, a.n) as n
from newest_events e
left join lateral (
    select {schema}.audit_change(x) as change,
           (select sum(b.changed)::bigint from {schema}.audit_batch b where b.action = x.action) as n
    from {schema}.audit x where x.action = e.action offset 0) a on true
order by e.at desc, 1

-- name: schedules (schedule)
-- the outcome of the last run is that of its job; history is read from the day of the run on. missed = how many of the
-- kept runs (100) have no job of their own
select s.name, left(s.cron, 1000) as cron, s.tz, s.queue, s.kind,
       case when s.paused_at is not null then 'paused' when s.error is not null then 'failed'
            else 'active' end as state,
       {ms(s.last_run)} as last_run_ms, o.outcome as last_outcome,
       {ms(s.next_run)} as next_run_ms, s.catch_up, s.last_job::text, s.priority, s.max_tries,
       s.only_one as unique, left(coalesce(s.payload::text, encode(substr(s.body, 1, 100000), 'escape')),
                                  case when $1::text is null then 10000 else 1000000 end) as payload,
       left(s.payload_type, 200) as payload_type, left(s.comment, 1000) as comment,
       s.paused_by, left(s.pause_reason, 1000) as pause_reason, left(s.error, 1000) as error,
       {ms(s.created)} as created_ms, {ms(s.changed)} as changed_ms,
       (extract(epoch from o.took) * 1000)::bigint as last_took_ms, left(o.error, 300) as last_error,
       (select count(*) from (
            select r.pushed from {schema}.cron_run r
            where r.schedule = s.name and r.due >= coalesce(s.runs_from, '-infinity')
            order by r.due desc limit 100) r where not r.pushed) as missed,
       c.paused_at is not null as queue_paused, c.paused_by as queue_paused_by
from {schema}.schedule s
left join {schema}.queue_config c on c.queue = s.queue
cross join lateral {schema}.cron_result(s.last_job, s.last_run) o
where $1::text is null or s.name = $1 order by s.name

-- name: cron_runs (schedule limit)
select {ms(r.due)} as due_ms, to_char(r.due at time zone s.tz, 'Dy YYYY-MM-DD HH24:MI:SS') as due,
       {ms(r.at)} as at_ms, r.job::text, o.outcome, coalesce(r.error, left(o.error, 300)) as error,
       (extract(epoch from o.took) * 1000)::bigint as took_ms
from {schema}.cron_run r join {schema}.schedule s on s.name = r.schedule
cross join lateral {schema}.cron_result(r.job, r.due) o
where r.schedule = $1 and r.due >= coalesce(s.runs_from, '-infinity') order by r.due desc limit coalesce($2::int, 10)

-- name: cron_next (settings n)
select {ms(t)} as due_ms, to_char(t at time zone coalesce($1::jsonb ->> 'tz', 'UTC'), 'Dy YYYY-MM-DD HH24:MI:SS') as due
from (select where $1::text is not null) given
cross join lateral {schema}.cron_times($1::jsonb ->> 'cron', $1::jsonb ->> 'tz', $2::int) t

-- name: queue_settings (queue)
select setting, value, standard, note from {schema}.queue_settings($1::text)

-- name: requeue (action batch ids reset reason by n)
select id, state, why, cursor, n
from {schema}.requeue_at_priority($1::uuid, $2::int, $3::text[]::uuid[], coalesce($4::boolean, false), $5::text,
                                  $6::interval, $7::int)

-- name: requeue_where (action batch queue states kind error before limit cursor expected reset reason by)
select id, state, why, cursor, n
from {schema}.requeue_where($1::uuid, $2::int, $3::text, $4::text[], $5::text, $6::text, $7::timestamptz, $8::int,
                            $9::text, $10::bigint, coalesce($11::boolean, false), $12::text, $13::interval)

-- name: release_where (action batch node expired_only fail count force expected reason)
select id, state, why, cursor, n
from {schema}.release($1::uuid, $2::int, $3::text, coalesce($4::boolean, true), coalesce($5::boolean, false),
                      coalesce($6::boolean, true), coalesce($7::boolean, false), $8::bigint, $9::text)

-- name: extend (action batch ids by expected reason)
select id, case when state is not null then 'extended' end as state, why, cursor, n
from {schema}.extend_leases($1::uuid, $2::int, $3::text[]::uuid[], null::text, $4::interval, $5::bigint, $6::text)

-- name: extend_where (action batch node by expected reason)
select id, case when state is not null then 'extended' end as state, why, cursor, n
from {schema}.extend_leases($1::uuid, $2::int, null::uuid[], $3::text, $4::interval, $5::bigint, $6::text)

-- name: purge (action batch queue states before limit expected reason)
select id, state, why, cursor, n
from {schema}.purge($1::uuid, $2::int, $3::text, $4::text[], $5::timestamptz, $6::int, $7::bigint, $8::text)

-- name: pause (action queue reason)
select id, state, why, cursor, n from {schema}.pause($1::uuid, $2::text, $3::text)

-- name: resume (action queue reason)
select id, state, why, cursor, n from {schema}.resume($1::uuid, $2::text, $3::text)

-- name: cancel (action batch ids reason)
select id, state, why, cursor, n from {schema}.cancel($1::uuid, $2::int, $3::text[]::uuid[], $4::text)

-- name: cancel_where (action batch queue states kind error before limit cursor expected reason)
select id, state, why, cursor, n
from {schema}.cancel_where($1::uuid, $2::int, $3::text, $4::text[], $5::text, $6::text, $7::timestamptz, $8::int,
                           $9::text, $10::bigint, $11::text)

-- name: discard (action batch ids reason)
select id, state, why, cursor, n from {schema}.discard($1::uuid, $2::int, $3::text[]::uuid[], $4::text)

-- name: discard_where (action batch queue states kind error before limit cursor expected reason)
select id, state, why, cursor, n
from {schema}.discard_where($1::uuid, $2::int, $3::text, $4::text[], $5::text, $6::text, $7::timestamptz, $8::int,
                           $9::text, $10::bigint, $11::text)

-- name: delete (action batch ids reason)
select id, state, why, cursor, n from {schema}.delete_jobs($1::uuid, $2::int, $3::text[]::uuid[], $4::text)

-- name: delete_where (action batch queue states kind error before limit cursor expected reason)
select id, state, why, cursor, n
from {schema}.delete_where($1::uuid, $2::int, $3::text, $4::text[], $5::text, $6::text, $7::timestamptz, $8::int,
                           $9::text, $10::bigint, $11::text)

-- name: priority (action batch ids n reason)
-- range: 0..9
select id, state, why, cursor, n from {schema}.set_priority($1::uuid, $2::int, $3::text[]::uuid[], $4::int, $5::text)

-- name: priority_where (action batch queue states kind error before limit cursor expected n reason)
-- range: 0..9
select id, state, why, cursor, n
from {schema}.set_priority_where($1::uuid, $2::int, $3::text, $4::text[], $5::text, $6::text, $7::timestamptz, $8::int,
                           $9::text, $10::bigint, $11::int, $12::text)

-- name: reschedule (action batch ids at reason)
select id, state, why, cursor, n from {schema}.set_time($1::uuid, $2::int, $3::text[]::uuid[], $4::timestamptz,
                                                        $5::text)

-- name: reschedule_where (action batch queue states kind error before limit cursor expected at reason)
select id, state, why, cursor, n
from {schema}.set_time_where($1::uuid, $2::int, $3::text, $4::text[], $5::text, $6::text, $7::timestamptz, $8::int,
                           $9::text, $10::bigint, $11::timestamptz, $12::text)

-- name: undo (action batch of cursor expected reason)
select id, state, why, cursor, n from {schema}.undo($1::uuid, $2::int, $3::uuid, $4::text, $5::bigint, $6::text)

-- name: edit (action batch ids settings payload reason)
-- settings hold the version of the job that was edited
select id, state, why, cursor, n
from {schema}.edit_job($1::uuid, $2::int, $3::text[]::uuid[], $4::jsonb ->> 'version', $5::text, $6::text)

-- name: push (action queue settings payload reason)
select id, state, why, cursor, n from {schema}.push_by_hand($1::uuid, $2::text, $3::jsonb, $4::text, $5::text)

-- name: drain (action node reason)
select id, state, why, cursor, n from {schema}.drain_node($1::uuid, $2::text, $3::text)

-- name: repair_counters (action queue reason)
select id, state, why, cursor, n from {schema}.repair($1::uuid, 'counters', $2::text, $3::text)

-- name: repair_orphans (action queue reason)
select id, state, why, cursor, n from {schema}.repair($1::uuid, 'orphans', $2::text, $3::text)

-- name: repair_partitions (action reason)
select id, state, why, cursor, n from {schema}.repair($1::uuid, 'partitions', null, $2::text)

-- name: queue_set (action queue settings reason)
select id, state, why, cursor, n from {schema}.set_queue($1::uuid, $2::text, $3::jsonb, $4::text)

-- name: cron_set (action schedule settings payload reason)
select id, state, why, cursor, n from {schema}.schedule_set($1::uuid, $2::text, $3::jsonb, $4::text, $5::text)

-- name: cron_pause (action schedule reason)
select id, state, why, cursor, n from {schema}.schedule_pause($1::uuid, $2::text, $3::text)

-- name: cron_resume (action schedule reason)
select id, state, why, cursor, n from {schema}.schedule_resume($1::uuid, $2::text, $3::text)

-- name: cron_run (action schedule reason)
select id, state, why, cursor, n from {schema}.schedule_run($1::uuid, $2::text, $3::text)

-- name: cron_remove (action schedule reason)
select id, state, why, cursor, n from {schema}.schedule_remove($1::uuid, $2::text, $3::text)

-- name: backend_signal (action batch settings reason)
select id, state, why, cursor, n from {schema}.signal_backend($1::uuid, $2::int, $3::jsonb, $4::text)

-- name: requeue_preview (ids queue states kind error before reset by)
select state, n, why
from {schema}.requeue_preview($1::text[]::uuid[], $2::text, $3::text[], $4::text, $5::text, $6::timestamptz,
                              coalesce($7::boolean, false), $8::interval)

-- name: requeue_sample (queue states kind error before n)
select id from {schema}.requeue_sample($1::text, $2::text[], $3::text, $4::text, $5::timestamptz, $6::int)

-- name: release_preview (node expired_only fail count)
select state, n, why
from {schema}.release_preview($1::text, coalesce($2::boolean, true), coalesce($3::boolean, false),
                              coalesce($4::boolean, true))

-- name: extend_preview (ids node by)
select case when state is not null then 'extended' end as state, n, why
from {schema}.extend_preview($1::text[]::uuid[], $2::text, $3::interval)

-- name: purge_preview (queue states before)
select state, n, why from {schema}.purge_preview($1::text, $2::text[], $3::timestamptz)

-- name: cancel_preview (ids queue states kind error before)
select state, n, why
from {schema}.remove_preview('cancel', $1::text[]::uuid[], $2::text, $3::text[], $4::text, $5::text, $6::timestamptz)

-- name: discard_preview (ids queue states kind error before)
select state, n, why
from {schema}.remove_preview('discard', $1::text[]::uuid[], $2::text, $3::text[], $4::text, $5::text, $6::timestamptz)

-- name: delete_preview (ids queue states kind error before)
select state, n, why
from {schema}.remove_preview('delete', $1::text[]::uuid[], $2::text, $3::text[], $4::text, $5::text, $6::timestamptz)

-- name: priority_preview (ids queue states kind error before n)
select state, n, why
from {schema}.change_preview('priority', $1::text[]::uuid[], $2::text, $3::text[], $4::text, $5::text, $6::timestamptz,
                             $7::int)

-- name: reschedule_preview (ids queue states kind error before at)
select state, n, why
from {schema}.change_preview('reschedule', $1::text[]::uuid[], $2::text, $3::text[], $4::text, $5::text,
                             $6::timestamptz, null, $7::timestamptz)

-- name: undo_preview (of)
select state, n, why from {schema}.undo_preview($1::uuid)

-- name: edit_preview (ids settings payload)
select state, n, why from {schema}.edit_preview($1::text[]::uuid[], $2::jsonb ->> 'version', $3::text)

-- name: push_preview (queue settings payload)
select state, n, why from {schema}.push_preview($1::text, $2::jsonb, $3::text)

-- name: pause_preview (queue force)
select state, n, why from {schema}.pause_preview($1::text, coalesce($2::boolean, false))

-- name: resume_preview (queue)
select case when c.paused_at is not null then 'resumed' end as state, 1::bigint as n,
       case when c.paused_at is not null then null
            when exists (select from {schema}.queue_settings($1::text)) then 'not paused'
            else format('no job was ever seen in queue "%s"', $1::text) end as why
from (select) one left join {schema}.queue_config c on c.queue = $1::text

-- name: drain_preview (node)
select case when x.state = 'up' then 'draining' end as state, 1::bigint as n,
       case when x.lock_key is null then format('no node is called "%s"', $1::text)
            when x.state <> 'up' then 'draining already' end as why
from (select) one left join {schema}.node x on x.lock_key = $1::text

-- name: queue_set_preview (queue settings)
select state, n, why from {schema}.set_queue_preview($1::text, $2::jsonb)

-- name: cron_pause_preview (schedule)
select case when s.paused_at is null and s.name is not null then 'paused' end as state, 1::bigint as n,
       case when s.name is null then format('no schedule is called "%s"', $1::text)
            when s.paused_at is not null then 'paused already' end as why
from (select) one left join {schema}.schedule s on s.name = $1::text

-- name: cron_resume_preview (schedule)
select case when s.name is not null and s.next_run is null then 'resumed' end as state, 1::bigint as n,
       case when s.name is null then format('no schedule is called "%s"', $1::text)
            when s.next_run is not null then 'not paused' end as why
from (select) one left join {schema}.schedule s on s.name = $1::text

-- name: cron_run_preview (schedule)
select case when s.name is not null then 'run' end as state, 1::bigint as n,
       case when s.name is null then format('no schedule is called "%s"', $1::text) end as why
from (select) one left join {schema}.schedule s on s.name = $1::text

-- name: cron_remove_preview (schedule)
select case when s.name is not null then 'removed' end as state, 1::bigint as n,
       case when s.name is null then format('no schedule is called "%s"', $1::text) end as why
from (select) one left join {schema}.schedule s on s.name = $1::text

-- name: cron_set_preview (schedule settings payload)
select state, n, why from {schema}.schedule_preview($1::text, $2::jsonb, $3::text)
