-- The rows t of table simple_queue with its optional columns, and our word for the state. A column that the table lacks
-- is resolved as the column of d. These columns may have any type: what is no time or no number of nine digits is left
-- out. An item that was popped again after completed_at runs; attempts counts that try, tries
-- does not.
from (select null::timestamp as completed_at, null::timestamp as leased_until, null::timestamp as updated_at,
             null::int as attempts, null::int as max_attempts, null::int as priority) d
cross join lateral (
    select q.id, q.created_at, q.processing_started_at, q.errors, q.payload, o.*,
           greatest(coalesce(case when attempts::text ~ '^[0-9]{1,9}$' then attempts::text::int end,
                             (q.processing_started_at is not null)::int) - (o.state = 'running')::int, 0) as tries,
           case when max_attempts::text ~ '^[0-9]{1,9}$' then max_attempts::text::int end as max_tries,
           case when priority::text ~ '^-?[0-9]{1,9}$' then priority::text::int end as priority
    from {schema}.simple_queue q
    cross join lateral (
        select e.*, case when q.processing_started_at is null then 'ready' when q.errors is not null then 'failed'
                         when e.completed_at >= q.processing_started_at then 'completed' else 'running' end as state
        from (
            select case when completed_at::text ~ '^[0-9]{4}-' then completed_at::text::timestamptz end as completed_at,
                   case when leased_until::text ~ '^[0-9]{4}-' then leased_until::text::timestamptz end as leased_until,
                   case when updated_at::text ~ '^[0-9]{4}-' then updated_at::text::timestamptz end as updated_at
        ) e) o) t
