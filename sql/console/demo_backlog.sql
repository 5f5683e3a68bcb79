-- The demo's load asks how many jobs wait, to push less on a slow machine.
SELECT coalesce(sum(ready), 0)::bigint AS ready FROM overview()
