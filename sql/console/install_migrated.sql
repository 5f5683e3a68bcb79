-- $1 the newest version: the schema was made with it, or migrations have brought it there.
update meta set version = $1::int
