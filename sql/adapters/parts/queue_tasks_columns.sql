-- The columns of a job in the sections jobs and job of table queue_tasks.
t.id::text as id, 'queue_tasks' as queue, t.task_name as kind, t.state, t.priority,
case when t.completed_at is null then 0 else 1 end as tries, null::int as max_tries,
{ms(t.created_at)} as created_ms, null::bigint as run_after_ms,
{ms(coalesce(t.completed_at, t.started_at, t.created_at))} as changed_ms, {ms(t.started_at)} as started_ms,
{ms(t.completed_at)} as finished_ms, null::text as node, {ms(t.lease_until)} as lease_until_ms,
case when t.state = 'failed' then t.failure else '' end as error, coalesce(t.lease_until < now(), false) as stale,
