-- Locks the tables of the queue's schema (setting queuetop.schema): from here on nobody can make a view or a key that
-- depends on one of them, and no worker can register. A table that this login may not lock is left to DROP SCHEMA.
DO $$
DECLARE
    tables text := (SELECT string_agg(format('%I.%I', n.nspname, c.relname), ', ' ORDER BY c.oid)
                    FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
                    WHERE n.nspname = current_setting('queuetop.schema') AND c.relkind IN ('r', 'p')
                      AND NOT c.relispartition AND has_table_privilege(c.oid, 'TRUNCATE'));
BEGIN
    IF tables IS NOT NULL THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', tables);
    END IF;
END $$
