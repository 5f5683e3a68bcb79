-- Opens an adoption (`queuetop install --adopt`), or a look at what there is to adopt. $1 schema of the plain tables,
-- $2 time zone of their times ('' = the database's), $3 more states ("RUNNING=ready,DEAD=failed"), $4 schema of the
-- queue, $5 whether that is made in this transaction.
select set_config('queuetop.adopt_from', $1::text, true),
       set_config('queuetop.adopt_zone', $2::text, true),
       set_config('queuetop.adopt_states', $3::text, true),
       set_config('queuetop.adopt_into', $4::text, true),
       set_config('queuetop.adopt_fresh', $5::text, true),
       set_config('queuetop.adopt_look', '{}', true),
       set_config('queuetop.adopt_lines', '[]', true)
