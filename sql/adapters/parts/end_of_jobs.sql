-- The end of section jobs: a row without an id gives the cursor to continue from.
from matching f
union all
select '', '', '', '', null, 0, null, null, null, null, null, null, null, null, null, '', {cursor}, null
from looked_at w where o = coalesce({n}::int, 10000) and (select count(*) from matching) < coalesce({top}::int, 100)
