-- Which rows section jobs looks at, in the three shapes of table queue_tasks.
    from {schema}.queue_tasks t
    where ($1::text is null or $1::text = 'queue_tasks')
      and ($2::text[] is null
           or 'ready' = any($2::text[]) and t.started_at is null
           or 'running' = any($2::text[]) and t.started_at is not null)
      and ($7::interval is null or t.created_at < now() - $7::interval)
      and ($8::interval is null or t.created_at > now() - $8::interval)
      and ($9::int is null or 0 >= $9::int)
      and ($10::int is null or 0 <= $10::int)
      and ($11::text[] is null
           or t.id = any(array(select i::bigint from unnest($11::text[]) i where i ~ '^[0-9]{1,18}$')))
      and ($14::text is null
           or t.id < case when $14::text ~ '^-?[0-9]{1,19}$' then $14::bigint end)
    order by t.id desc
