-- The demo's careless colleague: a report whose snapshot stays open for minutes, so that the Database screen
-- has somebody to show who holds vacuum back.
SELECT count(*) AS jobs FROM queue WHERE pg_sleep(CASE WHEN seq = (SELECT min(seq) FROM queue) THEN 600 ELSE 0 END)
IS NOT NULL
