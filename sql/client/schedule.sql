-- One step of scheduler $1, alone in its transaction. It does not wait for the disk: what a crash undoes, the next step
-- does again. $2: for how long nothing was new; $3: the server that the client talks to itself, so that it may wait for
-- a NOTIFY; $4: it listens already.
select active::int, cut, promoted, stolen, wait_ms, look_ms, waits::int, late::int, fold::int
from {schema}.schedule_or_wait($1, $2, $3, $4)
where pg_catalog.set_config('synchronous_commit', 'off', true) operator(pg_catalog.=) 'off'
