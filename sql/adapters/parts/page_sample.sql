-- Which part of the table is read at random, so that it is not more than so many bytes.
    select least(1, {bytes} / greatest(1, sum(pg_relation_size(relid)))) as part
    from pg_partition_tree(to_regclass(format('%I.job', {schema_lit}::text))) where isleaf
