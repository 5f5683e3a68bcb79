-- What a job leaves in history. Each statement that ends jobs inserts these columns; parts/history_values.sql has
-- their values.
            id, created, started, finished, state, priority, tries, max_tries, queue, kind, node, payload, body,
            payload_type, result, error, unique_key, concurrency_key, origin_id, last_action, kept, run_after,
            lease_timeout, run_timeout
