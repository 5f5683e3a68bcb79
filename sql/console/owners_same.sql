-- Whether the result of owners.sql for schema $1 still holds; cheap enough to run before every look. The answer is no
-- row, or an error (22P02), so that no later statement of the transaction runs. $2 the schema's OID, $3 its owner, $4
-- its rights as text (NULL = the usual ones): while these are unchanged and nobody else may create objects there ($5
-- false), there can be no new objects. Otherwise the owners of the named objects are compared: $6 tables and types, $7
-- patterns, $8 functions, $9 everything that is no table, $10 the owners that are allowed. $11 a prefix that names may
-- have. What belongs to pg_database_owner belongs to the owner of the database, as in owners.sql.
with base as materialized (
    select d.datdba as owner, owners.oid as owners
    from pg_catalog.pg_database d
    left join pg_catalog.pg_roles owners on owners.rolname = 'pg_database_owner'
    where d.datname = current_database()
),
place as materialized (
    select n.oid from pg_catalog.pg_namespace n cross join base
    where n.nspname = $1::text and n.oid = $2::oid
      and case when n.nspowner = base.owners then base.owner else n.nspowner end = $3::oid
      and n.nspacl::text is not distinct from $4::text
),
names (name) as (
    select (start || given)::name from unnest($6::text[]) given, unnest(array['', $11::text]) start
),
function_names (name) as (
    select (start || given)::name from unnest($8::text[]) given, unnest(array['', $11::text]) start
),
found (name, owner) as (
    select c.relname, c.relowner
    from place join pg_catalog.pg_class c on c.relnamespace = place.oid
    where $5::boolean and (c.relname in (select name from names) or c.relname like any($7::text[]))
    union all
    select t.typname, t.typowner
    from place join pg_catalog.pg_type t on t.typnamespace = place.oid and t.typname in (select name from names)
    where $5::boolean
    union all
    select p.proname, p.proowner
    from place join pg_catalog.pg_proc p on p.pronamespace = place.oid
    where $5::boolean and ($9::boolean or p.proname in (select name from function_names))
    union all
    select o.oprname, o.oprowner from place join pg_catalog.pg_operator o on o.oprnamespace = place.oid
    where $5::boolean and $9::boolean
    union all
    select t.typname, t.typowner from place join pg_catalog.pg_type t on t.typnamespace = place.oid
    where $5::boolean and $9::boolean
)
select pg_catalog.concat('belongs to another role: ', found.name)::int
from found cross join base
where case when found.owner = base.owners then base.owner else found.owner end <> all($10::oid[])
union all
select pg_catalog.concat('the schema is another one: ', missing.schema)::int
from (values ($1::text)) missing (schema) where not exists (select from place)
