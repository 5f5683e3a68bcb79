-- The columns of a job in the sections jobs and job of table jobs (PostQueue).
t.id::text as id, coalesce(t.queue_name, '(none)') as queue, coalesce(t.name, '') as kind, t.state, t.rank as priority,
t.tries, t.most as max_tries, {ms(t.created)} as created_ms,
case when t.state = 'scheduled' then {ms(t.visibility_at)} end as run_after_ms,
{ms(coalesce(t.changed, t.ended))} as changed_ms, null::bigint as started_ms,
case when t.state = 'completed' then {ms(t.ended)} end as finished_ms, null::text as node,
case when t.state = 'running' then {ms(t.visibility_at)} end as lease_until_ms, t.reason as error,
t.state = 'running' and not t.held as stale,
