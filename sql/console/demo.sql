-- The demo (queuetop --demo): the scene on its private server, and the statements that keep it moving. ui/demo/demo.c
-- runs them by their names. Some texts are hostile on purpose (an escape sequence, a right-to-left mark, bytes that are
-- no UTF-8): a console must show them harmlessly.

-- As the superuser, outside a transaction block: a database that is not called postgres.
-- name: create
CREATE DATABASE demo
-- As the user app, four times a second.
-- name: load
SELECT public.demo_load()
-- The snapshot of this report stays open for minutes, so that the Database screen shows a session that holds vacuum
-- back.
-- name: report
SELECT count(*) AS jobs FROM queue WHERE pg_sleep(CASE WHEN seq = (SELECT min(seq) FROM queue) THEN 600 ELSE 0 END)
IS NOT NULL
-- As the owner: waits until a scheduler and a worker are there, so that the first screen shows them; 10 s at most.
-- name: works
DO $$ BEGIN
    FOR i IN 1 .. 100 LOOP
        EXIT WHEN EXISTS (SELECT FROM node) AND EXISTS (SELECT FROM scheduler WHERE until > clock_timestamp());
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$
-- As the owner: two users, settings that show changes within a minute, the load, the program of the jobs, the backlog.
-- name: scene
CREATE ROLE ops LOGIN IN ROLE queues_operator, queues_viewer, pg_read_all_stats;
CREATE ROLE app LOGIN IN ROLE queues_worker, queues_viewer;

SELECT done.* FROM (VALUES
    ('image.resize', '{"max_running": 5, "backoff_base": "5s", "backoff_max": "2min"}'),
    ('search.index', '{"max_tries": 3, "backoff_base": "3s", "backoff_max": "30s"}'),
    ('thumb.video',  '{"max_tries": 2, "max_running": 3, "run_timeout": "60s"}'),
    ('mail.send',    '{"weight": 2}'),
    ('webhook.out',  '{"backoff_base": "4s", "backoff_max": "5min"}'),
    ('billing.sync', '{"max_running": 2, "backoff_base": "2s"}'),
    ('sms.send',     '{"max_tries": 2, "backoff_base": "5s"}'),
    ('report.daily', '{"max_running": 1}'),
    ('invoice.pdf',  '{"max_tries": 3, "backoff_base": "5s"}'),
    ('audit.ship',   '{"weight": 2}')) s (queue, settings)
CROSS JOIN set_queue(gen_random_uuid(), s.queue, s.settings::jsonb, 'demo') done;

SELECT done.* FROM (VALUES
    ('heartbeat', '{"cron": "@every 10s", "queue": "audit.ship", "kind": "heartbeat", "unique": true,'
                  ' "comment": "each ten seconds, unless one waits"}', '{"from": "cron"}'),
    ('nightly', '{"cron": "30 2 * * *", "tz": "Europe/Berlin", "queue": "report.daily", "kind": "sales",'
                ' "catch_up": "all", "comment": "by the clock of Berlin"}',
                '{"report": "sales"}')) s (name, settings, payload)
CROSS JOIN schedule_set(gen_random_uuid(), s.name, s.settings::jsonb, s.payload, 'demo') done;

-- The rates add up to about 30 jobs a second, a small load for two cores. In texts '#' becomes a digit, '~' one from 1
-- to 9. A payload with a type is bytes, written as decode(.., 'escape') reads them.
CREATE TABLE public.demo_kind (queue text, kind text, per_second float, backlog int, urgent_percent int,
    later_percent int, max_tries int, unique_key text, type text, payload text, place serial);
INSERT INTO public.demo_kind VALUES
('image.resize', 'upload', 3.5, 380, 5, 0, null, null, null,
 E'{"bucket": "acme-media", "key": "2026/11/beach-~###.jpg", "sizes": [320, 640, 1280],\n'
 ' "notify": {"url": "https://api.acme.example/hook/~##"}}'),
('image.resize', 'avatar', 0.5, 20, 50, 0, null, 'avatar:~##', null,
 E'{"bucket": "acme-media", "key": "avatars/\u202egpj.exe", "sizes": [64]}'),
('search.index', 'product', 4, 60, 0, 0, 3, null, null, '{"doc": ~####, "index": "products-v7"}'),
('thumb.video', '', 0.5, 30, 0, 0, null, null, null, '{"video": "v~####", "at_s": [1, 5, 30], "codec": "h264"}'),
('mail.send', 'receipt', 5, 20, 10, 0, null, null, null,
 '{"to": "user~###@mail.example", "template": "receipt", "order": ~#####}'),
('mail.send', 'newsletter', 0.5, 120, 0, 100, null, null, null,
 '{"to": "user~###@mail.example", "template": "newsletter", "edition": "2026-11"}'),
('webhook.out', 'order.paid', 3, 20, 0, 0, null, null, null,
 '{"url": "https://hooks.acme.example/in", "event": "order.paid", "order": ~#####}'),
('billing.sync', '', 1, 5, 0, 0, null, 'customer:~#', null, '{"customer": ~#, "since": "2026-11-01"}'),
('sms.send', '', 2, 5, 20, 5, null, null, 'text/plain', E'+49170~######\nYour code is ~#####'),
('report.daily', 'revenue', 0.02, 3, 0, 0, null, null, null,
 '{"report": "revenue", "day": "2026-11-2~", "format": "pdf"}'),
('invoice.pdf', '', 0.7, 5, 0, 0, null, null, 'application/x-protobuf',
 E'\n\\006INV~##\\020\\226\\001\\032\\013acme GmbH \\303('),
('audit.ship', '', 4, 2, 0, 0, null, null, null, '{"stream": "audit", "from": ~######, "count": ~##}');
GRANT SELECT ON public.demo_kind TO app;

CREATE FUNCTION public.demo_fill(pattern text) RETURNS text LANGUAGE sql SET search_path = pg_catalog AS $$
    SELECT string_agg(CASE letter WHEN '#' THEN floor(random() * 10)::text
                                  WHEN '~' THEN floor(1 + random() * 9)::text ELSE letter END, '' ORDER BY place)
    FROM regexp_split_to_table(pattern, '') WITH ORDINALITY l (letter, place)
$$;
COMMENT ON FUNCTION public.demo_fill(text) IS 'The text with random digits';

CREATE FUNCTION public.demo_push(seconds float, pace float) RETURNS bigint LANGUAGE sql
SET search_path FROM CURRENT AS $$
    WITH swinging AS ( -- the factor of a rate, from 0.2 to 1.8; each kind swings with a period of its own
        SELECT k.*, CASE WHEN phase < 0.5 THEN 0.2 + 3.2 * phase ELSE 3.4 - 3.2 * phase END AS swing
        FROM public.demo_kind k
        CROSS JOIN LATERAL (SELECT extract(epoch FROM clock_timestamp()) * (1 + 0.6 * place) / 150 + 0.37 * place)
                           a (at)
        CROSS JOIN LATERAL (SELECT at - floor(at)) p (phase)
    ), jobs AS (
        SELECT k.*, public.demo_fill(k.payload) AS text, public.demo_fill(k.unique_key) AS key,
               CASE WHEN random() * 100 < later_percent THEN make_interval(secs => 30 + random() * 1800) END AS delay,
               CASE WHEN random() * 100 < urgent_percent THEN 1 END AS priority
        FROM swinging k
        CROSS JOIN generate_series(1, coalesce(floor(per_second * seconds * swing * pace + random())::int, backlog)) n
    )
    SELECT count(*) FROM (SELECT array_agg(queue) AS queues, array_agg(kind) AS kinds,
            array_agg(priority) AS priorities, array_agg(delay) AS delays, array_agg(key) AS keys,
            array_agg(max_tries) AS tries, array_agg(CASE WHEN type IS NULL THEN text END) AS texts,
            array_agg(CASE WHEN type IS NOT NULL THEN decode(text, 'escape') END) AS bodies,
            array_agg(type) AS types FROM jobs HAVING count(*) > 0) j
    CROSS JOIN push_many(ids => NULL, queues => j.queues, kinds => j.kinds, priorities => j.priorities,
        delays => j.delays, unique_keys => j.keys, max_tries => j.tries, payloads => j.texts, bodies => j.bodies,
        types => j.types)
$$;
COMMENT ON FUNCTION public.demo_push(float, float) IS 'Pushes the jobs of that many seconds, at that part of the '
    'rates; NULL = the backlog of the start';

CREATE FUNCTION public.demo_pace(ready bigint) RETURNS float LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
    SELECT greatest(0.05, least(1, (1200 - ready) / 600.0))
$$;
COMMENT ON FUNCTION public.demo_pace(bigint) IS 'The part of the rates that is pushed while so many jobs are ready. It '
    'drops while the workers are behind, so that the demo does not fill up on a slow machine';

CREATE FUNCTION public.demo_load() RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    last timestamptz := nullif(current_setting('demo.last', true), '');
    ready bigint;
BEGIN
    PERFORM set_config('demo.last', clock_timestamp()::text, false);
    SELECT coalesce(sum(o.ready), 0) INTO ready FROM overview() o;
    RETURN public.demo_push(least(extract(epoch FROM clock_timestamp() - coalesce(last, clock_timestamp())), 10),
                            public.demo_pace(ready));
END
$$;
COMMENT ON FUNCTION public.demo_load() IS 'Pushes what is due since the last call in this session';

-- The operator has paused a queue, for a reason that the console shows.
SET LOCAL SESSION AUTHORIZATION ops;
SELECT count(*) FROM pause(gen_random_uuid(), 'report.daily', 'month close: waiting for the books');
SET LOCAL SESSION AUTHORIZATION DEFAULT;
SELECT public.demo_push(NULL, 1)
-- What the workers run for a job. It takes as long, and fails as often, as the line of its queue says. The random part
-- of the job's id decides, so the same job fails in the same way each time.
-- It is no file, which another user could replace: the shell gets it as an argument.
-- name: program
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
error= job=$((0x${QUEUETOP_JOB_ID##*-} % 2147483648)) how=$1
seed=$((job + QUEUETOP_TRY * 7919))
roll() { # a percentage
    seed=$(((seed * 1103515245 + 12345) % 2147483648)) rolled=$((seed / 65536 % 100))
}
may_fail() { # PERCENT ERROR: this try
    roll
    [ "$error" ] || [ "$rolled" -ge "$1" ] || error=$2
}
must_fail() { # PERCENT ERROR: each try of the job
    [ "$error" ] || [ $((job / 8 % 100)) -ge "$1" ] || error=$2
}
roll; roll; roll
percent=$((50 + rolled)) digit=$((1 + seed % 9)) number=$((1000000 + seed % 9000000))
roll
[ $rolled -ge 3 ] || percent=$((percent * 6))
case $QUEUETOP_QUEUE in
image.resize) ms=800
    must_fail 3 "invalid JPEG: bad marker \0033[31m at 0x${digit}c"
    may_fail 4 'timeout after 30s\n  at fetch  worker/http.c:88'
    may_fail 1 'ENOSPC: no space left on device' ;;
search.index) ms=120 # the search cluster is down for 40 of 100 seconds
    [ $(($(date +%s) % 100)) -ge 40 ] ||
        may_fail 60 'connect() to es-3:9200: Connection refused\n  at index_doc  worker/search.c:142'
    must_fail 1 'mapping conflict: field "price" is text, not float' ;;
thumb.video) ms=5000
    must_fail 6 'ffmpeg: moov atom not found' ;;
mail.send) ms=60 ;;
webhook.out) ms=250
    may_fail 9 "HTTP 50$digit from hooks.acme.example"
    must_fail 1 'HTTP 410 from hooks.acme.example: gone' ;;
billing.sync) ms=500
    may_fail 10 'could not serialize access due to concurrent update' ;;
sms.send) ms=120
    must_fail 1 "number not allowed: +49170$number" ;;
report.daily) ms=20000 ;;
invoice.pdf) ms=1200
    must_fail 2 "template 'invoice-v$digit' is missing: \0377\0376\0342\0200\0213" ;;
audit.ship) ms=30 ;;
*) ms=100 ;;
esac
ms=$((ms * percent / 100)) fraction=$((1000 + ms % 1000))
case $how in
slow) ms=480000 ;;
crash) # as the kernel does when memory is exhausted
    sleep 4
    kill -9 $PPID ;;
esac
[ "$error" ] || printf '{"ok": true, "ms": %d}\n' $ms
[ "$error" ] || exec sleep $((ms / 1000)).${fraction#1} # the signals of the worker reach it
sleep $((ms / 1000)).${fraction#1}
printf '%b\n' "$error" >&2
exit 1
