-- The version of what is installed in the schema that search_path names.
select version, protocol from meta
