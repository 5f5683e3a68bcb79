-- The demo's load looks how far its workers are behind, to push less on a slow machine.
SELECT coalesce(sum(ready), 0)::bigint AS ready FROM overview()
