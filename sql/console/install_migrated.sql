-- $1 the version that the migrations before have made.
update meta set version = $1::int
