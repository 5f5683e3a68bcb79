-- The last statement of each refresh: the server's clock, the time since the transaction began, and whether the server
-- is a standby (a standby keeps its connections when it is promoted).
select ceil(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms,
       (extract(epoch from clock_timestamp() - transaction_timestamp()) * 1000000)::bigint as spent_us,
       pg_is_in_recovery() as in_recovery
