-- The demo's operator: one queue is paused, for a reason that the console shows.
SELECT * FROM pause(gen_random_uuid(), 'report.daily', 'month close: waiting for the books')
