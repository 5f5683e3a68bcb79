#!/bin/bash
# Draws every picture in screenshots/ anew (`make screenshots`): SVG from the cells of a terminal, PNG
# from the SVG at twice the size. The same data, clock and keys each time give the same SVG bytes.
# QUEUETOP and VSHOT are the two programs.
set -eu
cd "$(dirname "$0")/.."
mkdir -p screenshots

# shot ROWSxCOLS STEP... : the steps of vshot (tests/shot.c) on a console with the fixture
shot() {
    "$VSHOT" "$@" -- "$QUEUETOP"
}

# --- scenarios: one call a terminal, several shot: steps in it ---------------------------------------
shot 24x80 'want:queuetop' 'settle:300' 'shot:screenshots/80_queues.svg' 'key:q'

# --- pictures ------------------------------------------------------------------------------------------
for svg in screenshots/*.svg; do
    rsvg-convert -z 2 -o "${svg%.svg}.png" "$svg"
done
