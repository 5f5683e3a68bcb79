-- How many rows are looked at: n, if any of these terms must be checked row by row.
    limit case when num_nonnulls({terms}) > 0 then coalesce({n}::int, 10000) else coalesce({top}::int, 100) end
