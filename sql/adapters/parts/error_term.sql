-- Terms of section jobs: the error. {p}: the parameter error; {key}: the text whose key is that of the group.
      and ({p}::text is null
           or case when {p}::text like '~%' then strpos(lower({error}), lower(substr({p}::text, 2))) > 0
                   else coalesce({error_key({key})}, case when {state} = 'failed' then '' end)
                        = {error_key({p}::text)} end)
