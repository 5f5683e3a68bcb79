-- The demo's operator drains a node whose jobs take minutes.
SELECT * FROM drain_node(gen_random_uuid(), 'worker-3', 'kernel update')
