#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds, and runs the tests layer by layer; the last line is the total of all.
#   scripts/test.sh [LAYER...]     checks c python asan tsan cross install (default: all); quick: a part of python
source "$(dirname "$0")/common.sh"
exec </dev/null
RESULTS=$ROOT/build/results
# Many tests start Python and import torch, which takes half as long with its bytecode at hand.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$ROOT/build/bytecode
TALLY=$RESULTS/tally
LAYERS=${*:-checks c python asan tsan cross install}

tally() { "$VENV/bin/python" scripts/tally.py add "$TALLY" "$@"; }

# Runs a command that speaks TAP as layer $1.
tap_layer() {
    local layer=$1 status=0
    shift
    "$@" >"$RESULTS/$layer.tap" 2>"$RESULTS/$layer.log" || status=$?
    grep -A8 '^not ok' "$RESULTS/$layer.tap" || true
    if [ $status != 0 ]; then tail -n 30 "$RESULTS/$layer.log"; fi
    tally "$layer" tap "$RESULTS/$layer.tap" $status
}

# Tests often wait, for a server or a process or each other, and a build is done long before its layer is due. So these
# builds go on beside the tests of the layers before them, with what those leave of the CPUs; that of `c` beside the
# packages' way here, which is mostly waiting, too.
build_ahead() {
    local layer
    AHEAD=yes
    for layer in $LAYERS; do
        case $layer in
        c) layer_c ;;
        asan | tsan | cross)
            renice -n 19 "$BASHPID" >/dev/null
            "layer_$layer"
            ;;
        esac
    done
}
# Waits until build_ahead has built layer $1. Fails if the build has failed.
built_ahead() {
    while [ ! -e "$RESULTS/$1.built" ] && kill -0 "$BUILDER" 2>/dev/null; do sleep 0.2; done
    [ "$(cat "$RESULTS/$1.built" 2>/dev/null)" = 0 ]
}

# Builds the C tests in build/test-$1 with the meson options that follow, and runs them; in build_ahead the former alone.
# $PATIENCE: times the time that a test has. $WITHOUT: a pattern for tests that are left out.
c_layer() {
    local layer=$1 dir=build/test-$1 tests=() status=0
    if [ "$AHEAD" = yes ]; then
        build_tests "$@" >"$RESULTS/$layer.log" 2>&1 || status=$?
        echo $status >"$RESULTS/$layer.new" && mv "$RESULTS/$layer.new" "$RESULTS/$layer.built"
        return
    fi
    local log=$dir/meson-logs/testlog.json
    rm -f "$log"
    built_ahead "$layer" || status=$?
    if [ $status != 0 ]; then
        tail -n 40 "$RESULTS/$layer.log"
        echo "not ok 1 - the build" >"$RESULTS/$layer.tap"
        tally "$layer" tap "$RESULTS/$layer.tap" 1
        return
    fi
    if [ -n "${WITHOUT:-}" ]; then
        say "   $layer: without $WITHOUT"
        mapfile -t tests < <(tests_of "$dir" tests)
    fi
    # ThreadSanitizer wants its shadow at fixed addresses, which full address randomisation may take.
    PATH="$VENV/bin:$PATH" setarch -R "$VENV/bin/meson" test -C "$dir" --no-rebuild --num-processes $(($(jobs) + 1)) \
        --timeout-multiplier "${PATIENCE:-1}" "${tests[@]}" \
        >>"$RESULTS/$layer.log" 2>&1 || true
    tally "$layer" meson "$log"
}

layer_checks() {
    tap_layer layers "$VENV/bin/python" scripts/check_layers.py
    tap_layer arguments "$VENV/bin/python" scripts/check_arguments.py
}
layer_c() {
    c_layer c
    [ "$AHEAD" = yes ] && return
    tap_layer build scripts/check_build.sh build/test-c
    tap_layer abi scripts/test_abi.sh build/test-c
    tap_layer without-doctor scripts/test_without_doctor.sh build/test-c
}
# A build with a sanitizer takes longer than its tests: -O1 and line numbers without other debug information save more
# there than they cost here. Where the sources force the compiler to inline, it may choose here: with the checks of a
# sanitizer in every copy, three files would take a fifth of the build. Of UBSan's checks three take a third of it, and
# what they find faults under AddressSanitizer anyway; mold links in half the time, and CUDA's compiler has nothing to
# say here. The heaviest tests do a tenth of their repetitions, here and emulated.
#   sanitized_layer LAYER SANITIZERS [FLAG...]
SHARE=10
sanitized_layer() {
    local layer=$1 sanitizers=$2
    shift 2
    STOKER_TEST_SHARE=$SHARE CC_LD=mold c_layer "$layer" -Dbuildtype=debugoptimized -Doptimization=1 -Dcuda=disabled \
        -Db_sanitize="$sanitizers" "-Dc_args=-g1 -Dalways_inline= $*"
}
# Left out: soak/kills, whose processes are killed before they could report anything, and pipe/jpeg_steering, which runs
# the arithmetic of pipe/jpeg_steer for a long time.
layer_asan() {
    WITHOUT='pipe/jpeg_steering|soak/kills' ASAN_OPTIONS=abort_on_error=0:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        sanitized_layer asan address,undefined -fno-sanitize=null,object-size,pointer-overflow
}
# Left out: tests with a single thread, which show it nothing (most of the program `stoker`), mutants/all,
# because source/trails has several threads read damaged archives too, soak/faults, whose faults source/reader and
# pipe/retry have, too, and pipe/memory, whose waits for memory pipe/loader and pipe/jpeg_hardware_memory have.
layer_tsan() {
    WITHOUT='(order|fuzz|soak)/.*|base/(cpu|err|functions|text)|op/(?!taps_kept).*|codec/(annotations|audio|bmp|jpeg.*|masks|png|pnm|stale|tiff|webp)|doctor/(?!watched|load).*|gpu_host/kernels_host|mutants/all|pipe/(jpeg_steer|jpeg_steering|memory|tune)|source/(arrays|authorities|compound|crc32c|hdf5_filters|hdf5_trees|inflate|json|names|numbers|pixels|tar_inside|tfrecord|unpack|urls)' \
        TSAN_OPTIONS=halt_on_error=1 sanitized_layer tsan thread
}
# The other architecture, emulated. That is ten times slower. Left out is what takes
# long and calculates alike on all of them.
layer_cross() {
    local file=build/cross.ini log=$RESULTS/cross-file.log
    if [ "$AHEAD" = yes ]; then
        if ! scripts/cross.sh "$file" >"$log" 2>&1; then
            tail -n 1 "$log" >"$RESULTS/cross.cannot"
            return
        fi
        # Meson reads the flags in it only once.
        if ! stamp_is build/.stamp-cross "$(cat "$file")"; then rm -rf build/test-cross; fi
        stamp_set build/.stamp-cross "$(cat "$file")"
    elif ! built_ahead cross && [ -e "$RESULTS/cross.cannot" ]; then
        tap_layer cross echo "ok 1 - the tests of the other architecture # SKIP $(cat "$RESULTS/cross.cannot")"
        return
    fi
    WITHOUT='doctor/(report|rules|tried)|mutants/all|soak/.*|pipe/(jpeg_steer|jpeg_steering|memory|tune|tuning)|source/(reader_budget|remote.*)' \
        PATIENCE=4 STOKER_TEST_SHARE=$SHARE c_layer cross -Dcuda=disabled --cross-file "$file"
}
layer_install() { tap_layer install scripts/test_install.sh; }
layer_python() { python_layer; }
# Those that take moments, for every day.
layer_quick() { python_layer --quick; }
python_layer() {
    local status=0
    mkdir -p "$RESULTS/python"
    # Ctrl-C is tested too, and a shell that runs us in the background has it ignored.
    env --default-signal=INT "$VENV/bin/python" tests/python/each_file.py "$RESULTS/python" "$@" || status=$?
    tally python files "$RESULTS/python" $status
}

rm -rf "$RESULTS"
mkdir -p "$RESULTS"
for layer in $LAYERS; do
    declare -F "layer_$layer" >/dev/null || die "there is no layer '$layer': checks c python asan tsan cross install quick"
done
scripts/setup.sh test-programs
AHEAD=no
build_ahead &
BUILDER=$!
trap 'kill "$BUILDER" 2>/dev/null || true' EXIT
scripts/build.sh torch test
for layer in $LAYERS; do
    start=$SECONDS
    say "tests: $layer"
    "layer_$layer"
    say "tests: $layer took $((SECONDS - start)) s"
done
"$VENV/bin/python" scripts/tally.py sum "$TALLY"
