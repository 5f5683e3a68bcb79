-- Locks both plain tables: from here on the old programs wait. install_begin says how long this statement waits for the
-- locks.
DO $$
DECLARE
    src text := current_setting('queuetop.adopt_from');
BEGIN
    IF to_regclass(format('%I.queue', src)) IS NOT NULL AND to_regclass(format('%I.work_queue', src)) IS NOT NULL THEN
        EXECUTE format('LOCK TABLE %1$I.queue, %1$I.work_queue IN ACCESS EXCLUSIVE MODE', src);
    END IF;
END $$
