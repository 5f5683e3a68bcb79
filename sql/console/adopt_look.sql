-- Looks for the two plain tables of a queue made by hand, and changes nothing. Stores the result in the setting
-- queuetop.adopt_look: {"found", "refused", "select"}, and the lines of the report in queuetop.adopt_lines. "select"
-- reads the old tables ({queue} and {work_queue} stand for their names) with the columns of the new ones; its column
-- becomes is NULL if the state is unknown.
DO $$
DECLARE
    src   text := current_setting('queuetop.adopt_from');
    zone  text := nullif(current_setting('queuetop.adopt_zone'), '');
    sure  boolean := zone IS NOT NULL;
    works regclass := to_regclass(format('%I.work_queue', src));
    have  jsonb := coalesce((SELECT jsonb_object_agg(attname, atttypid::regtype::text) FROM pg_attribute
                             WHERE attrelid = to_regclass(format('%I.queue', src)) AND attnum > 0 AND NOT attisdropped),
                             '{}');
    work  jsonb := coalesce((SELECT jsonb_object_agg(attname, atttypid::regtype::text) FROM pg_attribute
                             WHERE attrelid = works AND attnum > 0 AND NOT attisdropped), '{}');
    known text[] := '{id,created,version,queue,state,tries,delay,run_after,payload,payload_type}';
    keys  text[] := '{id,version,batch_order,started,lock_key,lock_timeout}';
    words jsonb := '{"PENDING": "ready", "RETRY": "retry", "FAILED": "failed", "COMPLETED": "completed"}';
    z     text[]; -- for each of four times, how it becomes one with a zone
    part  text;
    bad   text;
    more  text;
    rows  text;
    look  text;
    r     record;
BEGIN
    IF NOT (have ?& known AND work ?& keys) THEN
        PERFORM set_config('queuetop.adopt_look', '{"found": false}', true);
        RETURN;
    END IF;
    zone := coalesce(zone, (SELECT reset_val FROM pg_settings WHERE name = 'TimeZone'));
    z := ARRAY(SELECT CASE WHEN t = 'timestamp without time zone' THEN format('AT TIME ZONE %L', zone) ELSE '' END
               FROM unnest(ARRAY[have ->> 'created', have ->> 'run_after', work ->> 'started',
                                 work ->> 'lock_timeout']) WITH ORDINALITY v (t, o)
               ORDER BY o);
    FOREACH part IN ARRAY regexp_split_to_array(current_setting('queuetop.adopt_states'), ',') LOOP
        CONTINUE WHEN part = '';
        IF part !~ '=(ready|retry|failed|completed|cancelled)$' THEN
            bad := format('"%s" does not say STATE=ready, retry, failed, completed or cancelled', part);
        END IF;
        words := words || jsonb_build_object(upper(regexp_replace(part, '=[a-z]*$', '')),
                                             coalesce(substring(part from '=([a-z]*)$'), ''));
    END LOOP;
    rows := 'SELECT y.*, CASE WHEN meant IN (''failed'', ''completed'', ''cancelled'') OR meant IS NULL THEN meant'
        || ' WHEN NOT stands AND meant = ''retry'' AND run_after IS NOT NULL THEN ''retry'''
        || ' WHEN NOT stands AND run_after > now() THEN ''scheduled'' ELSE ''ready'' END AS becomes'
        || ' FROM (SELECT q.id, q.queue::text AS queue, q.state::text AS state, q.tries, q.delay, q.payload, '
           'q.payload_type::text AS payload_type,'
        || format(' %L::jsonb ->> upper(q.state) AS meant, w.id IS NOT NULL AS stands, %s AS work_created, '
                  'w.batch_order, w.version,', words,
                  CASE WHEN work ? 'created' THEN 'w.created' ELSE 'NULL' END)
        || format(' w.lock_key::text AS lock_key, q.created %s AS created, q.run_after %s AS run_after,', z[1], z[2])
        || format(' w.started %s AS started, w.lock_timeout %s AS lock_timeout,', z[3], z[4])
        || ' coalesce(lower(split_part(q.payload_type, '';'', 1)) ~ ''^(application|text)/([^ ]+[+])?json *$'', false) '
           'AS is_json'
        || ' FROM {queue} q LEFT JOIN {work_queue} w USING (id)) y';
    look := replace(replace(rows, '{queue}', format('%I.queue', src)), '{work_queue}', format('%I.work_queue', src));
    EXECUTE 'WITH x AS MATERIALIZED (' || look || ') SELECT count(*) AS n, count(*) FILTER (WHERE stands) AS stands,'
        || ' count(*) FILTER (WHERE lock_key IS NOT NULL) AS leased, count(DISTINCT lock_key) AS nodes,'
        || ' count(*) FILTER (WHERE lock_key IS NOT NULL AND coalesce(lock_timeout < now(), true)) AS expired,'
        || ' count(*) FILTER (WHERE lock_key IS NOT NULL AND becomes IN (''failed'', ''completed'', ''cancelled'')) AS '
           'ended,'
        || ' count(*) FILTER (WHERE is_json AND payload IS NOT NULL) AS json, count(*) FILTER (WHERE NOT is_json AND '
           'payload IS NOT NULL) AS other,'
        || ' count(*) FILTER (WHERE delay > 0 AND run_after IS NULL) AS delayed,'
        || ' count(*) FILTER (WHERE length(queue) NOT BETWEEN 1 AND 200) AS names,'
        || ' count(*) FILTER (WHERE isfinite(created) AND created > now() + interval ''1 min'') AS future,'
        || ' (SELECT string_agg(format(''%s (%s)'', quote_ident(left(state, 60)), n), '', '' ORDER BY state) FROM'
        || '  (SELECT state, count(*) AS n FROM x WHERE becomes IS NULL GROUP BY 1 LIMIT 20) u) AS unknown,'
        || ' (SELECT jsonb_agg(format(''state %s: %s become %s'', quote_ident(left(state, 60)), n, becomes) ORDER BY '
           'state, becomes) FROM'
        || '  (SELECT state, becomes, count(*) AS n FROM x WHERE becomes IS NOT NULL GROUP BY 1, 2 LIMIT 50) u) AS '
           'states FROM x'
    INTO r;
    SELECT string_agg(c, ', ') INTO more FROM (
        SELECT 'queue.' || k AS c FROM jsonb_object_keys(have) k WHERE k <> ALL (known)
        UNION ALL SELECT 'work_queue.' || k FROM jsonb_object_keys(work) k WHERE k <> ALL (keys || 'created'::text)) c;
    bad := CASE
        WHEN bad IS NOT NULL THEN bad
        WHEN r.unknown IS NOT NULL THEN 'what to do with jobs in these states? ' || r.unknown
        || '; say for each --adopt-states STATE=ready, or retry, failed, completed, cancelled'
        WHEN r.names > 0 THEN r.names || ' jobs stand in queues whose name is empty or longer than 200 characters: '
                                         'rename these queues first'
        WHEN r.future > 0 AND NOT sure THEN format('read in the time zone %s, %s jobs were made in the future: say '
                                                   '--adopt-zone', zone, r.future)
        WHEN to_regclass(format('%I.queue_before_queuetop', src)) IS NOT NULL
            OR to_regclass(format('%I.work_queue_before_queuetop', src)) IS NOT NULL
            THEN format('%I.queue_before_queuetop of an earlier adoption is in the way: drop or rename it', src) END;
    PERFORM set_config('queuetop.adopt_look', jsonb_build_object('found', true, 'refused', bad, 'select', rows, 'n',
            r.n)::text, true),
            set_config('queuetop.adopt_lines', (jsonb_build_array(
        format('schema %I holds a queue of two plain tables: %s jobs, %s of them in work_queue', src, r.n, r.stands))
        || coalesce(r.states, '[]') || to_jsonb(array_remove(ARRAY[
        format('leases: %s of %s nodes, %s of them expired; lock_key, started, lock_timeout and version are kept',
               r.leased - r.ended, r.nodes, r.expired),
        CASE WHEN r.ended > 0 THEN format('leases of jobs that are over: %s, not kept', r.ended) END,
        format('payloads: %s called JSON (where they are valid; else bytes), '
               '%s others (bytes, with their payload_type)', r.json, r.other),
        format('times without a zone are read as %s%s', zone,
               CASE WHEN sure THEN '' ELSE ' (TimeZone of this database; --adopt-zone says otherwise)' END),
        CASE WHEN r.delayed > 0 THEN format('delay without run_after: %s jobs, ready at once as with the old scheduler',
                                            r.delayed) END,
        CASE WHEN more IS NOT NULL THEN 'not carried over, but still in the old tables: ' || more END,
        format('the old tables are kept as %1$I.queue_before_queuetop and %1$I.work_queue_before_queuetop until you '
               'drop them', src),
        'locks: both tables wholly, for as long as it takes; waits at most 5 s for them'], NULL)))::text, true);
END $$
