-- One scheduling step of holder $1, alone in its transaction: nobody waits for the disk, what a crash undoes is done again.
-- Nothing was new for $2; it may wait for a NOTIFY where it talks to $3 itself; it listens already ($4).
select active::int, cut, promoted, stolen, wait_ms, look_ms, waits::int, late::int
from {schema}.schedule_or_wait($1::text, $2::interval, $3::int, $4::boolean)
where set_config('synchronous_commit', 'off', true) = 'off'
