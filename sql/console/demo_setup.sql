-- The demo (queuetop --demo), as the owner of its private server: two users, and settings that show changes within a
-- minute. One statement, so that it is tested like every other file here.
DO $demo$
DECLARE
    s record;
BEGIN
    CREATE ROLE ops LOGIN IN ROLE queues_operator, queues_viewer, pg_read_all_stats;
    CREATE ROLE app LOGIN IN ROLE queues_worker;
    FOR s IN SELECT * FROM (VALUES
        ('image.resize', '{"max_running": 5, "backoff_base": "5s", "backoff_max": "2min"}'),
        ('search.index', '{"max_tries": 3, "backoff_base": "3s", "backoff_max": "30s"}'),
        ('thumb.video',  '{"max_tries": 2, "max_running": 3, "run_timeout": "60s"}'),
        ('mail.send',    '{"weight": 2}'),
        ('webhook.out',  '{"backoff_base": "4s", "backoff_max": "5min"}'),
        ('billing.sync', '{"max_running": 2, "backoff_base": "2s"}'),
        ('sms.send',     '{"max_tries": 2, "backoff_base": "5s"}'),
        ('report.daily', '{"max_running": 1}'),
        ('invoice.pdf',  '{"max_tries": 3, "backoff_base": "5s"}'),
        ('audit.ship',   '{"weight": 2}')) v (queue, settings)
    LOOP
        PERFORM set_queue(gen_random_uuid(), s.queue, s.settings::jsonb, 'demo');
    END LOOP;
    FOR s IN SELECT * FROM (VALUES
        ('heartbeat', '{"cron": "@every 10s", "queue": "audit.ship", "kind": "heartbeat", "unique": true,'
                      ' "comment": "each ten seconds, unless one waits"}', '{"from": "cron"}'),
        ('nightly', '{"cron": "30 2 * * *", "tz": "Europe/Berlin", "queue": "report.daily", "kind": "sales",'
                    ' "catch_up": "all", "comment": "by the clock of Berlin"}',
                    '{"report": "sales"}')) v (name, settings, payload)
    LOOP
        PERFORM schedule_set(gen_random_uuid(), s.name, s.settings::jsonb, s.payload, 'demo');
    END LOOP;
END
$demo$
