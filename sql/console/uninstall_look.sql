-- What `queuetop uninstall` would drop, in words: one row. The schema is the one that search_path names first.
select format(E'schema %s, version %s, installed at %s, %s on disk'
    '\nunfinished jobs: %s (%s)\nfinished jobs: %s; audit: %s actions\nleases: %s claimed',
              quote_ident(current_schema()), (select version from meta), (select installed_at::timestamptz(0)
                      from meta),
              (select pg_size_pretty(coalesce(sum(pg_total_relation_size(c.oid)), 0)) from pg_class c
               where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and c.relkind in ('r', 'm')),
              (select count(*) from queue),
              (select coalesce(string_agg(state || ' ' || n, ', ' order by state), 'none')
               from (select case when r.seq is null then q.state::text else 'running' end as state, count(*) as n
                     from queue q
                     left join (select distinct w.queue, w.priority, unnest(w.seqs) as seq from work_queue w
                                where w.lock_key is not null) r
                       on r.queue = q.queue and r.priority = q.priority and r.seq = q.seq and q.state = 'ready'
                     group by 1) z),
              (select count(*) from history), (select count(*) from audit),
              (select count(*) from work_queue where lock_key is not null)) as text
