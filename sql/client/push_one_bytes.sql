-- Pushes one job whose payload is bytes of the type $10, in the transaction of the caller's connection.
select id::text, pushed::int
from {schema}.push_bytes(queue => $1::text, body => $2::bytea, kind => $3::text, priority => $4::int, run_after => $5::timestamptz,
                         delay => $6::interval, unique_key => $7::text, max_tries => $8::int, run_timeout => $9::interval,
                         payload_type => $10::text)
