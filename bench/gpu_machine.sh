#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One run on a many-core x86-64 machine, with or without a GPU, without a network. Each ends within 9 minutes.
#   bench/gpu_machine.sh        build, C tests (AVX-512 kernels), kernel timings, scaling over 1 to 16 workers, and
#                               the Python tests that its Pillow allows
#   bench/gpu_machine.sh train  build, and bench/train_gpu.py with the arguments that follow
# Logs go to $OUT, or to build/gpu-machine. Needs meson, ninja, a C compiler, libjpeg's headers, and a python3 with
# torch, torchvision, Pillow, NumPy; for a GPU nvcc, and for the models timm.
set -uo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-$PWD/build/gpu-machine}
BUILD=build/gpu
START=$SECONDS
LIMIT=540
WHAT=${1:-cpu}
shift || true
failed=0
mkdir -p "$OUT"

left() { echo $((LIMIT - SECONDS + START)); }

# step NAME SECONDS COMMAND...: runs it within its time and what is left of the whole; output to $OUT/NAME.log
step() {
    local name=$1 most=$2 begin=$SECONDS status=0
    shift 2
    if [ "$(left)" -lt 5 ]; then
        echo "== $name: left out, the time is up"
        return
    fi
    [ "$(left)" -lt "$most" ] && most=$(left)
    timeout --kill-after=5 "$most" "$@" >"$OUT/$name.log" 2>&1 </dev/null || status=$?
    echo "== $name: $([ $status = 0 ] && echo good || echo "status $status") in $((SECONDS - begin)) s"
    tail -n "${SHOW:-6}" "$OUT/$name.log"
    [ $status = 0 ] || failed=1
}

configure() {
    [ "$WHAT" = cpu ] && rm -rf "$BUILD" # else what is built there is used again
    meson setup $([ -d "$BUILD" ] && echo --reconfigure) "$BUILD" -Dtests=true --prefix="$PWD/$BUILD/root" --libdir=lib \
        -Dpython.platlibdir="$PWD/$BUILD/python" -Dpython.purelibdir="$PWD/$BUILD/python"
}

build() { ninja -C "$BUILD" && meson install -C "$BUILD" --no-rebuild --quiet; }

kernels() {
    local program bad=0
    for program in "$BUILD"/tests/test_op_kernels*; do
        [ -f "$program" ] && [ -x "$program" ] || continue
        "$program" --bench || bad=1
    done
    return $bad
}

export -f configure build kernels
export WHAT BUILD PYTHONPATH=$PWD/$BUILD/python PATH=$PWD/$BUILD/root/bin:$PATH:/usr/local/cuda/bin PYTHONDONTWRITEBYTECODE=1

CPUS=$(nproc)
COUNTS=$(for n in 1 2 4 8 16; do [ "$n" -le "$CPUS" ] && echo "$n"; done | paste -sd,)
{ lscpu; free -g; python3 --version; meson --version; cc --version; nvidia-smi; } >"$OUT/machine.log" 2>&1
sed -n 's/^Model name: *//p' "$OUT/machine.log"

step configure 60 bash -c configure
step build 200 bash -c build
step info 10 stoker info
case $WHAT in
cpu)
    step c-tests 120 meson test -C "$BUILD" --no-rebuild --num-processes "$CPUS"
    SHOW=60 step kernels 60 bash -c kernels
    SHOW=60 step scaling 200 python3 bench/run.py --only "bare decode" stoker --workers "$COUNTS" --rounds 3 --seconds 3 \
        --images 1000 --no-install --no-targets --out "$OUT/scaling"
    SHOW=30 step torch 60 python3 bench/run.py --only stoker "torch, PIL" --workers "$CPUS" --rounds 1 --seconds 5 \
        --images 1000 --no-install --no-targets --out "$OUT/torch"
    SHOW=15 step python-tests 150 python3 -m pytest -q -p no:cacheprovider tests/python
    ;;
train)
    SHOW=70 step train "$(left)" python3 bench/train_gpu.py --out "$OUT" "$@"
    ;;
*)
    echo "bench/gpu_machine.sh [cpu | train [arguments]], not $WHAT"
    failed=2
    ;;
esac
echo "== all in $((SECONDS - START)) s; logs in $OUT"
exit $failed
