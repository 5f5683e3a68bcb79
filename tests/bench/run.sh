#!/bin/bash
# The bench (`make bench`): our queue and its peers alternately on one throwaway server with fsync on. Ratios count;
# absolute figures belong to the machine.
#   make bench [T="push work"]      or  tests/bench/run.sh PART...; without a part: all but hour, long, queues, designs, instructions, bulk, upgrade, console, screens and foreign (ROWS=10000000)
# Parts: push work level counters held counts fair urgent (of fair) latency queues programs designs instructions (by valgrind) bulk upgrade console screens (WATCH=60 BUDGET=2) foreign hour (SECONDS=3600: hour.sh) long (SECONDS=7200: long.sh). Environment: SECONDS_EACH (5) a run,
# ROUNDS (3), BACKLOG (1) times the jobs that are laid ready, HOLD (45) s that a snapshot is held, HELD_ROUNDS (3), RAW: the file that
# raw figures are added to, SHAPES: of work and instructions only these rows ("jobs clients one-by-one", separated by commas), OWN=REGEX: of instructions only these rows of ours alone. Prints
# them as they come, then the table (tests/bench/table.sh RAW makes it again; --readme puts it into README.md).
set -euo pipefail
here=$(dirname "$0")
for f in lib engines push work designs instructions held counts fair latency queues bulk hour long; do
    # shellcheck source=/dev/null
    . "$here/$f.sh"
done
trap finish EXIT
trap 'exit 1' HUP INT TERM

parts=${*:-push work level counters held counts fair latency programs}
if [[ $parts =~ ^(bench_)?(console|foreign|upgrade|screens)$ ]]; then
    # shellcheck disable=SC2154 # lib.sh sets cache
    SRCDIR=$src ENGINES=$cache exec "$BUILD/tests/bench/bench_${parts#bench_}"
fi
for p in $parts; do
    [ "$(type -t "part_$p")" = function ] || { say "no part $p"; exit 2; }
done
# shellcheck disable=SC2154 # lib.sh sets it
"$src/tests/engines.sh"
RAW=${RAW:-$cache/raw-$(date +%Y%m%d-%H%M%S)}
start_server
setup
facts
[ "$parts" = held ] || rounds_of "$parts"
for p in $parts; do
    began=$(now)
    say "$p"
    "part_$p"
    fact "seconds of $p" "$(per "$(awk -v a="$(now)" -v b="$began" 'BEGIN { print a - b }')" 1)"
done
say "raw figures: $RAW"
"$here/table.sh" "$RAW"
