-- The columns of a job in the sections jobs and job of table simple_queue. Without leased_until an item counts as stale
-- an hour after it was popped.
t.id::text as id, 'simple_queue' as queue, '' as kind, t.state, t.priority, t.tries, t.max_tries,
{ms(t.created_at::timestamptz)} as created_ms, null::bigint as run_after_ms,
{ms(coalesce(t.updated_at, case when t.state = 'completed' then t.completed_at end,
             t.processing_started_at::timestamptz, t.created_at::timestamptz))} as changed_ms,
{ms(t.processing_started_at::timestamptz)} as started_ms,
case when t.state = 'completed' then {ms(t.completed_at)} end as finished_ms, null::text as node,
case when t.state = 'running' then {ms(t.leased_until)} end as lease_until_ms, coalesce(t.errors, '') as error,
t.state = 'running' and coalesce(t.leased_until, t.processing_started_at::timestamptz + interval '1 hour') < now()
    as stale,
