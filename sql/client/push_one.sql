-- Pushes one job with a JSON payload, in the transaction of the caller's connection.
select id::text, pushed::int
from {schema}.push(queue => $1::text, payload => $2::json, kind => $3::text, priority => $4::int, run_after => $5::timestamptz,
                   delay => $6::interval, unique_key => $7::text, max_tries => $8::int, run_timeout => $9::interval)
