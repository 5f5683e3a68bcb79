-- The rows t of table queue with its optional columns. A column that the table lacks is resolved as the column of d.
-- These columns may have any type: what is no time or no number of nine digits is left out.
from (select null::text as error, null::text as last_error, null::text as error_message, null::int as max_tries,
             null::int as max_attempts, null::int as priority, null::timestamp as completed_at,
             null::timestamp as updated_at) d
cross join lateral (
    select q.id, q.created, q.queue, q.state, q.tries, q.run_after, q.payload, q.payload_type,
           coalesce(error::text, last_error::text, error_message::text, '') as error,
           coalesce(case when max_tries::text ~ '^[0-9]{1,9}$' then max_tries::text::int end,
                    case when max_attempts::text ~ '^[0-9]{1,9}$' then max_attempts::text::int end) as max_tries,
           case when priority::text ~ '^-?[0-9]{1,9}$' then priority::text::int end as priority,
           case when completed_at::text ~ '^[0-9]{4}-' then completed_at::text::timestamptz end as completed_at,
           case when updated_at::text ~ '^[0-9]{4}-' then updated_at::text::timestamptz end as updated_at
    from {schema}.queue q) t
