-- Closes each refresh: the server's clock, and the server's time since the transaction began.
select ceil(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms,
       (extract(epoch from clock_timestamp() - transaction_timestamp()) * 1000000)::bigint as spent_us
