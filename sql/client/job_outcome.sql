-- What has become of job $1: its state, then its result or its error, and what its queue keeps of finished jobs.
select state, coalesce(result_text, pg_catalog.encode(result, 'escape'), error) as said, history
from {schema}.job_outcome($1)
