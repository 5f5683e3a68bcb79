-- One scheduling step of holder $1, alone in its transaction: nobody waits for the disk, a crash undoes what is done again.
-- Nothing was new for $2; it may wait for a NOTIFY where it talks to $3 itself; it listens already ($4).
select active::int, cut, promoted, stolen, wait_ms, look_ms, waits::int, late::int
from {schema}.schedule_or_wait($1, $2, $3, $4)
where pg_catalog.set_config('synchronous_commit', 'off', true) operator(pg_catalog.=) 'off'
