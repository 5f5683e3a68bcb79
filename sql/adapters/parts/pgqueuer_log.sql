-- The end of the CTE of rows that were changed, and CTE log, which writes the change to the log, as the library does.
    returning q.id, q.entrypoint, q.priority
), log as (
    insert into {schema}.{prefix}pgqueuer_log (job_id, status, entrypoint, priority)
    select id, {status}, entrypoint, priority from {rows}
