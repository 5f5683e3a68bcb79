-- What a job takes with it into history and back: columns that table queue and table history have, and that stay as
-- they are. of: the row that they are read from (of=q.), or nothing. The queue and the payload stand elsewhere: the
-- queue is sometimes read from the lease, and the payload may be left out.
            {of}kind, {of}payload_type, {of}unique_key, {of}concurrency_key, {of}max_tries, {of}lease_timeout,
            {of}run_timeout
