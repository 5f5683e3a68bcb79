-- The demo's report: its snapshot stays open for minutes, so that the Database screen shows a session that holds vacuum
-- back.
SELECT count(*) AS jobs FROM queue WHERE pg_sleep(CASE WHEN seq = (SELECT min(seq) FROM queue) THEN 600 ELSE 0 END)
IS NOT NULL
