-- Opens `queuetop uninstall`. $1 schema, $2 $3 $4 roles of viewer, worker, operator, $5 whether the roles are dropped,
-- $6 how many milliseconds a lock is waited for, $7 --force. $8 the tables and $9 the functions that were found before
-- the user said yes, NULL = this is the first look. $10 the pusher's role.
select set_config('queuetop.schema', $1::text, true), set_config('queuetop.viewer', $2::text, true),
       set_config('queuetop.worker', $3::text, true), set_config('queuetop.operator', $4::text, true),
       set_config('queuetop.pusher', $10::text, true),
       set_config('queuetop.drop_roles', $5::text, true), set_config('lock_timeout', $6::text, true),
       set_config('queuetop.force', $7::text, true), set_config('queuetop.seen_tables', coalesce($8::text, ''), true),
       set_config('queuetop.seen_functions', coalesce($9::text, ''), true),
       pg_advisory_xact_lock(hashtext('queuetop install'), hashtext($1::text))::text
