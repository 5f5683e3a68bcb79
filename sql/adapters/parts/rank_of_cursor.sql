-- The parts of the cursor, $17.
           nullif(split_part($17::text, '/', 1), '')::int as c_rank,
           nullif(split_part($17::text, '/', 2), '')::int as c_priority,
           nullif(split_part($17::text, '/', 3), '')::bigint as c_id,
