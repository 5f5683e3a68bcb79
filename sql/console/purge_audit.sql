-- `queuetop purge-audit` does one batch: $1 action (NULL = a new one), $2 batch, $3 before, $4 reason.
select a.action::text as action, coalesce(sum(p.n), 0)::bigint as n, (max(p.cursor) is not null)::int as more
from (select coalesce($1::uuid, gen_random_uuid()) as action) a
left join lateral purge_audit(a.action, $2::int, $3::timestamptz, 1000, $4) p on true
group by a.action
