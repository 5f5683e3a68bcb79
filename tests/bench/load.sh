#!/bin/bash
# Keeps the machine busy while something else runs: load.sh [SHELLS] -- COMMAND...
# SHELLS (16) endless loops compete with the command for the processors until it ends. Tests must pass under this load as
# they do without it: tests/bench/load.sh 16 -- make check T="test_fair"
# With PAUSES=n, also n times a second a process that the command started is stopped for up to two seconds, as on a
# machine that swaps or whose host is busy.
set -u

shells=16
if [[ ${1-} =~ ^[0-9]+$ ]]; then
    shells=$1
    shift
fi
[ "${1-}" = -- ] && shift
[ $# -gt 0 ] || {
    echo "usage: $0 [SHELLS] -- COMMAND..." >&2
    exit 2
}

pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait "${pids[@]}" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
for ((i = 0; i < shells; i++)); do
    while :; do :; done &
    pids+=($!)
done

below() { # pid: prints it, and all processes that it started
    local child
    echo "$1"
    for child in $(ps -o pid= --ppid "$1"); do
        below "$child"
    done
}

pause() { # pid: stops it for up to two seconds
    kill -STOP "$1" 2>/dev/null || return
    read -r -t "$((RANDOM % 2)).$((RANDOM % 10))" <><(:)
    kill -CONT "$1" 2>/dev/null
}

"$@" &
command=$!
if [ "${PAUSES:-0}" -gt 0 ]; then
    while kill -0 "$command" 2>/dev/null; do
        mapfile -t all < <(below "$command" | grep -vx "$command")
        for ((i = 0; i < PAUSES && ${#all[@]} > 0; i++)); do
            pause "${all[RANDOM % ${#all[@]}]}" &
        done
        read -r -t 1 <><(:)
    done
fi
wait "$command"
