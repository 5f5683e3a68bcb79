-- Terms of section jobs: jobs without these words. {p}: the parameter not_words.
      and ({p}::text[] is null or not exists (select from unnest({p}::text[]) x
              where strpos(lower(concat_ws(' ', {text})), lower(x)) > 0))
