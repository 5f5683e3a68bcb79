# shellcheck shell=bash disable=SC2154
# The engines: how each is set up, emptied, filled and counted, and its scripts for pgbench. The scripts of ours and of the
# plain table are written here. Those of graphile-worker and pg-boss are the statements that their own libraries send
# (peers.mjs listens to them). PgQ has SQL functions. The scripts of an engine: claim.N, done.N (completes the whole batch),
# one (completes job :i of the batch), push.N. fill spreads its jobs evenly over 50 queues (queue10 to queue59).

names="'queue' || (10 + i % 50)"

setup_plain() {
    sql plain -c "create table plain (id bigserial primary key, queue text, kind text, state text not null default 'ready',
        created timestamptz default now(), lock_key text, started timestamptz, tries int default 0,
        run_after timestamptz default now(), payload json)" -c "create index on plain (id) where state = 'ready'"
    local n
    for n in 1 10 50 100; do
        cat >"$dir/plain.claim.$n" <<SQL
with c as (select id from plain where state = 'ready' order by id limit $n for update skip locked), u as (update plain p set state = 'running', lock_key = :client_id::text, started = now() from c where p.id = c.id returning p.id, p.payload) select coalesce(array_agg(id), '{}') as ids, count(payload) as p from u \\gset
SQL
        echo "delete from plain where id = any(:ids::bigint[]);" >"$dir/plain.done.$n"
    done
    echo "delete from plain where id = (:ids::bigint[])[:i];" >"$dir/plain.one"
    pushes plain
}

setup_ours() { # database (ours)
    "$QUEUETOP" install --print | sql "${1:-ours}" -1 >/dev/null
    local n rows="coalesce(array_agg(lease), '{}') as l, coalesce(array_agg(version), '{}') as v, coalesce(array_agg(seq), '{}') as s"
    for n in 1 10 50 100; do
        echo "select $rows, count(payload) as p from queues.claim(:client_id::text, $n) \\gset" >"$dir/ours.claim.$n"
        echo "select count(*) from queues.complete(:client_id::text, :l::bigint[], :v::int[], :s::bigint[]);" >"$dir/ours.done.$n"
        echo "select $rows, count(payload) as p from queues.complete_and_claim(:client_id::text, :l::bigint[], :v::int[], :s::bigint[], null, null, $n) where outcome is null \\gset" >"$dir/both.claim.$n"
        : >"$dir/both.done.$n"
    done
    echo "select count(*) from queues.complete(:client_id::text, array[(:l::bigint[])[:i]], array[(:v::int[])[:i]], array[(:s::bigint[])[:i]]);" >"$dir/ours.one"
    pushes ours
    sql ours -c "select 'x' from pg_proc where proname = 'complete_and_claim' and pronamespace = 'queues'::regnamespace" | grep -q x ||
        skip both "queues.complete_and_claim() does not exist"
}

# scripts push.SIZE: of the plain table; of ours with INSERT, with the push functions, and with INSERT without the statement trigger
pushes() { # engine
    local n t=$1 cols="(queue, kind, payload)" list
    [ "$t" = ours ] && t=queues.queue
    for n in 1 100 1000; do
        list="select 'queue' || (10 + :client_id), 'email', unnest(array_fill('$payload'::text, array[$n]))::json"
        [ "$n" = 1 ] && list="values ('queue' || (10 + :client_id), 'email', '$payload')"
        echo "insert into $t $cols $list;" >"$dir/$1.push.$n"
    done
    [ "$1" = ours ] || return 0
    for n in 1 100 1000; do
        mv "$dir/ours.push.$n" "$dir/insert.push.$n"
        cp "$dir/insert.push.$n" "$dir/uncounted.push.$n"
        echo "select count(*) from queues.push_many(null, array_fill('queue' || (10 + :client_id), array[$n]), array_fill('email'::text, array[$n]), payloads := array_fill('$payload'::text, array[$n]));" >"$dir/push.push.$n"
    done
    echo "select * from queues.push('queue' || (10 + :client_id), '$payload', 'email');" >"$dir/push.push.1"
}

heard() { # engine: its library sets it up, and peers.mjs writes down its statements
    if ! PEERS=$cache/npm PAYLOAD=$payload node "$here/peers.mjs" "$1" "$dir" 1,10,50,100 2>"$dir/peers.err"; then
        skip "$1" "its library failed: $(grep -m1 Error "$dir/peers.err" || head -1 "$dir/peers.err")"
        return 1
    fi
}

setup_graphile() {
    heard graphile || return 0
    local n
    cp "$dir/graphile.done.1" "$dir/graphile.one"
    echo "select count(*) from graphile_worker.add_job('queue' || (10 + :client_id), '$payload'::json);" >"$dir/graphile.push.1"
    for n in 100 1000; do
        echo "select count(*) from graphile_worker.add_jobs(array_fill(('queue' || (10 + :client_id), '$payload'::json, null, null, null, null, null, null)::graphile_worker.job_spec, array[$n]));" >"$dir/graphile.push.$n"
    done
}

# version 10 with the index that version 12 fetches by: without it, each fetch sorts all jobs that wait in the queue
setup_pgboss() {
    heard pgboss || return 0
    sql pgboss -c "create index on pgboss.job (name, priority desc, created_on, start_after) where state < 'active'"
}

setup_pgq() {
    local root lib
    root=$(find "$cache" -maxdepth 2 -path "$cache/pgq-*/root" | sort -V | tail -1)
    lib=$dir/pgq
    cp -r "$root"/usr/lib/postgresql/*/lib "$lib" && chmod -R a+rX "$lib"
    sed "s,\$libdir/,$lib/," "$root"/usr/share/postgresql/*/contrib/pgq.sql | sql pgq >/dev/null
    fresh_pgq
    echo "select pgq.insert_event('q', 'email', '$payload');" >"$dir/pgq.push.1"
    echo "select count(pgq.insert_event('q', 'email', p)) from unnest(array_fill('$payload'::text, array[100])) p;" >"$dir/pgq.push.100"
    sed 's/\[100\]/[1000]/' "$dir/pgq.push.100" >"$dir/pgq.push.1000"
    # after the last tick there is no batch, and get_batch_events() of no batch is an error, not an empty answer
    cat >"$dir/pgq.claim.100" <<'SQL'
select coalesce(pgq.next_batch('q', 'c'), 0) as b \gset
\if :b
select count(ev_data) as p from pgq.get_batch_events(:b) \gset
SQL
    printf '%s\n' "select pgq.finish_batch(:b);" '\endif' >"$dir/pgq.done.100"
    { cat "$dir/pgq.push.100"; echo "select pgq.ticker('q');"; } >"$dir/pgq.fill"
}
fresh_pgq() {
    sql pgq -c "select pgq.drop_queue('q', true) from pgq.queue" -c "select pgq.create_queue('q')" \
        -c "select pgq.set_queue_config('q', 'ticker_max_count', '100')" -c "select pgq.register_consumer('q', 'c')" >/dev/null
}

setup() { # sets up the engines that this run needs
    local e
    RAW=${RAW:-$cache/raw-$(date +%Y%m%d-%H%M%S)}
    local engines='plain ours graphile pgboss pgq'
    if [ "$parts" = slow ]; then
        engines='plain ours'
    else
        while IFS=$'\t' read -r e why; do
            skip "$e" "$why"
        done <"$cache/skipped"
    fi
    for e in $engines $(if [[ $parts = *designs* ]]; then echo deferred prototype; fi); do
        has "$e" || continue
        psql -XAtq -d postgres -c "create database $e"
        "setup_$e"
    done
}

# --- emptying, filling, counting ---------------------------------------------------------------------------------
empty() { # engine
    case $(base "$1") in
    plain) sql plain -c "truncate plain" ;;
    ours | deferred) sql "$1" -c "truncate queues.queue, queues.work_queue, queues.history, queues.delta, queues.counter" \
        -c "select queues.recount()" >/dev/null ;;
    prototype) sql prototype -c "truncate prototype.job, prototype.work, prototype.history, prototype.delta, prototype.counter" ;;
    graphile) sql graphile -c "truncate graphile_worker._private_jobs" ;;
    pgboss) sql pgboss -c "truncate pgboss.job" ;;
    pgq) fresh_pgq ;;
    esac
}

fill() { # engine, jobs
    local n
    case $(base "$1") in
    plain) sql plain -c "insert into plain (queue, kind, payload) select $names, 'email', '$payload' from generate_series(1, $2) i" ;;
    prototype) sql prototype -c "insert into prototype.job (queue, kind, payload) select i % 50, 'email', '$payload' from generate_series(1, $2) i" ;;
    ours | deferred) sql "$1" -c "insert into queues.queue (queue, kind, payload) select $names, 'email', '$payload' from generate_series(1, $2) i" ;;
    graphile) # in parts: all jobs of one call have the same run_at
        for ((n = 0; n < $2; n += 20000)); do
            echo "select count(*) from graphile_worker.add_jobs(array(select ($names, '$payload'::json, null, null, null, null, null, null)::graphile_worker.job_spec from generate_series(1, least(20000, $2 - $n)) i));"
        done | sql graphile >/dev/null ;;
    pgboss) # in parts: its own insert() takes 1000 jobs of one queue
        for ((n = 0; n < $2; n += 1000)); do
            sed "s/queue10/queue$((10 + n / 1000 % 50))/g" "$dir/pgboss.push.1000"
        done | sql pgboss >/dev/null ;;
    pgq) "$bin/pgbench" -n -M prepared -f "$dir/pgq.fill" -t $(($2 / 100)) pgq >/dev/null 2>&1 ;;
    esac
}
settle() { sql "$1" -c "vacuum analyze" -c checkpoint; }

# how many jobs are not done
left() {
    case $(base "$1") in
    plain) sql plain -c "select count(*) from plain" ;;
    ours | deferred) sql "$1" -c "select count(*) from queues.queue" ;;
    prototype) sql prototype -c "select count(*) from prototype.job" ;;
    graphile) sql graphile -c "select count(*) from graphile_worker._private_jobs" ;;
    pgboss) sql pgboss -c "select count(*) from pgboss.job where state <= 'active'" ;;
    pgq) sql pgq -c "select pg_sequence_last_value(queue_event_seq::regclass) - tick_event_seq from pgq.queue, pgq.subscription
             join pgq.tick on tick_queue = sub_queue and tick_id = sub_last_tick" ;;
    esac
}

# What a worker does in a loop: claim, complete. both = complete_and_claim; its first call has nothing to complete.
script() { # engine, batch, single (1: completed one by one)
    local e=$1 f=$dir/run.$1.$2.$3 i
    [ "$e" != none ] || e=$(best)
    cat "$dir/$e.claim.$2" >"$f"
    if [ "$3" = 1 ]; then
        for ((i = 1; i <= $2; i++)); do
            sed "s/:i\b/$i/g" "$dir/$e.one" >>"$f"
        done
    else
        sed "s/:i\b/1/g" "$dir/$e.done.$2" >>"$f"
    fi
    echo "$f"
}
best() { if has both; then echo both; else echo ours; fi; }
