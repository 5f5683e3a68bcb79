-- For how many ms the scheduler may send nothing unless it is notified; or why it may not.
select state from {schema}.scheduler_sleep($1, $2, $3, $4, $5)
