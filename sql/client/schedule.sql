-- One step of scheduler $1, alone in its transaction. Its commit does not wait for the disk: if a crash undoes the
-- step, the next step repeats it. $2: for how long nothing was new; $3: the pid of the server process that the client
-- is connected to, so that it may wait for a NOTIFY; $4: the session listens already.
select active::int, cut, promoted, stolen, wait_ms, look_ms, waits::int, late::int, fold::int
from {schema}.schedule_or_wait($1, $2, $3, $4)
where pg_catalog.set_config('synchronous_commit', 'off', true) operator(pg_catalog.=) 'off'
