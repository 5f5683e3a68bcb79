-- Renames the plain tables and their indexes, so that their names are free. Fails if the look (adopt_look.sql) refused
-- the adoption.
DO $$
DECLARE
    src  text := current_setting('queuetop.adopt_from');
    look jsonb := current_setting('queuetop.adopt_look')::jsonb;
    i    record;
BEGIN
    IF NOT (look ->> 'found')::boolean THEN
        RETURN;
    ELSIF look ->> 'refused' IS NOT NULL THEN
        RAISE '%', look ->> 'refused' USING errcode = 'QT007';
    END IF;
    FOR i IN SELECT c.relname FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
             WHERE x.indrelid IN (to_regclass(format('%I.queue', src)), to_regclass(format('%I.work_queue', src))) LOOP
        EXECUTE format('ALTER INDEX %I.%I RENAME TO %I', src, i.relname, left(i.relname, 46) || '_before_queuetop');
    END LOOP;
    EXECUTE format('ALTER TABLE %I.queue RENAME TO queue_before_queuetop', src);
    EXECUTE format('ALTER TABLE %I.work_queue RENAME TO work_queue_before_queuetop', src);
    EXECUTE format('COMMENT ON TABLE %I.queue_before_queuetop IS %L', src,
                   format('Adopted by queuetop at %s into schema %s: its jobs stand there. Nothing reads this table '
                          'any more', now(),
                          current_setting('queuetop.adopt_into')));
END $$
