-- Opens `queuetop install`: the words that the scripts under sql/core read, and a lock against a second
-- installer. $1 schema, $2 viewer role, $3 worker role, $4 operator role. All ends with the transaction.
select set_config('queuetop.schema', $1::text, true),
       set_config('queuetop.viewer', $2::text, true),
       set_config('queuetop.worker', $3::text, true),
       set_config('queuetop.operator', $4::text, true),
       pg_advisory_xact_lock(hashtext('queuetop install'), hashtext($1::text))::text
