-- The audit is kept until its owner purges it. Operators may not purge it, because they could erase their own acts. The
-- purge is recorded in the audit, too.

create or replace function purge_audit_preview(before timestamptz) returns table (actions bigint, batches bigint,
    oldest timestamptz)
language sql stable security definer set search_path from current as $$
    select only_ours();
    select count(*), coalesce(sum(l.batches), 0)::bigint, min(l.at) from audit_log l
    where l.at < purge_audit_preview.before
$$;
comment on function purge_audit_preview(timestamptz) is 'How many actions and batches purge_audit would delete from '
    'the audit now';

create or replace function purge_audit(action uuid, batch int, before timestamptz, "limit" int default 1000,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    gone bigint;
begin
    if before is null or before > now() - interval '1 day' then
        raise 'the audit of the last day cannot be purged: what is asked a second time is answered from it'
            using errcode = 'QT007';
    end if;
    if act_begin(action, batch, 'purge audit', null, null, jsonb_build_object('before', before), reason, null) then
        with outdated as materialized (
            select a.action, a.ctid as at from audit a where a.at < purge_audit.before order by a.at
            limit coalesce(purge_audit."limit", 1000) for update skip locked
        ), batches as ( -- by ctid: whatever the planner estimates, it can't read all batches to find these
            delete from audit_batch b where b.ctid = any(array(
                select p.at from outdated v cross join lateral (
                    select b.ctid as at from audit_batch b where b.action = v.action offset 0) p))
        ), deleted as (
            delete from audit a where a.ctid = any(array(select v.at from outdated v)) returning a.action)
        select count(*) into gone from deleted;
        perform act_end(action, batch,
                        case when gone > 0 then jsonb_build_array(jsonb_build_object('id', 'audit', 'state', 'purged',
                                'n', gone)) end, null,
                        case when gone >= coalesce("limit", 1000) then 'more' end);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function purge_audit(uuid, int, timestamptz, int, text) is 'Deletes actions older than a time (at least a '
    'day ago) from the audit, up to limit of them a call: call again as long as the answer has a cursor. The purge '
    'itself is an action in the audit';
