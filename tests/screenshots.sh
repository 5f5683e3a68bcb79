#!/bin/bash
# Draws every picture in screenshots/ anew (`make screenshots`): SVG from the cells of a terminal, PNG
# from the SVG at twice the size. The data come from tests/screens/fixture.sql, which runs with a stopped
# clock, so the same program draws the same SVG bytes each time. QUEUETOP and VSHOT are the two programs;
# OUT is the folder for the pictures.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-screenshots}
mkdir -p "$out"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# the server may run as another user, and must read and move the clock
chmod 711 "$tmp"
${CC:-cc} -O1 -shared -fPIC -o "$tmp/clock.so" tests/screens/clock.c
echo 1795237000000000 >"$tmp/clock"
chmod 666 "$tmp/clock"

# Autovacuum is on, so that the pictures show no warning, but it sleeps for 68 years and so touches no table.
cat >"$tmp/autovacuum" <<'END'
#!/bin/bash
psql -qX -c "alter system set autovacuum_naptime = '2147483s'" -c 'alter system set autovacuum = on' \
    -c 'select pg_reload_conf()' >/dev/null
END
chmod 755 "$tmp/autovacuum"

# A transaction holds one row, so the action waits there and its progress does not change.
cat >"$tmp/hold" <<'END'
export PGUSER=postgres
psql -qX -c begin -c "select from queues.queue where seq = (select seq from queues.queue where state = 'failed' and
    error like 'connect%' order by seq offset 3100 limit 1) for update" -c 'select pg_sleep(20)' >/dev/null 2>&1 &
for _ in {1..200}; do
    psql -AtX -c "select query from pg_stat_activity" | grep -q '^select pg_sleep' && exit
done
exit 1
END

[ ! -f "$out/80_progress.svg" ] || cp "$out/80_progress.svg" "$tmp/old.svg"
env VT_SLOW=4 LC_ALL=C.UTF-8 LD_PRELOAD="$tmp/clock.so" QUEUETOP_CLOCK="$tmp/clock" "$VSHOT" 24x80 \
    env:LD_PRELOAD="$tmp/clock.so" env:QUEUETOP_CLOCK="$tmp/clock" env:QUEUETOP_NOW= env:TZ=UTC \
    server:shop "run:'$QUEUETOP' install >/dev/null" \
    "run:psql -qX -v clock='$tmp/clock' -f tests/screens/fixture.sql" \
    'run:psql -qX -f tests/screens/fixture_week.sql' "run:$tmp/autovacuum" \
    env:PGUSER=bob want:report.daily \
    'run:psql -qX -U postgres -f tests/screens/fixture_live.sql' \
    'key:+ +' 'gone:live, each' key:g settle:1500 "shot:$out/80_queues.svg" \
    resize:45x140 settle:1200 "shot:$out/140_queues.svg" \
    'key:j enter' want:LAST settle:300 "shot:$out/140_queue.svg" \
    'type::jobs queue:image.resize state:failed,retry' key:enter 'want:1 of 12' \
    'key:space j space j j space' 'want:3 marked' settle:300 "shot:$out/140_jobs.svg" \
    resize:24x80 settle:300 "shot:$out/80_jobs.svg" \
    'key:k enter' want:ATTEMPTS settle:300 "shot:$out/80_detail.svg" \
    key:4 want:HOST 'key:g' settle:300 "shot:$out/80_nodes.svg" \
    key:5 want:report.daily key:G 'want:queue paused' settle:300 "shot:$out/80_schedules.svg" \
    key:3 want:errors settle:300 "shot:$out/80_failed.svg" \
    'key:?' 'want:On this screen' settle:300 "shot:$out/80_help.svg" key:esc 'gone:On this screen' \
    "run:bash '$tmp/hold'" key:r 'want:first 10' settle:300 "shot:$out/80_canary.svg" \
    key:tab want:Type type:400 settle:300 "shot:$out/80_confirm.svg" \
    type:0 key:enter 'want:3,000 of' 'want:1,024 failed' 'want:1,000 search.index' settle:600 "shot:$out/80_progress.svg" \
    -- "$QUEUETOP" --interval 250ms

# A server with problems. Its statistics are invented, so no other pictures use it.
echo 1795237000000000 >"$tmp/clock"
env VT_SLOW=4 LC_ALL=C.UTF-8 LD_PRELOAD="$tmp/clock.so" QUEUETOP_CLOCK="$tmp/clock" "$VSHOT" 24x80 \
    env:LD_PRELOAD="$tmp/clock.so" env:QUEUETOP_CLOCK="$tmp/clock" env:QUEUETOP_NOW= env:TZ=UTC \
    server:shop "run:'$QUEUETOP' install >/dev/null" \
    "run:psql -qX -v clock='$tmp/clock' -f tests/screens/fixture.sql" \
    'run:psql -qX -f tests/screens/fixture_live.sql' 'run:psql -qX -f tests/screens/fixture_health.sql' \
    env:PGUSER=bob want:report.daily key:7 'want:idle in txn' 'want:history' settle:300 "shot:$out/80_database.svg" \
    resize:45x140 settle:300 "shot:$out/140_database.svg" \
    -- "$QUEUETOP"

# Other systems beside our own queue: all their queues, and the jobs of one.
echo 1795237000000000 >"$tmp/clock"
# shellcheck disable=SC2016 # the shell behind run: has the variable
env VT_SLOW=4 LC_ALL=C.UTF-8 LD_PRELOAD="$tmp/clock.so" QUEUETOP_CLOCK="$tmp/clock" "$VSHOT" 30x120 \
    env:LD_PRELOAD="$tmp/clock.so" env:QUEUETOP_CLOCK="$tmp/clock" env:QUEUETOP_NOW= env:TZ=UTC \
    server:shop "run:'$QUEUETOP' install >/dev/null" \
    "run:psql -qX -v clock='$tmp/clock' -f tests/screens/fixture.sql" \
    'run:for s in river good_job graphile_worker oban; do psql -qX -f tests/adapters/$s.sql >/dev/null; done' \
    env:PGUSER=postgres want:report.daily 'want:5 queue systems' key:0 want:shop:river 'want:live' settle:1500 \
    "shot:$out/120_sources.svg" 'type::source shop:river' key:enter 'want:river 5/5' key:2 'want:× failed' settle:800 \
    "shot:$out/120_river.svg" \
    -- "$QUEUETOP"

# The speed of an action is measured and differs each time. If nothing else differs, the old picture stays.
same() { cmp -s <(grep -vE 'jobs/s|slowest batch|s left' "$1") <(grep -vE 'jobs/s|slowest batch|s left' "$2"); }
if [ -f "$tmp/old.svg" ] && same "$tmp/old.svg" "$out/80_progress.svg"; then
    cp "$tmp/old.svg" "$out/80_progress.svg"
fi

for svg in "$out"/*.svg; do
    rsvg-convert -z 2 -o "${svg%.svg}.png" "$svg"
done
