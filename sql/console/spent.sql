-- Closes each refresh: the server's clock, the server's time since the transaction began, and whether it is a standby
-- (one that is promoted keeps its connections).
select ceil(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms,
       (extract(epoch from clock_timestamp() - transaction_timestamp()) * 1000000)::bigint as spent_us,
       pg_is_in_recovery() as in_recovery
