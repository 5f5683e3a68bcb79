-- The words that column state of table queue may have for finished jobs; terms for f.state, ours, may follow.
          select f.word from (values ('COMPLETED', 'completed'), ('DONE', 'completed'), ('FINISHED', 'completed'),
                                     ('SUCCEEDED', 'completed'), ('FAILED', 'failed'), ('ERROR', 'failed'),
                                     ('CANCELLED', 'cancelled'), ('CANCELED', 'cancelled')) f (word, state)
          where true
