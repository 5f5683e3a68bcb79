-- Takes both plain tables for itself, waiting at most 5 s: from here on the old programs wait.
DO $$
DECLARE
    src  text := current_setting('queuetop.adopt_from');
    wait text := current_setting('lock_timeout');
BEGIN
    PERFORM set_config('lock_timeout', '5s', true);
    IF to_regclass(format('%I.queue', src)) IS NOT NULL AND to_regclass(format('%I.work_queue', src)) IS NOT NULL THEN
        EXECUTE format('LOCK TABLE %1$I.queue, %1$I.work_queue IN ACCESS EXCLUSIVE MODE', src);
    END IF;
    PERFORM set_config('lock_timeout', wait, true);
END $$
