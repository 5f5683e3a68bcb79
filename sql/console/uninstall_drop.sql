-- Drops the queue's schema (setting queuetop.schema) and, if queuetop.drop_roles says so, the roles that nothing else
-- needs.
DO $$
DECLARE
    s    text := current_setting('queuetop.schema');
    role text;
BEGIN
    PERFORM set_config('client_min_messages', 'warning', true); -- no notice for each table
    EXECUTE format('DROP SCHEMA %I CASCADE', s);
    PERFORM set_config('client_min_messages', 'notice', true);
    FOREACH role IN ARRAY ARRAY[current_setting('queuetop.viewer'), current_setting('queuetop.worker'),
                                current_setting('queuetop.operator'), current_setting('queuetop.pusher')] LOOP
        IF to_regrole(quote_ident(role)) IS NULL THEN
            CONTINUE;
        ELSIF current_setting('queuetop.drop_roles') <> 'true' THEN
            RAISE NOTICE 'role % is kept', quote_ident(role);
            CONTINUE;
        END IF;
        BEGIN
            EXECUTE format('DROP ROLE %I', role);
            RAISE NOTICE 'role % dropped', quote_ident(role);
        EXCEPTION WHEN insufficient_privilege OR dependent_objects_still_exist THEN
            RAISE NOTICE 'role % is kept: %', quote_ident(role), SQLERRM;
        END;
    END LOOP;
END $$
