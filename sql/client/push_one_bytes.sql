-- Pushes one job whose payload is bytes of the type $10, in the transaction of the caller's connection.
select id::pg_catalog.text, pushed::int
from {schema}.push_bytes(queue => $1, body => $2, kind => $3, priority => $4, run_after => $5, delay => $6,
                         unique_key => $7, max_tries => $8, run_timeout => $9, payload_type => $10)
