#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tests that need a GPU: builds, runs the C programs and the pytest files of tests/gpu, and adds up. Where
# there is no GPU it says SKIP and why, and that is no failure.
#   scripts/test_gpu.sh [LAYER...]     c python soak memcheck racecheck (default: c python)
# soak decodes 120,000 random JPEG files by the GPU's JPEG hardware, and takes two minutes.
# memcheck and racecheck run the C programs that use the GPU, and one pipeline of each kind, under NVIDIA's
# compute-sanitizer.
# PYTHON names an interpreter that has torch, torchvision, Pillow and pytest; else .venv's is taken, or python3.
source "$(dirname "$0")/common.sh"
exec </dev/null
if [ -z "${PYTHON:-}" ]; then
    if [ -x "$VENV/bin/python" ]; then PYTHON=$VENV/bin/python; else PYTHON=python3; fi
fi
DIR=build/test-gpu
RESULTS=$ROOT/$DIR/results
TALLY=$RESULTS/tally
LAYERS=${*:-c python}
# The package as installed below, and none of the interpreter's own.
export PYTHONPATH=$ROOT/$DIR/package PYTHONDONTWRITEBYTECODE=1 XLA_PYTHON_CLIENT_PREALLOCATE=false
meson() { PATH="$VENV/bin:$PATH" command meson "$@"; }
tally() { "$PYTHON" scripts/tally.py add "$TALLY" "$@"; }

why_not() {
    "$PYTHON" - <<'END'
import ctypes
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    raise SystemExit(f"no NVIDIA driver ({error})")
count = ctypes.c_int()
if code := cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
    raise SystemExit(f"the driver answers with error {code}")
if not count.value:
    raise SystemExit("the driver finds no GPU")
END
}

build() {
    meson_setup "$DIR" -Dtests=true -Dpython=enabled --prefix="$ROOT/$DIR/root" --libdir=lib \
        -Dpython.platlibdir="$PYTHONPATH" -Dpython.purelibdir="$PYTHONPATH" &&
        meson compile -C "$DIR" -j "$(jobs)" && meson install -C "$DIR" --no-rebuild --quiet
}

# pytest_layer NAME WHAT... COMMAND-PREFIX in ${PREFIX[@]}
PREFIX=()
pytest_layer() {
    local layer=$1 status=0
    shift
    rm -f "$RESULTS/$layer.xml"
    "${PREFIX[@]}" "$PYTHON" -m pytest -q -p no:cacheprovider --junitxml="$RESULTS/$layer.xml" "$@" || status=$?
    tally "$layer" junit "$RESULTS/$layer.xml" $status
}

layer_c() {
    local log=$DIR/meson-logs/testlog.json
    rm -f "$log"
    meson test -C "$DIR" --no-rebuild --suite gpu --num-processes 1 >"$RESULTS/c.log" 2>&1 || true
    tally c meson "$log"
}
layer_python() { pytest_layer python tests/gpu; }
layer_soak() {
    local status=0
    "$PYTHON" tests/gpu/soak.py --maker "$DIR/tests/gpu/soak_files" | tee "$RESULTS/soak.tap" || status=$?
    tally soak tap "$RESULTS/soak.tap" $status
}

# The programs of tests/gpu that give the GPU work (the kernels few batches: each takes seconds here), then some
# pipelines from Python, under a tool of compute-sanitizer.
sanitized() {
    local tool=$1 what name status
    PREFIX=(compute-sanitizer --tool "$tool" --error-exitcode 99 --target-processes all)
    for what in device "kernels 12"; do
        name=$tool-${what% *} status=0
        # shellcheck disable=SC2086 # a name and its argument
        "${PREFIX[@]}" "$DIR"/tests/test_gpu_$what >"$RESULTS/$name.tap" 2>"$RESULTS/$name.log" || status=$?
        grep -A12 "^========= " "$RESULTS/$name.tap" | grep -v "ERROR SUMMARY: 0 errors" | tail -n 30 || true
        tally "$name" tap "$RESULTS/$name.tap" $status
    done
    pytest_layer "$tool-python" tests/gpu/test_equal.py -k \
        "test_every_pipeline and cuda and (training or simclr or erasing or larger)"
    PREFIX=()
}
layer_memcheck() { sanitized memcheck; }
layer_racecheck() { sanitized racecheck; }

if ! reason=$(why_not 2>&1); then
    echo "SKIP: the tests of tests/gpu need a GPU: $reason"
    exit 0
fi
for layer in $LAYERS; do
    declare -F "layer_$layer" >/dev/null || die "there is no layer '$layer': c python soak memcheck racecheck"
done
mkdir -p build
say "building in $DIR"
if ! build >build/test-gpu.log 2>&1; then
    tail -n 40 build/test-gpu.log
    die "the build failed: see build/test-gpu.log"
fi
rm -rf "$RESULTS"
mkdir -p "$RESULTS"
for layer in $LAYERS; do
    start=$SECONDS
    say "tests on the GPU: $layer"
    "layer_$layer"
    say "tests on the GPU: $layer took $((SECONDS - start)) s"
done
"$PYTHON" scripts/tally.py sum "$TALLY"
