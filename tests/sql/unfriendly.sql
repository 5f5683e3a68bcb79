-- For tests/sql/test_adapters_hostile.c: a database full of hostile values. t.spoil(round) overwrites every column of every table
-- with the hostile values of its type, another one in each row and round. If a constraint rejects the whole update, it tries row
-- by row. In even rounds, columns that hold states keep their values. Foreign keys stay valid, and columns that name relations
-- keep the names. Triggers are off meanwhile.
create schema t;
create function t.values_of(typ text, kind "char", len int) returns text[] language sql as $$
    select case
        when kind = 'e' then array(select quote_literal(e.enumlabel) from pg_enum e where e.enumtypid = typ::regtype order by e.enumsortorder)
        when typ in ('text', 'character varying', 'name', 'citext', 'character') then array(
            select case when v is null then 'null' else quote_literal(left(v, coalesce(len, 6000))) end
            from unnest(array['', E'\x1b]0;t\x07\x1b[2J', E'\u202e\u200b\ufeff \u2028', '1; drop table x; --''"\', repeat('x{', 3000), '{"a', '-99999999999999999999',
                E'\r\n\t\x01\x7f\u0085', 'x:y:z', '%s%n$1{schema}', null, '~%', 'a/b\\', 'infinity', '[1,', '"', E'\x1b', '99999-01-01', '[[]]',
                '{"a":{"b":7}}']) v)
        when typ in ('json', 'jsonb') then array(
            select coalesce(quote_literal(v) || '::' || typ, 'null')
            from unnest(array[null, 'null', '"\u202e"', '[]', '{}', '1e300', '[[1, {"a": null}], null, 7]', 'true', '"x"',
                '{"at": "x", "error": {"a": 1}, "attempt": "no", "trace": 7, "message": [], "name": {}}',
                '[{"at": 1, "attempt": 1e40, "error": null}, 2]', '{"arguments": {}, "queues": 7, "job_class": [1]}',
                '{"args": 3, "kwargs": [], "queue_name": null, "stack": 1, "exception_class": 2, "backtrace": "x"}',
                '{"at": "infinity", "attempt": "99999999999", "executions": "x", "exception_executions": 7, "cancel_attempted_at": 3}']
                || case typ when 'json' then array['{"error": "\u0000", "message": "\ud800", "queue_name": "\u0000"}'] end) v)
        when typ in ('json[]', 'jsonb[]') then array['null', '''{}''', '''{NULL}''', '''{"7","[]","null"}''',
            '''{"{\"at\":\"x\",\"error\":[1],\"attempt\":\"y\"}"}''', '''{{"1","2"},{"{}","{}"}}''', '''[7:8]={"{\"at\":7}","\"x\""}''']
        when typ like 'timestamp%' then array['null', '''infinity''', '''-infinity''', case when typ like '%with time zone' then '''4714-11-24 BC''' else '''4713-01-01 BC''' end,
            case when typ like '%with time zone' then '''294276-12-31 23:59:59''' else '''294276-12-30''' end, '''0001-01-01 BC''', '''9999-12-31''', 'now()', '''2500-01-01''', '''1970-01-01''', 'now() - interval ''1 day''']
        when typ = 'date' then array['null', '''infinity''', '''-infinity''', '''4714-11-24 BC''', '''5874897-12-31''', 'now()']
        when typ = 'interval' then array['null', '''-1 year''', '''178000000 years''', '''-178000000 years''', '''0''', '''1 s''']
        when typ = 'smallint' then '{null,0,-1,32767,-32768,7}'
        when typ = 'integer' then '{null,0,-1,2147483647,-2147483648,7,25}'
        when typ = 'bigint' then '{null,0,-1,9223372036854775807,-9223372036854775808,7,4102444800000,9223372036854775806}'
        when typ in ('numeric', 'double precision', 'real') then array['null', '''NaN''', '-1', '1e30', '0', '7']
        when typ = 'boolean' then '{null,true,false}'
        when typ = 'uuid' then array['null', '''00000000-0000-0000-0000-000000000000''', '''ffffffff-ffff-ffff-ffff-ffffffffffff''',
            'gen_random_uuid()', 'gen_random_uuid()', 'gen_random_uuid()', 'gen_random_uuid()']
        when typ = 'bytea' then array['null', '''''', 'decode(''00'', ''hex'')', 'decode(''ff5c27'', ''hex'')', 'decode(''7b'', ''hex'')',
            'decode(''f09f8ea8c3'', ''hex'')', 'decode(''f09f8ea8'', ''hex'')']
        when typ in ('text[]', 'character varying[]') then array['null', '''{}''', '''{NULL}''', 'array[E''a\x1b[7m'', '''']', '''{{a,b},{c,d}}''',
            '''[5:6]={x,y}''', '''{"host:pid"}''']
        when typ in ('integer[]', 'bigint[]', 'smallint[]') then array['null', '''{}''', '''{NULL}''', '''{-1,32767}''', '''{{1,2}}''']
        else '{null}' end
$$;
create function t.spoil(round int) returns void language plpgsql set search_path = pg_catalog as $$
declare
    c record;
    r tid;
    i int;
    n int;
begin
    perform set_config('session_replication_role', 'replica', true);
    for c in
        select a.attrelid::regclass as rel, quote_ident(a.attname) as col, a.attnum as nr,
               t.values_of(format_type(a.atttypid, null), y.typtype, nullif(a.atttypmod, -1) - 4) as vals
        from pg_class k join pg_namespace n on n.oid = k.relnamespace join pg_attribute a on a.attrelid = k.oid join pg_type y on y.oid = a.atttypid
        where k.relkind = 'r' and n.nspname !~ '^pg_|^t$|^information_schema$' and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
          and a.attidentity <> 'a' and n.nspname <> 'pgq' and k.oid::regclass::text <> 'pgmq.meta'
          and not (k.relname ~ '^solid_queue_' and a.attname = 'job_id')
          and not exists (select from pg_constraint f where f.contype = 'f' and (f.conrelid = k.oid and a.attnum = any(f.conkey)
                                                                                 or f.confrelid = k.oid and a.attnum = any(f.confkey)))
          and (round % 2 = 1 or a.attname::text !~ 'stat(e|us)')
    loop
        n := cardinality(c.vals);
        begin
            execute (select format('update %s x set %s = case (o + %s) %% %s %s end from (select ctid as at, row_number() over () as o from %1$s) y where x.ctid = y.at',
                                   c.rel, c.col, round * 3 + c.nr, n, string_agg(format('when %s then %s', o - 1, w), ' '))
                     from unnest(c.vals) with ordinality u (w, o));
        exception when others then
            i := round * 3 + c.nr;
            for r in execute format('select ctid from %s', c.rel) loop
                i := i + 1;
                begin
                    execute format('update %s set %s = %s where ctid = %L', c.rel, c.col, c.vals[1 + i % n], r);
                exception when others then null;
                end;
            end loop;
        end;
    end loop;
end $$;

-- functions that a search_path could find, and settings that a database may have
create schema evil;
create function evil.lower(varchar) returns text language plpgsql as $$ begin raise 'trapped'; end $$;
create function evil.strpos(text, varchar) returns int language plpgsql as $$ begin raise 'trapped'; end $$;
create function evil.trap(varchar, text) returns bool language plpgsql as $$ begin raise 'trapped'; end $$;
create operator evil.= (leftarg = varchar, rightarg = text, function = evil.trap);
do $$
declare
    s text;
begin
    foreach s in array array['search_path = evil, public', 'datestyle = ''SQL, DMY''', 'intervalstyle = sql_standard', 'standard_conforming_strings = off',
        'escape_string_warning = off', 'bytea_output = escape', 'timezone = ''Asia/Kolkata''', 'transform_null_equals = on', 'extra_float_digits = -15',
        'default_transaction_isolation = serializable'] loop
        execute format('alter database %I set %s', current_database(), s);
    end loop;
end $$;
