-- The rows t of table tasks with its optional columns, and our word for its status. A column that the table lacks is
-- resolved as the column of d. These columns may have any type: what is no number of nine digits is left out.
from (select null::int as retry_count, null::int as priority, null::text as error, null::text as error_message,
             null::text as last_error) d
cross join lateral (
    select q.id, q.status, q.payload, q.created_at, q.updated_at,
           case when retry_count::text ~ '^[0-9]{1,9}$' then retry_count::text::int else 0 end as retry_count,
           case when priority::text ~ '^-?[0-9]{1,9}$' then priority::text::int end as priority,
           coalesce(error::text, error_message::text, last_error::text, '') as error,
           case when q.status = 'pending' then 'ready' when q.status = 'in_progress' then 'running'
                when q.status in ('failed', 'error') then 'failed'
                when q.status in ('completed', 'done', 'finished', 'succeeded') then 'completed'
                when q.status in ('cancelled', 'canceled') then 'cancelled' else 'blocked' end as state
    from {schema}.tasks q) t
