-- The demo's operator: a node whose jobs take minutes is told to take no more.
SELECT * FROM drain_node(gen_random_uuid(), 'worker-3', 'kernel update')
