-- Jobs are done, and up to $7 others are claimed; rows with an outcome name those that are not done after all.
select outcome, lease, version, seq, id::text, queue, kind, priority, try, max_tries, payload::text, body, payload_type,
       (extract(epoch from lease_until) * 1000)::bigint as lease_until_ms,
       (extract(epoch from lease_until - now()) * 1000)::bigint as lease_ms,
       (extract(epoch from run_timeout) * 1000)::bigint as run_timeout_ms
from {schema}.complete_and_claim($1::text, $2::bigint[], $3::int[], $4::bigint[], $5::timestamptz[], $6::bytea[], $7::int,
                                 $8::interval, $9::text[], $10::boolean)
