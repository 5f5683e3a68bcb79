-- The report of a look at plain tables, or of their adoption: one row a line; refused and found are the same in each
-- row.
SELECT coalesce((look ->> 'found')::boolean, false) AS found, coalesce(look ->> 'refused', '') AS refused,
       coalesce(l.line, '') AS line
FROM (SELECT nullif(current_setting('queuetop.adopt_look', true), '')::jsonb AS look) s
LEFT JOIN LATERAL jsonb_array_elements_text(nullif(current_setting('queuetop.adopt_lines', true),
        '')::jsonb) WITH ORDINALITY l (line, o) ON true
ORDER BY l.o
