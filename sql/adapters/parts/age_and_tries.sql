-- Terms of section jobs: older_than, younger_than, min_tries, top_tries.
      and ({older}::interval is null or {created} < now() - {older}::interval)
      and ({younger}::interval is null or {created} > now() - {younger}::interval)
      and ({min}::int is null or {tries} >= {min}::int)
      and ({top}::int is null or {tries} <= {top}::int)
