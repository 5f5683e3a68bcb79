-- `queuetop purge-audit` counts: how many actions are older than $1 milliseconds, and why this login may not purge
-- them.
select p.actions, b.before::text as before,
       case when not has_function_privilege('purge_audit(uuid, int, timestamptz, int, text)', 'execute')
            then format('the audit belongs to role %I: only that role and its members may purge it',
                        (select nspowner::regrole from pg_namespace where nspname = current_schema())) end as denied,
       format('actions older than %s: %s, with %s batches%s', b.before::timestamptz(0), p.actions, p.batches,
              coalesce(', the oldest of ' || p.oldest::timestamptz(0), '')) as line
from (select now() - $1::bigint * interval '1 ms' as before) b, purge_audit_preview(b.before) p
