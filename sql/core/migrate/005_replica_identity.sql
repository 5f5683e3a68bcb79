-- Each table gets a replica identity. With a publication for all tables, PostgreSQL rejects each UPDATE and DELETE on a
-- table that has none.
-- tables
do $$
declare
    parent regclass;
    part   regclass;
begin
    perform from scheduler where term = 0 for update; -- no step makes a partition meanwhile
    foreach parent in array '{history,attempt}'::regclass[] loop
        execute format('alter table %s replica identity full', parent);
        for part in select i.inhrelid from pg_inherits i where i.inhparent = parent loop
            execute format('alter table %s replica identity full', part);
        end loop;
    end loop;
end $$;
alter table delta replica identity full;
alter table counter replica identity full;
alter table cursor replica identity using index cursor_queue;
alter table bucket replica identity using index bucket_queue;
