#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The doctor on programs that nobody has written, on a many-core x86-64 machine without a network. Ends within 9 minutes.
#   bench/drawn_programs.sh [SEED [PART...]]     SEED: 1100 if it is not given; parts, in this order unless named:
#     two four eight sixteen     programs with so many CPUs each, side by side on the CPUs there are
#     busy                       with two, beside a program that computes on one of them
#     gpu                        with eight CPUs and steps on the GPU, one after the other; left out where there is none
#     tried                      what --try-stoker predicts, beside what `python -m stoker` does
# Results go to $OUT, or to build/drawn: PART.json each, and all of them in RESULTS-doctor-drawn.md. Needs what
# bench/gpu_machine.sh needs. PROGRAM (and PYTHONPATH) name a stoker that is built already.
set -uo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-$PWD/build/drawn}
BUILD=build/gpu
LIMIT=${LIMIT:-530} # seconds
SEED=${1:-1100}
shift || true
PARTS=${*:-two four eight sixteen busy gpu tried}
failed=0
mkdir -p "$OUT"

left() { echo $((LIMIT - SECONDS)); }

build() {
    meson setup $([ -d "$BUILD" ] && echo --reconfigure) "$BUILD" -Dgpu_generations=90 --prefix="$PWD/$BUILD/root" \
        --libdir=lib -Dpython.platlibdir="$PWD/$BUILD/python" -Dpython.purelibdir="$PWD/$BUILD/python" &&
        ninja -C "$BUILD" && meson install -C "$BUILD" --no-rebuild --quiet
}

# part NAME SHARE SEED PROGRAMS CPUS OPTIONS...: as many of these programs as end in SHARE of a hundred parts of what is
# left, or in the time of all parts that are named alone
part() {
    local name=$1 share=$2 seed=$3 count=$4 cpus=$5 at_once
    shift 5
    [[ " $PARTS " == *" $name "* ]] || return 0
    at_once=$(($(nproc) / cpus))
    if [ "$at_once" = 0 ]; then
        echo "== $name: left out, there are only $(nproc) CPUs"
        return 0
    fi
    [[ " $* " == *" --gpu "* ]] && at_once=1
    local seconds=$(($(left) * share / 100)) begin=$SECONDS status=0
    timeout --kill-after=15 $((seconds + 25)) scripts/faults.sh --stoker "$PROGRAM" --generate "$seed" "$count" \
        --at-once "$at_once" --cpus-each "$cpus" --rounds 1 --lean --seconds "$seconds" --out "$OUT/$name.json" "$@" \
        >"$OUT/$name.log" 2>&1 || status=$?
    echo "== $name: status $status in $((SECONDS - begin)) s"
    tail -n 12 "$OUT/$name.log"
    [ $status = 0 ] || failed=1
}

export PYTHONPATH=${PYTHONPATH:-$PWD/$BUILD/python} PATH=$PATH:/usr/local/cuda/bin PYTHONDONTWRITEBYTECODE=1
if [ -z "${PROGRAM:-}" ]; then
    PROGRAM=$PWD/$BUILD/root/bin/stoker
    build >"$OUT/build.log" 2>&1 || { tail -n 20 "$OUT/build.log"; exit 1; }
    echo "== built in $SECONDS s"
fi
{ lscpu; python3 --version; nvidia-smi; } >"$OUT/machine.log" 2>&1
one() { [ "$(wc -w <<<"$PARTS")" = 1 ] && echo 93 || echo "$1"; }
part two "$(one 45)" "$SEED" 200 2
part four "$(one 18)" $((SEED + 1)) 24 4
part eight "$(one 20)" $((SEED + 2)) 16 8
part sixteen "$(one 22)" $((SEED + 3)) 12 16
part busy "$(one 30)" $((SEED + 4)) 60 2 --neighbours 1
if nvidia-smi >/dev/null 2>&1; then part gpu "$(one 55)" $((SEED + 5)) 24 8 --gpu; fi
part tried "$(one 75)" $((SEED + 6)) 40 4 --try-stoker
mapfile -t files < <(for name in two four eight sixteen busy gpu tried; do ls "$OUT/$name.json" 2>/dev/null; done)
reads=()
for file in "${files[@]}"; do reads+=(--read "$file"); done
[ ${#files[@]} = 0 ] || python3 tests/faults/run_faults.py "${reads[@]}" --generate "$SEED" 0 \
    --markdown "$OUT/RESULTS-doctor-drawn.md" | tee "$OUT/all.log"
echo "== all in $SECONDS s; results in $OUT"
exit $failed
