-- The columns of section jobs, in their order.
select z.id, z.queue, z.kind, z.state, z.priority, z.tries, z.max_tries, z.created_ms, z.run_after_ms, z.changed_ms,
       z.started_ms, z.finished_ms, z.node, z.lease_until_ms, z.error, z.cursor, z.stale
