-- One scheduling step of holder $1.
select active::int, cut, promoted, stolen, wait_ms from {schema}.schedule($1::text)
