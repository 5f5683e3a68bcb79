-- Terms of section jobs that are checked row by row, from the CTE params p.
      and (p.part is null or strpos(lower({error}), p.part) > 0)
      and (p.older is null or {created} < now() - p.older)
      and (p.younger is null or {created} > now() - p.younger)
      and (p.min_tries is null or {tries} >= p.min_tries)
      and (p.top_tries is null or {tries} <= p.top_tries)
      and (p.words is null or not exists (select from unnest(p.words) w
               where strpos(lower(concat_ws(' ', {text})), lower(w)) = 0))
      and (p.not_words is null or not exists (select from unnest(p.not_words) w
               where strpos(lower(concat_ws(' ', {text})), lower(w)) > 0))
