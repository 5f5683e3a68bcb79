# shellcheck shell=bash disable=SC2154
# push: one job at a time by 1 and 8 clients, and batches of 100 and 1000 by 2 clients, into empty tables. uncounted is our
# INSERT without the statement trigger, which keeps the counters. The difference is what they cost.

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

triggers() { # enable or disable: our statement triggers
    sql ours -c "select format('alter table queues.queue $1 trigger %I', tgname) from pg_trigger
        where tgrelid = 'queues.queue'::regclass and not tgisinternal and tgtype & 1 = 0" | sql ours
}
