-- How far the clock of a worker's machine is from the server's. The column is filled by workers that measure it.
-- tables
alter table node add column clock_ahead interval;
comment on column node.clock_ahead is 'How far the clock of its machine is ahead of the server''s; below 0 = behind, '
    'NULL = the worker has not said (node_clock)';
