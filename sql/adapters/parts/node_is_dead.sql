-- Whether node n is dead: the rule of is_dead() in core/00_schema.sql, in words that a schema of an earlier program
-- understands, too. Stands instead of a line "-- part: node_is_dead".
n.heartbeat < now() - {schema}.setting_interval('node_dead')
