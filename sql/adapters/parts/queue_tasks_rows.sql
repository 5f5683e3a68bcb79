-- The rows t of table queue_tasks with its optional columns: a column that the table lacks is resolved as the column of
-- d. Without leased_until a lease lasts five minutes.
from (select timestamptz '-infinity' as leased_until, null::timestamptz as completed_at, null::int as priority,
             null::text as success, null::text as failure) d
cross join lateral (
    select q.id, q.task_name, q.created_at, q.started_at, completed_at, priority::int as priority,
           to_jsonb(q) as record,
           case when completed_at is null and q.started_at is null then 'ready'
                when completed_at is null then 'running'
                when coalesce(success::text in ('f', 'false'), failure::text not in ('', 'f', 'false')) then 'failed'
                else 'completed' end as state,
           case when completed_at is not null or q.started_at is null then null
                when leased_until = '-infinity' then q.started_at + interval '5 minutes'
                else leased_until end as lease_until,
           coalesce(nullif(failure::text, 'true'), '') as failure
    from {schema}.queue_tasks q) t
