-- Moves the jobs and leases of the plain tables, which have been renamed, into the queue that search_path names. The
-- order of jobs: those in work_queue first. A lease keeps node, times and version; its job counts as started. Fails
-- unless the counts of both agree, so nothing is lost.
DO $$
DECLARE
    src    text := current_setting('queuetop.adopt_from');
    look   jsonb := current_setting('queuetop.adopt_look')::jsonb;
    rows   text := replace(replace(look ->> 'select', '{queue}', format('%I.queue_before_queuetop', src)),
                           '{work_queue}',
                           format('%I.work_queue_before_queuetop', src));
    live   bigint;
    ended  bigint;
    leases bigint;
    json   bigint;
    seq    text;
BEGIN
    IF NOT (look ->> 'found')::boolean THEN
        RETURN;
    END IF;
    PERFORM scheduler_lock(true);
    CREATE FUNCTION adopt_json(bytes bytea) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $f$
    BEGIN
        RETURN convert_from(bytes, 'UTF8')::json;
    EXCEPTION WHEN others THEN
        RETURN NULL; -- its type says JSON, but it is not valid JSON
    END $f$;
    rows := 'SELECT x.*, CASE WHEN is_json AND payload IS NOT NULL THEN adopt_json(payload) END AS js FROM (' || rows
        || ') x';
    EXECUTE 'INSERT INTO queue (id, created, changed, state, queue, tries, run_after, payload, body, payload_type, '
            'error, error_key)'
        || ' SELECT id, created, CASE WHEN isfinite(created) THEN created ELSE now() END, becomes::job_state, queue, '
           'least(greatest(tries, 0), 32767),'
        || ' CASE WHEN becomes IN (''scheduled'', ''retry'') THEN run_after END, js, CASE WHEN js IS NULL THEN payload '
           'END, payload_type,'
        || ' CASE WHEN becomes = ''failed'' THEN ''had failed before it was adopted'' END,'
        || ' CASE WHEN becomes = ''failed'' THEN error_key(''had failed before it was adopted'') END'
        || ' FROM (' || rows || ') s WHERE becomes IN (''ready'', ''scheduled'', ''retry'', ''failed'')'
        || ' ORDER BY NOT stands, work_created, batch_order, s.created, s.id';
    GET DIAGNOSTICS live = ROW_COUNT;
    EXECUTE 'INSERT INTO history (id, created, finished, state, priority, tries, queue, kind, payload, body, '
            'payload_type)'
        || ' SELECT id, created, now(), becomes::job_state, 5, least(greatest(tries, 0), 32767), queue, '''', js,'
        || ' CASE WHEN js IS NULL THEN payload END, payload_type FROM (' || rows
        || ') s WHERE becomes IN (''completed'', ''cancelled'')';
    GET DIAGNOSTICS ended = ROW_COUNT;
    EXECUTE 'INSERT INTO delta (queue, priority, error_key, failed, pushed, completed, cancelled)'
        || ' SELECT queue, 5, NULL, NULL, count(*), count(*) FILTER (WHERE becomes = ''completed''), count(*) FILTER '
           '(WHERE becomes = ''cancelled'')'
        || ' FROM (' || rows || ') s WHERE becomes IN (''completed'', ''cancelled'') GROUP BY queue'
        || ' UNION ALL SELECT queue, 0, error_key(''had failed before it was adopted''), count(*), NULL, NULL, NULL '
           'FROM (' || rows || ') s'
        || ' WHERE becomes = ''failed'' GROUP BY queue';
    EXECUTE 'INSERT INTO work_queue (batch_order, version, priority, queue, seqs, started_seqs, lock_key, started, '
            'lock_timeout)'
        || ' SELECT s.batch_order, s.version, 5, s.queue, ARRAY[q.seq], ARRAY[q.seq], s.lock_key, coalesce(s.started, '
           'now()), coalesce(s.lock_timeout, now())'
        || ' FROM (' || rows || ') s JOIN queue q USING (id) WHERE s.lock_key IS NOT NULL AND s.becomes = ''ready'' '
                                'ORDER BY q.seq';
    GET DIAGNOSTICS leases = ROW_COUNT;
    EXECUTE 'WITH n AS (INSERT INTO queue_config (queue) SELECT DISTINCT queue FROM (' || rows
    || ') s ON CONFLICT DO NOTHING)'
        || ' SELECT move_cursor(array_agg(z.queue), array_agg(5), array_agg(z.low - 1), array_agg(z.high)) FROM '
           '(SELECT q.queue, min(q.seq) AS low,'
        || ' max(q.seq) FILTER (WHERE s.lock_key IS NOT NULL) AS high FROM (' || rows || ') s JOIN queue q USING (id)'
        || ' WHERE q.state = ''ready'' GROUP BY 1) z HAVING count(*) > 0';
    EXECUTE 'SELECT count(*) FROM (' || rows || ') s WHERE js IS NOT NULL' INTO json;
    IF live + ended <> (look ->> 'n')::bigint THEN
        RAISE 'of % jobs % would be moved: nothing was changed', look ->> 'n', live + ended;
    END IF;
    DROP FUNCTION adopt_json(bytea);
    -- as in 20_counters: otherwise a number could be given twice after a crash (wal_level minimal)
    IF current_setting('queuetop.adopt_fresh') = 'true' THEN
        FOR seq IN SELECT c.oid::regclass FROM pg_class c
        WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind = 'S' LOOP
            EXECUTE format('SELECT setval(%L, last_value) FROM %s WHERE is_called', seq, seq);
        END LOOP;
    END IF;
    PERFORM set_config('queuetop.adopt_lines', (current_setting('queuetop.adopt_lines')::jsonb || to_jsonb(ARRAY[
        format('adopted: %s jobs, %s finished ones to history, %s leases; %s payloads are JSON now', live, ended,
               leases, json)]))::text, true);
END $$
