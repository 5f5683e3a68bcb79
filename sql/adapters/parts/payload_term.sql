-- The term in_payload of section jobs, from the CTE params p. {json}: the payload.
      and (p.inside is null
           or case when p.path is null then strpos(lower(left({json}::text, 1000000)), lower(p.inside)) > 0
                   when p.how = '=' then {json} #>> p.path = p.inside
                   else strpos(lower({json} #>> p.path), lower(p.inside)) > 0 end)
