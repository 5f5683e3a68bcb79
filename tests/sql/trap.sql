-- Traps: a role without any right makes functions, operators, types and relations in schema public, with the names that our
-- SQL uses. The argument types of a trap match some call better than the server's own function does. So a statement that does
-- not name the schema runs the trap. A trap writes a line to the server's log, which a rollback does not undo, and raises
-- QTRAP. Settings: trap.names = the names of the functions, {a,b}; trap.text = all our SQL, from which the names of operators
-- and relations are taken.

create or replace function public.spring(what pg_catalog.text) returns boolean language plpgsql set search_path = pg_catalog as $$
begin
    raise log 'TRAP % as %: %', what, current_user, left(current_query(), 400);
    raise 'trap %', what using errcode = 'QTRAP';
end $$;

create or replace function public.set_traps(names pg_catalog.text[], sql pg_catalog.text, more pg_catalog.text[])
returns table (functions bigint, operators bigint, views bigint, types bigint)
language plpgsql set search_path = pg_catalog set check_function_bodies = off as $$
declare
    kinds text[] := '{boolean,"\"char\"",name,smallint,integer,bigint,numeric,double precision,text,character varying,oid,uuid,json,jsonb,bytea,'
        'date,timestamp without time zone,timestamp with time zone,interval,xid,pg_lsn,inet,regclass,text[],bigint[],uuid[],integer[]}';
    f     record;
begin
    kinds := case when more is null then kinds else more end;
    functions := 0;
    operators := 0;
    views := 0;
    types := 0;
    -- functions: with the arguments of the server's own functions, and with one argument of another type; variadic ones
    -- with 1 to 5 arguments; those with one or two arguments also with each pair of common types
    for f in
        with own as (
            select p.proname as name, case when p.prorettype in (select oid from pg_type where typtype = 'p') then 'text' else format_type(p.prorettype, null) end as result,
                   p.proretset, array(select format_type(t, null) from unnest(p.proargtypes) with ordinality a (t, o) order by o) as args, p.provariadic
            from pg_proc p
            where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = any(names) and p.prokind <> 'p' and p.pronargs <= 6
              and not exists (select from unnest(p.proargtypes) t where t in ('internal'::regtype, 'cstring'::regtype, 'trigger'::regtype))
        ), plain as (
            select name, result, proretset, args from own where provariadic = 0
            union all
            select o.name, o.result, o.proretset, o.args[:cardinality(o.args) - 1] || array_fill('text'::text, array[n])
            from own o, generate_series(1, 5) n where o.provariadic <> 0
        ), solid as ( -- text takes the place of "any" and other pseudo-types
            select name, result, proretset, array(select case when a like '%array' then 'text[]' when a ~ '^"?any|^record|range$' then 'text' else a end
                                                  from unnest(args) with ordinality v (a, o) order by o) as args from plain
        ), all_of_them as (
            select * from solid
            union all
            select s.name, s.result, s.proretset, s.args[:i - 1] || k || s.args[i + 1:] from solid s, generate_subscripts(s.args, 1) i, unnest(kinds) k
            union all
            select distinct on (s.name, a, b) s.name, s.result, s.proretset, array[a, b]
            from solid s, unnest(kinds[4:9]) a, unnest(kinds[4:9]) b where cardinality(s.args) = 2
        )
        select distinct on (name, args) name, result, proretset, array_to_string(args, ', ') as args from all_of_them
        where more is null or args && more
        order by name, args, result
    loop
        execute format('create or replace function public.%I(%s) returns %s%s language plpgsql as %L', f.name, f.args,
                       case when f.proretset then 'setof ' end, f.result,
                       format('begin perform public.spring(%L); end', f.name || '(' || f.args || ')'));
        functions := functions + 1;
    end loop;
    -- operators: each name with all pairs of types
    for f in select a, b, t from unnest(kinds) a, unnest(kinds) b, unnest(array['boolean', a]) t group by a, b, t loop
        execute format('create or replace function public.%I(%s, %s) returns %s language plpgsql as %L', 'trap ' || f.t, f.a, f.b, f.t,
                       format('begin perform public.spring(%L); end', 'operator(' || f.a || ', ' || f.b || ')'));
    end loop;
    for f in
        select o.oprname as name, a, b, 'trap ' || case when bool_or(o.oprresult = 'boolean'::regtype) then 'boolean' else a end as run
        from (select oprname, oprresult from pg_operator where oprnamespace = 'pg_catalog'::regnamespace and oprkind = 'b' and strpos(sql, oprname) > 0
              and oprname in ('=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '%', '||', '&', '|', '#', '<<', '>>', '~', '!~', '~*', '~~', '!~~',
                              '~~*', '&&', '@>', '<@', '?', '?|', '?&', '->', '->>', '#>', '#>>', '^@', '#-')
              union all select '<>', 'boolean'::regtype::oid union all select '~~', 'boolean'::regtype::oid) o, unnest(kinds) a, unnest(kinds) b
        group by o.oprname, a, b
    loop
        execute format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.%I)', f.name, f.a, f.b, f.run);
        operators := operators + 1;
    end loop;
    if more is not null then
        return next;
        return;
    end if;
    for f in select c.relname as name, (select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a join pg_type t on t.oid = a.atttypid
                                        where a.attrelid = c.oid and a.attnum > 0 and t.typtype <> 'p') as columns from pg_class c
             where c.relnamespace = 'pg_catalog'::regnamespace and c.relkind in ('r', 'v') and strpos(sql, c.relname) > 0
               and has_table_privilege(c.oid, 'select') loop
        execute format('create view public.%I as select %s from pg_catalog.%1$I where public.spring(%3$L)', f.name, f.columns, 'relation ' || f.name);
        execute format('grant select on public.%I to public', f.name);
        views := views + 1;
    end loop;
    for f in select unnest('{text,uuid,json,jsonb,bytea,timestamptz,oid,name,int2,int4,int8,float8,bool,regclass,regtype,varchar}'::text[]) as name loop
        execute format('create domain public.%I as pg_catalog.%1$I check (public.spring(%2$L))', f.name, 'type ' || f.name);
        types := types + 1;
    end loop;
    return next;
end $$;
