-- Which transaction keeps the scheduler from its turn; NULL: another scheduler is active.
select {schema}.scheduler_holder() as state
