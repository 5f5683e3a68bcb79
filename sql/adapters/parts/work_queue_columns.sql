-- The columns of a job in the sections jobs and job of tables queue (t) and work_queue (w).
t.id::text as id, t.queue::text as queue, '' as kind,
case when w.lock_key is not null then 'running' when w.id is not null then 'ready'
     when t.state = 'PENDING' then case when t.run_after > now() then 'scheduled' else 'ready' end
     when t.state = 'RETRY' then case when t.run_after > now() then 'retry' else 'ready' end
     when t.state in ('COMPLETED', 'DONE', 'FINISHED', 'SUCCEEDED') then 'completed'
     when t.state in ('FAILED', 'ERROR') then 'failed'
     when t.state in ('CANCELLED', 'CANCELED') then 'cancelled' else 'blocked' end as state,
t.priority, t.tries as tries, t.max_tries, {ms(t.created::timestamptz)} as created_ms,
{ms(t.run_after::timestamptz)} as run_after_ms, {ms(coalesce(t.updated_at, t.completed_at))} as changed_ms,
{ms(w.started::timestamptz)} as started_ms,
case when w.id is null then {ms(t.completed_at)} end as finished_ms,
w.lock_key::text as node, {ms(w.lock_timeout::timestamptz)} as lease_until_ms,
case when w.id is null and t.state in ('FAILED', 'ERROR', 'RETRY') then t.error else '' end as error,
case when w.id is null then t.state = 'RUNNING' else coalesce(w.lock_timeout < now(), false) end as stale,
