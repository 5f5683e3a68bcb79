#!/bin/bash
# The bench (`make bench`): our queue and others take turns on one throwaway server with fsync on. Compare the ratios;
# absolute figures depend on the machine.
#   make bench [T="push work"]  or  tests/bench/run.sh [PART...]
# Parts that run without PART: push work level counters held counts fair latency programs. Only if they are named: urgent (a
# part of fair), queues, designs, instructions (by valgrind), bulk, upgrade, console, screens (WATCH=60 BUDGET=2),
# foreign (ROWS=10000000), hour (SECONDS=3600), long (SECONDS=7200), starved (SECONDS=90 PERCENT=5), slow (PERCENT=25). console, foreign,
# starved, upgrade and screens run alone.
# Variables of the environment:
#   SECONDS_EACH=5    seconds of a run         ROUNDS=3         rounds
#   BACKLOG=1         times as many jobs       HELD_ROUNDS=3    rounds of held
#   HOLD=45           seconds of held          RAW=FILE         raw figures are appended to it
#   SHAPES="1 4 0"    of work and instructions only these rows: jobs clients one-by-one, with commas between rows
#   OWN=REGEX         of instructions only these rows of ours alone
# It prints the figures as they come, then the table (tests/bench/table.sh RAW makes it again; --readme writes it into README.md).
set -euo pipefail
here=$(dirname "$0")
for f in lib engines push work designs instructions held counts fair latency queues bulk hour long starved slow; do
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
[[ $parts =~ ^(starved|slow)$ ]] || "$src/tests/engines.sh"
mkdir -p "$cache"
RAW=${RAW:-$cache/raw-$(date +%Y%m%d-%H%M%S)}
start_server
[ "$parts" = starved ] || setup
facts
[[ $parts =~ ^(held|starved)$ ]] || rounds_of "$parts"
for p in $parts; do
    began=$(now)
    say "$p"
    "part_$p"
    fact "seconds of $p" "$(per "$(awk -v a="$(now)" -v b="$began" 'BEGIN { print a - b }')" 1)"
done
say "raw figures: $RAW"
"$here/table.sh" "$RAW"
