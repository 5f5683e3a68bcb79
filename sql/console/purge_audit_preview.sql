-- `queuetop purge-audit` looks: how many actions are older than $1 milliseconds.
select p.actions, b.before::text as before,
       format('actions older than %s: %s, with %s batches%s', b.before::timestamptz(0), p.actions, p.batches,
              coalesce(', the oldest of ' || p.oldest::timestamptz(0), '')) as line
from (select now() - $1::bigint * interval '1 ms' as before) b, purge_audit_preview(b.before) p
