-- One scheduling step of holder $1, alone in its transaction: nobody waits for the disk, what a crash undoes is done again.
select active::int, cut, promoted, stolen, wait_ms from {schema}.schedule($1::text)
where set_config('synchronous_commit', 'off', true) = 'off'
