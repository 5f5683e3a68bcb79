-- The columns of a job in the sections jobs and job of table tasks.
t.id::text as id, 'tasks' as queue, coalesce(t.payload ->> 'task_type', '') as kind, t.state, t.priority,
t.retry_count as tries, null::int as max_tries, {ms(t.created_at)} as created_ms, null::bigint as run_after_ms,
{ms(t.updated_at)} as changed_ms, case when t.state = 'running' then {ms(t.updated_at)} end as started_ms,
case when t.state in ('completed', 'failed') then {ms(t.updated_at)} end as finished_ms,
null::text as node, null::bigint as lease_until_ms, case when t.state = 'failed' then t.error else '' end as error,
t.state = 'running' and t.updated_at < now() - interval '1 hour' as stale,
