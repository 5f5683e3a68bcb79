-- The answer of section counts_final, from the CTE size: of a large table a sample.
select queue, coalesce(sum(n) filter (where state = 'completed'), 0)::bigint as completed,
       coalesce(sum(n) filter (where state = 'cancelled'), 0)::bigint as cancelled, bool_or(approx) as approx
from (select queue, state, count(*)::numeric as n, false as approx from {schema}.{table}
      where state in ('completed', 'cancelled') and (select n <= 5e6 from size) group by 1, 2
      union all
      select queue, state, round(count(*) * (select n / 100000 from size)::numeric), true
      from {schema}.{table} tablesample system ((select least(100, 1e7 / n) from size))
      where state in ('completed', 'cancelled') and (select n > 5e6 from size) group by 1, 2) s
group by 1
