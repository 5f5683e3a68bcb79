-- Registers a worker process: name, session, host, pid, version, protocol, queues, slots.
select null::text as state
from {schema}.node_start($1::text, $2::uuid, $3::text, $4::int, $5::text, $6::int, $7::text[], $8::int)
