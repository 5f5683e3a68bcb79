-- The rows t of table jobs (PostQueue) with its optional columns, and our word for the state. A column that the table
-- lacks is resolved as the column of d. These columns may have any type: what is no time or no number of nine digits is
-- left out. A worker takes a job four times, unless max_attempts says another number; attempts counts the try
-- that runs, tries does not.
from (select null::text as error, null::text as last_error, null::text as error_message, null::int as max_attempts,
             null::int as priority, null::timestamptz as completed_at, null::timestamptz as updated_at) d
cross join lateral (
    select q.id, q.created, q.name, q.visibility_at, q.status, q.attempts, q.expires_at, q.data, q.queue_name,
           q.reference, s.state, s.held, s.may_run, o.*,
           q.attempts - (s.state = 'running' and q.attempts > 0)::int as tries,
           case when s.state <> 'failed' then '' when o.failure <> '' then o.failure
                when q.attempts >= o.most then 'no attempts left' else 'expired before it was done' end as reason
    from {schema}.jobs q
    cross join lateral (
        select coalesce(case when max_attempts::text ~ '^[0-9]{1,9}$' then max_attempts::text::int end, 4) as most,
               case when priority::text ~ '^-?[0-9]{1,9}$' then priority::text::int end as rank,
               case when completed_at::text ~ '^[0-9]{4}-' then completed_at::text::timestamptz end as ended,
               case when updated_at::text ~ '^[0-9]{4}-' then updated_at::text::timestamptz end as changed,
               coalesce(error::text, last_error::text, error_message::text, '') as failure) o
    cross join lateral (
        select (q.expires_at is null or q.expires_at > now()) and q.attempts < o.most as may_run,
               q.attempts > 0 and coalesce(q.visibility_at > now(), false) as held) h
    cross join lateral (
        select case when q.status = 'completed' then 'completed' when h.held then 'running'
                    when not h.may_run then 'failed' when q.visibility_at > now() then 'scheduled'
                    when q.status = 'in_transit' then 'running' else 'ready' end as state, h.held, h.may_run) s) t
