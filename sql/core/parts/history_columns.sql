-- What a job leaves in history. Each statement that ends jobs inserts these columns; parts/history_values.sql has
-- their values.
-- part: carried of=
            , id, created, started, finished, state, queue, priority, tries, node, payload, body, result, error,
            origin_id, last_action, kept, run_after
