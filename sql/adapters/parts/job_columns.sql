-- The columns of section jobs, in their order.
select id, queue, kind, state, priority, tries, max_tries, created_ms, run_after_ms, changed_ms, started_ms,
       finished_ms, node, lease, lease_until_ms, error, cursor, stale
