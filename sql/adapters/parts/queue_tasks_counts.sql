-- Section counts of the three shapes of table queue_tasks. It uses the index of the dequeue; more than 100000 waiting
-- tasks are estimated. A task whose worker stalled counts as running until another takes it.
with retrying as (select count(*) as n from (select from {schema}.queue_tasks where started_at is null limit 100001) x),
     sample as (select count(*) as n from {schema}.queue_tasks where started_at is not null)
select 'queue_tasks' as queue, 0::bigint as scheduled,
       case when r.n <= 100000 then r.n
            else greatest(r.n, (select c.reltuples::bigint from pg_catalog.pg_class c
                                join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                                where n.nspname = {schema_lit} and c.relname = 'queue_tasks') - s.n) end as ready,
       0::bigint as retry, s.n as running, 0::bigint as failed,
       {ms((select t.created_at from {schema}.queue_tasks t where t.started_at is null
            order by t.started_at, t.created_at limit 1))} as oldest_ms,
       r.n > 100000 as approx
from retrying r, sample s
