-- Whether a scheduling step would find something, between steps.
select {schema}.is_new()::int::text as state
