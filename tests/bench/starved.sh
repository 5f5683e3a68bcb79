# shellcheck shell=bash disable=SC2154
# starved: all processes of the server together get PERCENT (5) of one core, by a cgroup (or, if none can be made, stopped
# and continued in turn), while LOADERS (2) clients claim and complete without a pause. What do the console and the verbs
# do? The console is watched for SECONDS (90), with one act; then push, check, metrics and queues run one by one.
# Figures: seconds until the first data, the highest age of the data after that, seconds from the key of an act until the
# screen shows its effect, seconds and exit code of each verb, statements that were cancelled, connections made, and the
# processor time of the console's session as a part of all that the server got.

starved_secs=${HOUR:-90} starved_pct=${PERCENT:-5}

part_starved() {
    command -v tmux >/dev/null || { say "starved: tmux is missing: make deps-check"; exit 1; }
    starved_ready
    slow_down "$starved_pct"
    starved_watch
    starved_verbs
    figure starved "statements cancelled" ours "$(grep -c 'canceling statement' "$dir/log" || true)"
    figure starved "connections of the console" ours "$(grep -c 'connection: watch@' "$dir/console.log" || true)"
    kill "$starved_load" 2>/dev/null || true
}

starved_ready() {
    trap 'tmux -L "starved$$" kill-server 2>/dev/null || true; finish' EXIT
    psql -XAtq -d postgres -c "create database starved" -c "create role watch superuser login"
    "$QUEUETOP" install -d starved >/dev/null
    psql -XAtq -d starved -c "insert into queues.queue (queue) select 'mails' || n % 20 from generate_series(1, 40000) n"
    start_scheduler starved
    printf '%s\n' "select coalesce(array_agg(lease), '{}') as l, coalesce(array_agg(version), '{}') as v, coalesce(array_agg(seq), '{}') as s from queues.claim('n' || :client_id, 5) \\gset" \
        "select count(*) from queues.complete('n' || :client_id, :l::bigint[], :v::int[], :s::bigint[]);" >"$dir/starved.claim"
    "$bin/pgbench" -n -M prepared -f "$dir/starved.claim" -c "${LOADERS:-2}" -T 3600 starved >/dev/null 2>"$dir/pgbench.err" &
    starved_load=$!
}

starved_screen() { tmux -L "starved$$" capture-pane -p; }

# Processor time of the console's sessions at the server, in ms
starved_spent() {
    local p sum=0
    for p in $(pgrep -f 'postgres: watch starved'); do
        sum=$((sum + $(awk '{ print ($14 + $15) * 10 }' "/proc/$p/stat" 2>/dev/null || echo 0)))
    done
    echo "$sum"
}

starved_watch() {
    local begin age worst=0 first='' acted='' done_at='' spent=0 s
    begin=$(now)
    tmux -L "starved$$" -f /dev/null new-session -d -x 140 -y 45 \
        "exec $QUEUETOP --log '$dir/console.log' 'host=$dir user=watch dbname=starved' 2>'$dir/console.err'"
    while s=$(awk -v a="$(now)" -v b="$begin" 'BEGIN { printf "%d", a - b }') && [ "$s" -lt "$starved_secs" ]; do
        starved_screen >"$dir/screen" || { say "starved: the console has ended: $(cat "$dir/console.err")"; exit 1; }
        spent=$(starved_spent)
        if [ -z "$first" ] && grep -q 'mails1' "$dir/screen"; then
            first=$s
        fi
        age=$(sed -n 's/.*\(data\|STALE\) \([0-9]*\)\(m\{0,1\}\)[s ].*/\2\3/p' "$dir/screen" | head -1)
        [[ $age != *m ]] || age=$((${age%m} * 60))
        if [ -n "$first" ] && [ "${age:-0}" -gt "$worst" ]; then
            worst=$age
            cp "$dir/screen" "$RAW.starved.worst"
        fi
        starved_act "$s"
        sleep 1
    done
    cp "$dir/screen" "$RAW.starved.screen"
    figure starved "first data, s" ours "${first:-never}"
    figure starved "highest age of the data, s" ours "$worst"
    figure starved "an act, s from the key to its effect" ours "${done_at:-never}"
    figure starved "the console's part of the server, %" ours "$(per "$(awk -v a="$spent" -v s="$starved_secs" -v p="$starved_pct" \
        'BEGIN { print a / (s * p * 10) * 100 }')" 1)"
}

# A third of the time after the start: p pauses the queue under the cursor, Enter leads through the box.
starved_act() { # second
    if [ -z "$acted" ] && [ -n "$first" ] && [ "$1" -ge $((starved_secs / 3)) ]; then
        acted=$1
        tmux -L "starved$$" send-keys p
    elif [ -n "$acted" ] && [ -z "$done_at" ]; then
        if grep -q '─ Pause queue' "$dir/screen"; then
            tmux -L "starved$$" send-keys Enter
        elif grep -q 'paused' "$dir/screen"; then
            done_at=$(($1 - acted))
        fi
    fi
}

starved_verbs() {
    local v begin status
    for v in "push mails1" check metrics queues; do
        begin=$(now) status=0
        # shellcheck disable=SC2086 # words
        "$QUEUETOP" $v -d "host=$dir dbname=starved user=postgres" >"$dir/verb.out" 2>"$dir/verb.err" </dev/null || status=$?
        figure starved "${v%% *}, s" ours "$(per "$(awk -v a="$(now)" -v b="$begin" 'BEGIN { print a - b }')" 1)"
        figure starved "${v%% *}, exit code" ours "$status"
        [ ! -s "$dir/verb.err" ] || say "$v: $(head -1 "$dir/verb.err")"
    done
}
