-- Opens `queuetop install`: the settings that the scripts under sql/core read, how long a lock is waited for, and a
-- lock against a second installer. $1 schema, $2 viewer role, $3 worker role, $4 operator role, $5 pusher role, $6
-- milliseconds, $7 the version that was seen, $8 off = function bodies are not checked, because their tables are
-- changed later, $9 on = functions that are no longer made are dropped, $10 on = rights of others are named only. All
-- settings end with the transaction.
select pg_catalog.set_config('queuetop.schema', $1::text, true),
       pg_catalog.set_config('queuetop.viewer', $2::text, true),
       pg_catalog.set_config('queuetop.worker', $3::text, true),
       pg_catalog.set_config('queuetop.operator', $4::text, true),
       pg_catalog.set_config('queuetop.pusher', $5::text, true),
       pg_catalog.set_config('lock_timeout', $6::text, true),
       pg_catalog.set_config('queuetop.version', $7::text, true),
       pg_catalog.set_config('check_function_bodies', $8::text, true),
       pg_catalog.set_config('plpgsql.extra_errors', 'none', true),
       pg_catalog.set_config('plpgsql.extra_warnings', 'none', true),
       pg_catalog.set_config('queuetop.drops', $9::text, true),
       pg_catalog.set_config('queuetop.force', $10::text, true),
       pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('queuetop install'), pg_catalog.hashtext($1::text))::text
