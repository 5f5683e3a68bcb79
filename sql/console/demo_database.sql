-- The demo's database, so that nothing of it is called postgres. Runs outside a transaction block.
CREATE DATABASE demo
