# shellcheck shell=bash disable=SC2154
# push: one at a time by 1 and 8 clients, and in batches of 100 and 1000 by 2 clients, into empty tables. uncounted is
# our INSERT with the statement trigger off, which keeps the counters: what these cost.

part_push() {
    local shape n c r e
    for shape in "1 1" "1 8" "100 2" "1000 2"; do
        read -r n c <<<"$shape"
        for ((r = 0; r < rounds; r++)); do
            for e in plain insert push uncounted graphile pgboss pgq; do
                has "$(base "$e")" || continue
                empty "$e"
                [ "$e" != uncounted ] || triggers disable
                bench "$e" "$dir/$e.push.$n" "$c" "$secs"
                [ "$e" != uncounted ] || triggers enable
                figure push "$n at a time, $c clients" "$e" $(($(tps) * n))
            done
        done
    done
}

triggers() { # enable or disable ours that run once a statement
    sql ours -c "select format('alter table queues.queue $1 trigger %I', tgname) from pg_trigger
        where tgrelid = 'queues.queue'::regclass and not tgisinternal and tgtype & 1 = 0" | sql ours
}
