-- The end of CTE runs, and CTE live: of each state, queue and priority the jobs that are next to start.
    union all
    select r.rank, r.state, j.queue, j.priority from runs r, params p cross join lateral (
        select j.queue, j.priority from {schema}.{table} j
        where j.state = r.state and (p.queue is not null or (j.queue, j.priority) > (r.queue, r.priority))
          and (p.queue is null or (j.queue = p.queue and j.priority > r.priority))
        order by j.queue, j.priority limit 1) j
), live as (
    select r.rank, r.o1, j.scheduled_at as at, j.id,
           row_number() over (order by r.rank, r.o1, j.scheduled_at, j.id) as o
    from (select *, case when rank = 2 then priority else 0 end as o1 from runs where rank < 6) r, params p
    cross join lateral (
        select j.scheduled_at, j.id from {schema}.{table} j
        where j.state = r.state and j.queue = r.queue and j.priority = r.priority
          and (j.scheduled_at, j.id) >
              (case when r.rank = p.c_rank and r.o1 = p.c_priority then p.c_at else '-infinity' end,
               case when r.rank = p.c_rank and r.o1 = p.c_priority then p.c_id else -1 end)
        order by j.scheduled_at, j.id limit p.most) j
    where p.c_rank is null or r.rank > p.c_rank or r.o1 >= p.c_priority order by o limit (select most from params)
