-- $1 what the schema was made from (scripts and roles), $2 its fingerprint in the catalogs: a later install that finds
-- both the same has nothing to do.
update meta set made_from = $1::text, catalogs = $2::text
