-- The end of section jobs of the tables, behind the WHERE of CTE looked_at: further conditions, and the rows. At most
-- $12 rows are looked at for kind, error and words, newest first, and a page of $13 is answered; where fewer were found
-- among these, the last row says from where to look on.
-- part: age_and_tries created={created}; tries={tries}; older=$7; younger=$8; min=$9; top=$10
      and ($11::text[] is null or t.id = any({ids})) and ($14::text is null or t.id < {before})
    order by t.id desc
-- part: jobs_matching
    order by key desc limit coalesce($13::int, 100)
)
select id, queue, kind, state, priority, tries, max_tries, created_ms, run_after_ms, changed_ms, started_ms,
       finished_ms, node, lease_until_ms, left(error, 300) as error, stale, cursor
from (select 1 as part, f.* from matching f
      union all
      (select 2, w.key, null, '', '', '', null, 0, null, null, null, null, null, null, null, null, '', null, w.cursor
       from looked_at w where num_nonnulls($3::text, $4::text, $5::text[], $6::text[]) > 0
                and (select count(*) from matching) < coalesce($13::int, 100)
                and (select count(*) from looked_at) = coalesce($12::int, 10000)
       order by w.key limit 1)) x
order by part, key desc
