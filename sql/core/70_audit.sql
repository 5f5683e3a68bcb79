-- The audit, and what all administrative functions share. Each call is one batch of one action. The caller makes the
-- uuid of the action and counts its batches from 1. After a lost answer the caller repeats the call: it gets the stored
-- answer, and nothing changes twice. Table audit records who asked for what; table audit_batch records the result, and
-- is written in the transaction of the batch.

create table if not exists audit (
    action   uuid primary key,
    at       timestamptz not null default clock_timestamp(),
    who      text not null,
    app      text,
    addr     inet,
    verb     text not null,
    queue    text collate "C",
    node     text collate "C",
    params   jsonb not null,
    reason   text,
    expected bigint
);
create index if not exists audit_at on audit (at);
comment on table audit is 'One row an administrative action: who, from where, what, why';
comment on column audit.who is 'The login role (session_user)';

create table if not exists audit_batch (
    action  uuid not null references audit,
    batch   int not null check (batch >= 1),
    at      timestamptz not null default clock_timestamp(),
    changed bigint not null,
    skipped bigint not null,
    rows    jsonb not null,
    before  jsonb,
    cursor  text,
    primary key (action, batch)
);
comment on table audit_batch is 'What each batch of an action did, row by row; append-only';
comment on column audit_batch.rows is 'The answer: [{id, state, why, n}]. state null: the row was left alone; why '
    'gives the reason';
comment on column audit_batch.before is 'The changed rows as they were before';
comment on column audit_batch.cursor is 'Where the next batch continues; null = there is none';

create or replace view audit_log as
select a.action, a.at, a.who, a.app, a.addr, a.verb, a.queue, a.node, a.params, a.reason, a.expected,
       coalesce(b.changed, 0) as changed, coalesce(b.skipped, 0) as skipped, coalesce(b.batches, 0) as batches
from audit a
left join lateral (select sum(changed)::bigint as changed, sum(skipped)::bigint as skipped, count(*) as batches
                   from audit_batch b where b.action = a.action) b on true;
comment on view audit_log is 'The audit with its totals';

create or replace function act_limits(queue text, node text, params jsonb, reason text) returns void
language plpgsql immutable set search_path from current as $$
begin
    if length(reason) > 1000 then
        raise 'a reason has 1000 characters at most, not %', length(reason) using errcode = 'QT007';
    elsif length(queue) > 200 then
        raise 'the name of a queue has 1 to 200 characters, not %', length(queue) using errcode = 'QT007';
    elsif length(node) > 200 then
        raise 'the name of a node has 1 to 200 characters, not %', length(node) using errcode = 'QT007';
    elsif length(params::text) > 20000 then
        raise 'what an action is asked for has 20000 characters at most, not %', length(params::text)
            using errcode = 'QT007';
    end if;
end $$;
comment on function act_limits(text, text, jsonb, text) is 'Raises QT007 if a text of an action is too long for the '
    'audit';

create or replace function act_goes_on(a audit, params jsonb, reason text) returns void
language plpgsql stable set search_path from current as $$
declare
    latest timestamptz := (select max(b.at) from audit_batch b where b.action = a.action);
begin
    if latest < clock_timestamp() - interval '1 hour' then
        raise 'action % ended at %: use a new uuid for another action', a.action, latest using errcode = 'QT007',
            hint = 'A batch that goes on with an action comes within an hour of the batch before it.';
    elsif a.reason is distinct from reason
          or a.params - '{ids,before}'::text[] is distinct from params - '{ids,before}'::text[] then
        raise 'action % was begun with another reason or other values: use a new uuid for another action', a.action
            using errcode = 'QT007';
    end if;
end $$;
comment on function act_goes_on(audit, jsonb, text) is 'Raises QT007 if this batch can''t belong to the action. All '
    'batches of an action have the same reason and the same values (except the jobs that each names), and each follows '
    'the one before within an hour';

create or replace function portion_check("limit" int, after text) returns void
language plpgsql stable set search_path from current as $$
declare
    at jsonb;
begin
    if "limit" < 0 then
        raise 'limit is the number of jobs that a call takes, 0 or more, not %', "limit" using errcode = 'QT007';
    end if;
    begin
        at := after;
        perform case at ->> 0 when 'h' then (at ->> 1)::timestamptz end,
                case at ->> 0 when 'h' then (at ->> 2)::uuid end,
                case when at ->> 0 <> 'h' then (at ->> 2)::bigint end, (at ->> 3)::smallint;
    exception when data_exception then
        raise 'after is the cursor of the call before, not "%"', left(after, 100) using errcode = 'QT007';
    end;
end $$;
comment on function portion_check(int, text) is 'Raises QT007 if after is not the cursor of a call, or limit is '
    'negative';

create or replace function act_begin(action uuid, batch int, verb text, queue text, node text, params jsonb,
    reason text, expected bigint)
returns boolean
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    a     audit;
    fresh boolean;
begin
    if action is null or batch is null or batch < 1 then
        raise 'an action needs its uuid and a batch number from 1' using errcode = 'QT007';
    end if;
    perform act_limits(queue, node, params, reason);
    perform pg_advisory_xact_lock(hashtextextended('queuetop action ' || action, 0));
    perform refuse_others(current_schema(), false); -- after the wait: what follows may be parsed only now
    perform tell_sleepers(); -- what the act changes may be due at once
    perform have_day(); -- many acts write to history
    insert into audit (action, who, app, addr, verb, queue, node, params, reason, expected)
    values (action, session_user, nullif(current_setting('application_name'), ''), inet_client_addr(), verb, queue,
            node,
            jsonb_strip_nulls(params), reason, expected)
    on conflict do nothing;
    fresh := found;
    select * into a from audit x where x.action = act_begin.action;
    if (a.who, a.verb, a.queue, a.node) is distinct from (session_user::text, verb, queue, node) then
        raise 'action % is a "%" of %: use a new uuid for another action', action,
            concat_ws(' ', a.verb, coalesce(a.node, a.queue)), a.who using errcode = 'QT007';
    elsif exists (select from audit_batch b where b.action = act_begin.action and b.batch = act_begin.batch) then
        return false;
    elsif not fresh then
        perform act_goes_on(a, jsonb_strip_nulls(params), reason);
    end if;
    return true;
end $$;
comment on function act_begin(uuid, int, text, text, text, jsonb, text, bigint) is 'Writes an action to the audit. '
    'False: this batch was done before, and act_answer returns its answer. Raises QT007 if the uuid belongs to another '
    'action, to an action on another queue or node, or to one that has ended';

create or replace function in_order(rows jsonb, ids uuid[]) returns jsonb
language sql immutable set search_path from current as $$
    select jsonb_agg(r.job order by i.place)
    from jsonb_array_elements(rows) r (job)
    join (select u.id, min(u.place) as place from unnest(in_order.ids) with ordinality u (id, place) group by u.id) i
        on i.id = (r.job ->> 'id')::uuid
$$;
comment on function in_order(jsonb, uuid[]) is 'The answers for jobs ([{id, ..}]) in the order of the ids in the call. '
    'They can''t be sorted by id, because ids that were made within one millisecond are in no order';

create or replace function act_end(action uuid, batch int, rows jsonb, before jsonb default null,
    cursor text default null) returns void
language sql set search_path from current as $$
    insert into audit_batch (action, batch, changed, skipped, rows, before, cursor)
    select act_end.action, act_end.batch,
           coalesce(sum(coalesce((r ->> 'n')::bigint, 1)) filter (where r ->> 'state' is not null), 0),
           coalesce(sum(coalesce((r ->> 'n')::bigint, 1)) filter (where r ->> 'state' is null), 0),
           coalesce(act_end.rows, '[]'), act_end.before, act_end.cursor
    from jsonb_array_elements(coalesce(rows, '[]')) r;
    -- an idle worker should look at once for jobs that can be claimed now
    select pg_notify(slot_channel(0), '') where slot_waits(0)
$$;
comment on function act_end(uuid, int, jsonb, jsonb, text) is 'Stores the answer of a batch, and wakes an idle worker '
    'that waits for jobs';

create or replace function act_answer(action uuid, batch int)
returns table (id text, state text, why text, cursor text, n bigint)
language sql stable set search_path from current as $$
    select r ->> 'id', r ->> 'state', r ->> 'why', b.cursor, coalesce((r ->> 'n')::bigint, 1)
    from audit_batch b cross join lateral jsonb_array_elements(b.rows) with ordinality v (r, o)
    where b.action = act_answer.action and b.batch = act_answer.batch
    union all
    select null, null, 'nothing in this batch', b.cursor, 0 from audit_batch b
    where b.action = act_answer.action and b.batch = act_answer.batch and b.rows = '[]' and b.cursor is not null
$$;
comment on function act_answer(uuid, int) is 'The stored answer of a batch';

create or replace function check_expected(expected bigint, would bigint) returns void
language plpgsql immutable set search_path from current as $$
begin
    if expected <> would then
        raise 'expected %, but % would change now: nothing was changed', expected, would using errcode = 'QT005';
    end if;
end $$;
comment on function check_expected(bigint, bigint) is 'Raises QT005 if the number of jobs has changed since the '
    'preview';

create or replace function wake_queue(queue text) returns void
language sql set search_path from current as $$ insert into delta (queue, priority) values (queue, 5) $$;
comment on function wake_queue(text) is 'Makes the scheduler''s next step look at a queue. Not for workers: it would '
    'accept any name';
