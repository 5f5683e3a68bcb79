-- The condition of purge on the rows t: final states, in the words that column state of table queue may have.
where ($1::text is null or t.queue = $1::text)
  and t.state = any(array(
          select f.word from (values ('COMPLETED', 'completed'), ('DONE', 'completed'), ('FINISHED', 'completed'),
                                     ('SUCCEEDED', 'completed'), ('FAILED', 'failed'), ('ERROR', 'failed'),
                                     ('CANCELLED', 'cancelled'), ('CANCELED', 'cancelled')) f (word, state)
          where true
      and f.state = any(coalesce($2::text[], '{completed,cancelled}'))))
  and coalesce(t.completed_at, t.created::timestamptz) < coalesce($3::timestamptz, now())
  and not exists (select from {schema}.work_queue w where w.id = t.id)
