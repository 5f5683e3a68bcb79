-- Terms of section jobs: jobs with these words. {p}: the parameter words; {text}: where they are looked for.
      and ({p}::text[] is null or not exists (select from unnest({p}::text[]) x
              where strpos(lower(concat_ws(' ', {text})), lower(x)) = 0))
