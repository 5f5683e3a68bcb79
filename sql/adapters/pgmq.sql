-- adapter: pgmq
-- title: pgmq (message queue extension)
-- format: 2
-- schema: pgmq
-- touches: *
-- id-type: text
-- tested-versions: 1.5
-- min-version: 1.5
-- tables: meta
-- note: A queue is a table of its own; ids are QUEUE:NUMBER. A message that waits for its time after it was read counts
--   as running: a retry that was put off looks the same. There are no workers, errors or failed messages to be seen;
--   completed ones are those in the archive.
-- note: If a message becomes visible while a reader still works on it, it is delivered twice, and the first delete
--   removes it for both readers.
-- note: Needs a server with XML support.
-- lacks: purge: pgmq has no call for it: delete rows of a_QUEUE by archived_at
-- lacks: cancel: no reader asks whether its message is still wanted: archive it (discard)
-- lacks: priority: messages are read in the order of their times: reschedule them
-- lacks: pause: its readers are stopped in their own programs
-- lacks: release_where: pgmq does not know its readers: requeue running messages

-- name: detect
select n.nspname::text as schema from pg_namespace n where true
-- part: has_column table='meta'; column='is_unlogged'
  and exists (select from pg_proc p where p.pronamespace = n.oid and p.proname = 'set_vt')
order by 1

-- name: version
select coalesce((select extversion from pg_extension where extname = 'pgmq'),
                case when exists (select from pg_attribute a join pg_type t on t.typrelid = a.attrelid
                                  where t.typname = 'message_record'
                                    and t.typnamespace = (select oid from pg_namespace where nspname = {schema_lit})
                                    and a.attname = 'last_read_at') then '1.8'
                     when exists (select from pg_attribute a join pg_type t on t.typrelid = a.attrelid
                                  where t.typname = 'message_record'
                                    and t.typnamespace = (select oid from pg_namespace where nspname = {schema_lit})
                                    and a.attname = 'headers') then '1.5' else '1.0' end) as version

-- name: queues
select queue_name::text as queue, false as paused,
       concat_ws(', ', case when is_partitioned then 'partitioned' end,
                 case when is_unlogged then 'unlogged: lost with a crash' end) as info
from {schema}.meta order by 1

-- name: counts
-- one look into each queue's table, which holds no finished messages; %I quotes the names on the server
select m.queue_name::text as queue, x.scheduled, x.ready, 0::bigint as retry, x.running, 0::bigint as failed,
       x.oldest_ms
from {schema}.meta m
cross join lateral (select format('%I.%I', {schema_lit}, lower('q_' || m.queue_name)) as rel) r
cross join lateral xmltable('/table/row' passing query_to_xml(format(
    'select (select count(*) from %1$s where vt <= now()) as ready, (select (extract(epoch from '
    'least(greatest(min(vt), ''epoch''), ''9999-12-31 00:00+00'')) * 1000)::bigint '
    'from %1$s where vt <= now()) as oldest, count(*) filter (where read_ct = 0) as scheduled, count(*) filter '
    '(where read_ct > 0) as running '
    'from %1$s where vt > now()', r.rel), false, false, '')
    columns ready bigint, oldest_ms bigint path 'oldest', scheduled bigint, running bigint) x
where to_regclass(r.rel) is not null

-- name: counts_final
-- cost: counts the archives; those of more than a million messages are estimated
select m.queue_name::text as queue, case when c.big then c.n else x.n end as completed, null::bigint as cancelled,
       c.big as approx
from {schema}.meta m
cross join lateral (select format('%I.%I', {schema_lit}, lower('a_' || m.queue_name)) as rel) r
cross join lateral (select c.reltuples > 1e6 as big, c.reltuples::bigint as n from pg_class c
                    where c.oid = to_regclass(r.rel)) c
left join lateral xmltable('/table/row' passing query_to_xml(format('select count(*) as n from %s', r.rel), false,
                                                             false, '') columns n bigint) x on not c.big

-- name: jobs
-- params: queue states words not_words ids older_than younger_than min_tries top_tries in_payload path n limit cursor
-- order: completed: last archived first; *: first visible first
-- Without states: messages that are not archived. In the order of the time when a message becomes (or became) visible;
-- archived ones newest first. Of each queue as many messages are read as are shown, or n if terms must be checked one
-- by one; a row without an id gives the cursor to continue from. Only numbers come through the XML, so no text of a
-- message can break it.
with params as not materialized (
    select $1::text as queue, $2::text[] as states, $3::text[] as words, $4::text[] as not_words, $5::text[] as ids,
           $6::interval as older, $7::interval as younger, $8::int as min_tries, $9::int as top_tries,
           left($10::text, 1) as how, substr($10::text, 2) as inside, $11::text[] as path,
           coalesce($12::int, 10000) as n, coalesce($13::int, 100) as top,
           num_nonnulls($3::text[], $4::text[], $6::interval, $7::interval, $8::int, $9::int, $10::text) = 0 as plain,
           case when num_nonnulls($3::text[], $4::text[], $6::interval, $7::interval, $8::int, $9::int, $10::text) = 0
                then coalesce($13::int, 100) else coalesce($12::int, 10000) end as most,
           nullif(split_part($14::text, '/', 1), '')::int as c_arm,
           nullif(split_part($14::text, '/', 2), '')::bigint as c_at,
           nullif(split_part($14::text, '/', 3), '')::bigint as c_id,
           substring($14::text from '^[^/]*/[^/]*/[^/]*/(.*)$') as c_queue
), queues_read as materialized (
    select m.queue_name::text as queue, a.arm, format('%I.%I', {schema_lit}, lower(a.prefix || m.queue_name)) as rel,
           case when p.inside is null then 'true'
                when p.path is null then format('strpos(lower(left(message::text, 1000000)), lower(%L)) > 0', p.inside)
                when p.how = '=' then format('message #>> %L::text[] = %L', p.path, p.inside)
                else format('strpos(lower(message #>> %L::text[]), lower(%L)) > 0', p.path, p.inside) end as hit,
           i.ids
    from params p cross join {schema}.meta m cross join (values (1, 'q_'), (2, 'a_')) a (arm, prefix)
    left join lateral (select string_agg(substring(i from ':([0-9]{1,18})$'), ',') as ids from unnest(p.ids) i
                       where substring(i from '^(.*):[0-9]{1,18}$') = m.queue_name) i on true
    where (p.queue is null or m.queue_name = p.queue)
      and to_regclass(format('%I.%I', {schema_lit}, lower(a.prefix || m.queue_name))) is not null
      and case when p.ids is not null then i.ids is not null
               when a.arm = 1 then coalesce(p.c_arm, 1) = 1
                    and (p.states is null or p.states && '{ready,scheduled,running}')
               else p.states @> '{completed}' end
), live as (
    select q.arm, q.queue, x.* from params p, queues_read q
    cross join lateral xmltable('/table/row' passing query_to_xml(format(
        'select msg_id, read_ct, (extract(epoch from least(greatest(enqueued_at, ''epoch''), ''9999-12-31 '
        '00:00+00'')) * 1000)::bigint as made, vt > now() as later, %s as hit, '
        '(extract(epoch from greatest(least(vt, ''9999-12-31 00:00:00+00''), ''epoch'')) * 1000000)::bigint as at '
        'from %s where %s and %s order by vt, msg_id limit %s', q.hit, q.rel,
        case when q.ids is not null then format('msg_id in (%s)', q.ids)
             when p.states is null then 'true'
             else concat_ws(' or ', '(false', case when p.states @> '{ready}' then 'vt <= now()' end,
                            case when p.states @> '{scheduled}' then 'vt > now() and read_ct = 0' end,
                            case when p.states @> '{running}' then 'vt > now() and read_ct > 0' end) || ')' end,
        case when p.c_arm is distinct from 1 then 'true'
             when p.c_at >= 253402214400000000
                 then format('vt >= ''9999-12-31 00:00:00+00'' and (%L, msg_id) > (%L, %s)', q.queue, p.c_queue, p.c_id)
             else format('(vt, msg_id) > (timestamptz ''epoch'' + %s * interval ''1 microsecond'', %s)', p.c_at,
                         case when q.queue < p.c_queue then 9223372036854775807 when q.queue > p.c_queue then -1
                              else p.c_id end) end,
        p.most), false, false, '')
        columns msg_id bigint, read_ct int, made bigint, later boolean, hit boolean, at bigint) x
    where q.arm = 1
), done as (
    select q.arm, q.queue, x.msg_id, x.read_ct, x.made, false as later, x.hit, x.at from params p, queues_read q
    cross join lateral xmltable('/table/row' passing query_to_xml(format(
        'select msg_id, read_ct, (extract(epoch from least(greatest(enqueued_at, ''epoch''), ''9999-12-31 '
        '00:00+00'')) * 1000)::bigint as made, %s as hit, '
        '(extract(epoch from least(greatest(archived_at, ''epoch''), ''9999-12-31 00:00+00'')) * 1000000)::bigint as '
        'at from %s where %s and %s order by archived_at desc, msg_id desc limit %s', q.hit, q.rel,
        case when q.ids is not null then format('msg_id in (%s)', q.ids) else 'true' end,
        case when p.c_arm is distinct from 2 then 'true'
             else format('(archived_at, msg_id) < (timestamptz ''epoch'' + %s * interval ''1 microsecond'', %s)',
                         p.c_at,
                         case when q.queue < p.c_queue then -1 when q.queue > p.c_queue then 9223372036854775807
                              else p.c_id end) end,
        p.most), false, false, '')
        columns msg_id bigint, read_ct int, made bigint, hit boolean, at bigint) x
    where q.arm = 2
), found as materialized (
    select *, row_number() over (order by arm, o) as place from (
        select *, row_number() over (order by at, queue, msg_id) as o from live
        union all
        select *, row_number() over (order by at desc, queue desc, msg_id desc) from done) f
    order by place limit (select most from params)
), fits as materialized (
    select f.*, s.state from params p, found f cross join lateral (
        select case when f.arm = 2 then 'completed' when not f.later then 'ready' when f.read_ct = 0 then 'scheduled'
                    else 'running' end as state) s
    where f.hit
      and (p.states is null or s.state = any(p.states))
      and (p.older is null or f.made < extract(epoch from now() - p.older) * 1000)
      and (p.younger is null or f.made > extract(epoch from now() - p.younger) * 1000)
      and (p.min_tries is null or f.read_ct >= p.min_tries)
      and (p.top_tries is null or f.read_ct <= p.top_tries)
      and (p.words is null or not exists (select from unnest(p.words) w
                                          where strpos(lower(f.queue || ':' || f.msg_id), lower(w)) = 0))
      and (p.not_words is null or not exists (select from unnest(p.not_words) w
                                              where strpos(lower(f.queue || ':' || f.msg_id), lower(w)) > 0))
    order by f.place limit (select top from params)
)
select z.id, z.queue, z.kind, z.state, z.tries, z.created_ms, z.run_after_ms, z.changed_ms, z.finished_ms,
       z.lease_until_ms, z.error, z.cursor
from (
    select f.queue || ':' || f.msg_id as id, f.queue, '' as kind, f.state,
           greatest(f.read_ct, 0) - (f.state = 'running')::int as tries, f.made as created_ms,
           case when f.arm = 1 then f.at / 1000 end as run_after_ms,
           case when f.arm = 2 then f.at / 1000 else f.made end as changed_ms,
           case when f.arm = 2 then f.at / 1000 end as finished_ms,
           case when f.state = 'running' then f.at / 1000 end as lease_until_ms, null::text as error,
           f.arm || '/' || f.at || '/' || f.msg_id || '/' || f.queue as cursor, f.place, 0 as mark
    from fits f
    union all
    select '', '', '', '', 0, 0, null, null, null, null, '', f.arm || '/' || f.at || '/' || f.msg_id || '/' || f.queue,
           f.place, 1
    from params p, found f where f.place = p.n and not p.plain and p.ids is null and (select count(*) from fits) < p.top
) z order by z.place, z.mark

-- name: job (ids)
-- the text passes through the XML as hexadecimal digits
with wanted as materialized (
    select m.queue_name::text as queue, substring(i.id from ':([0-9]{1,18})$') as msg
    from (select id from unnest($1::text[]) id limit 1) i
    join {schema}.meta m on m.queue_name = substring(i.id from '^(.*):[0-9]{1,18}$')
)
select i.queue || ':' || i.msg as id, i.queue, '' as kind,
       case when x.archived is not null then 'completed' when not x.later then 'ready'
            when x.read_ct = 0 then 'scheduled' else 'running' end as state,
       greatest(x.read_ct, 0) - (x.archived is null and x.later and x.read_ct > 0)::int as tries, x.made as created_ms,
       case when x.archived is null then x.at end as run_after_ms, coalesce(x.archived, x.made) as changed_ms,
       x.archived as finished_ms, case when x.archived is null and x.later
                                            and x.read_ct > 0 then x.at end as lease_until_ms, null::text as error,
       null::text as cursor, convert_from(decode(x.message, 'hex'), getdatabaseencoding()) as payload,
       case when x.message is null then '' else 'json' end as payload_format, 'application/json' as payload_type,
       x.size as payload_size, convert_from(decode(x.headers, 'hex'), getdatabaseencoding()) as result
from wanted i cross join (values ('q_', 'null'),
                        ('a_', '(extract(epoch from least(greatest(archived_at, ''epoch''), ''9999-12-31 '
                               '00:00+00'')) * 1000)')) t (prefix, archived)
cross join lateral (select format('%I.%I', {schema_lit}, lower(t.prefix || i.queue)) as rel) r
cross join lateral xmltable('/table/row' passing query_to_xml(format(
    'select read_ct, (extract(epoch from least(greatest(enqueued_at, ''epoch''), ''9999-12-31 00:00+00'')) * '
    '1000)::bigint as made, %s::bigint as archived, vt > now() as later, '
    '(extract(epoch from greatest(least(vt, ''9999-12-31 00:00:00+00''), ''epoch'')) * 1000)::bigint as at, '
    'octet_length(message::text)::bigint as size, '
    'encode(convert_to(left(message::text, 1000000), getdatabaseencoding()), ''hex'') as message, '
    'encode(convert_to(left(headers::text, 65536), getdatabaseencoding()), ''hex'') as headers from %s where msg_id '
    '= %s',
    t.archived, r.rel, i.msg), false, false, '')
    columns read_ct int, made bigint, archived bigint, later boolean, at bigint, size bigint, message text,
                            headers text) x
where to_regclass(r.rel) is not null limit 1

-- name: requeue (ids)
-- official: set_vt(queue, id, 0)
-- guard: only messages that are in a queue
-- confirm: A message that a reader works on is delivered a second time.
select m.queue_name || ':' || r.msg_id as id, 'ready' as state from (select distinct id from unnest($1::text[]) id) i
join {schema}.meta m on m.queue_name = substring(i.id from '^(.*):[0-9]{1,18}$')
cross join lateral {schema}.set_vt(m.queue_name::text, substring(i.id from ':([0-9]{1,18})$')::bigint, 0::int) r

-- name: rescue (ids)
-- official: set_vt(queue, id, 0)
-- guard: only messages that are in a queue
-- confirm: If its reader still lives, the message is delivered twice, and the first delete removes it for both readers.
select m.queue_name || ':' || r.msg_id as id, 'ready' as state from (select distinct id from unnest($1::text[]) id) i
join {schema}.meta m on m.queue_name = substring(i.id from '^(.*):[0-9]{1,18}$')
cross join lateral {schema}.set_vt(m.queue_name::text, substring(i.id from ':([0-9]{1,18})$')::bigint, 0::int) r

-- name: extend (ids by)
-- official: set_vt(queue, id, seconds), of those that a reader has and with less time than that
-- guard: only messages that are running; never shortened
-- The present state of a message is read through the XML, as numbers; an id that no queue has gives no row.
select m.queue_name || ':' || r.msg_id as id, 'extended' as state
from (select distinct id from unnest($1::text[]) id where $2::interval > interval '0') i
join {schema}.meta m on m.queue_name = substring(i.id from '^(.*):[0-9]{1,18}$')
cross join lateral (select format('%I.%I', {schema_lit}, lower('q_' || m.queue_name)) as rel,
                           substring(i.id from ':([0-9]{1,18})$') as msg) q
cross join lateral xmltable('/table/row' passing query_to_xml(format(
    'select ceil(extract(epoch from least(vt, ''9999-12-31 00:00:00+00'') - clock_timestamp()))::bigint as left from '
    '%s where msg_id = %s and vt > clock_timestamp() and read_ct > 0',
    q.rel, q.msg), false, false, '')
    columns has bigint path 'left') x
cross join lateral {schema}.set_vt(m.queue_name::text, q.msg::bigint,
                                   least(greatest(ceil(extract(epoch from $2::interval)), x.has), 2000000000)::int) r
where to_regclass(q.rel) is not null

-- name: reschedule (ids at)
-- official: set_vt(queue, id, seconds)
-- guard: only messages that are in a queue
-- confirm: A message that a reader has now is delivered again at that time, and the first delete removes it for both
--   readers.
select m.queue_name || ':' || r.msg_id as id,
       case when r.vt <= clock_timestamp() then 'ready' when r.read_ct = 0 then 'scheduled' else 'running' end as state
from (select distinct id from unnest($1::text[]) id where $2::timestamptz is not null) i
join {schema}.meta m on m.queue_name = substring(i.id from '^(.*):[0-9]{1,18}$')
cross join lateral {schema}.set_vt(m.queue_name::text, substring(i.id from ':([0-9]{1,18})$')::bigint,
                                   least(greatest(ceil(extract(epoch from $2::timestamptz - clock_timestamp())), 0),
                                         2000000000)::int) r

-- name: discard (ids)
-- official: archive(queue, id)
-- guard: only messages that are in a queue
-- confirm: A message that a reader has now is taken from it.
select i.id, 'completed' as state from (select distinct id from unnest($1::text[]) id) i
join {schema}.meta m on m.queue_name = substring(i.id from '^(.*):[0-9]{1,18}$')
cross join lateral (select {schema}.archive(m.queue_name::text,
                                            substring(i.id from ':([0-9]{1,18})$')::bigint) as done offset 0) r
where r.done

-- name: delete (ids)
-- official: delete(queue, id)
-- guard: only messages that are in a queue
-- confirm: The messages are gone for good, not even in the archive.
select i.id, 'deleted' as state from (select distinct id from unnest($1::text[]) id) i
join {schema}.meta m on m.queue_name = substring(i.id from '^(.*):[0-9]{1,18}$')
cross join lateral (select {schema}.delete(m.queue_name::text,
                                           substring(i.id from ':([0-9]{1,18})$')::bigint) as done offset 0) r
where r.done
