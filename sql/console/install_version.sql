-- What is installed in the schema that search_path names. made_from and catalogs: what install remembers of its last
-- run; '' = not known. They are read by json because a development version had no such columns.
select m.version, m.protocol, coalesce(to_jsonb(m) ->> 'made_from', '') as made_from,
       coalesce(to_jsonb(m) ->> 'catalogs', '') as catalogs, to_jsonb(m) ? 'made_from' as remembers
from meta m
