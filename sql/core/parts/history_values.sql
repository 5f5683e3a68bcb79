-- The values of parts/history_columns.sql. The rows behind FROM have the columns of a job and these:
--   began, till    when its last attempt began (NULL: it was waiting) and when it ended
--   ends_as        its state in history
--   ended_tries, ended_error, ended_action   what becomes of its tries, error and last_action
--   node, result   who ended it, and what the worker returned
--   keep           whether payload, body and result are kept
-- Only a job that was waiting keeps the time that it waited for.
-- part: carried of=
            , id, created, began, till, ends_as, queue, priority, ended_tries, node,
            case when keep then payload end, case when keep then body end, case when keep then result end,
            ended_error, origin_id, ended_action, keep, case when began is null then run_after end
