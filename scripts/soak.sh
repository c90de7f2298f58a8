#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What takes too long for every day, for as long as one gives it: SOAK_S seconds (default 3600) are divided over the
# parts, each of which prints its count. SOAK_SEED (default: the day) is for those that draw at random. What ends badly
# is kept in build/soak-*, with the command that repeats it.
source "$(dirname "$0")/common.sh"
exec </dev/null
SOAK_S=${SOAK_S:-3600}
SEED=${SOAK_SEED:-$(date +%Y%m%d)}
B=build/soak
P=$VENV/bin/python
scripts/build.sh torch test
meson_setup $B -Dtests=true -Dpython=disabled >/dev/null
say "building"
meson compile -C $B -j "$(jobs)" test_codec_jpeg_own test_codec_jpeg_own_damage test_codec_jpeg_own_marks mutant \
    fault_rows fault_shim stoker:executable >/dev/null
shim=$(find "$PWD/$B/tests/soak" -name 'libfault_shim.*' -type f | head -n 1)
status=0

# Runs a part: its share of the time in percent, what it does, and the command, in which SECONDS_HERE stands for its
# seconds.
part() {
    local seconds=$((SOAK_S * $1 / 100)) what=$2 start=$SECONDS
    shift 2
    say "$what: $seconds s"
    set -- "${@//SECONDS_HERE/$seconds}"
    "$@" || { status=1; say "FAILED: $*"; }
    say "$what took $((SECONDS - start)) s"
}

# A program of comparisons, again and again until its time is up. Its number of comparisons also determines which they
# are, so each round has one more.
repeated() {
    local until=$((SECONDS + $1)) count=$2 rounds=0 total=0
    shift 2
    while [ $rounds = 0 ] || [ $SECONDS -lt $until ]; do
        "$@" --many $((count + rounds)) >"$B/repeated.log" || { grep -A8 '^not ok' "$B/repeated.log"; return 1; }
        total=$((total + count + rounds))
        rounds=$((rounds + 1))
    done
    echo "# $(basename "$1"): $total comparisons or files, 0 differ"
}

part 25 "damaged datasets, each in a process with little memory and time" \
    "$P" tests/mutants/mutants.py $B/tests/mutants/mutant --seconds SECONDS_HERE --first "$SEED" --jobs "$(jobs)" \
    --keep build/soak-mutants
part 20 "faults below the reader" "$P" tests/soak/faults.py $B/tests/soak/fault_rows "$shim" $B/cli/stoker \
    --seconds SECONDS_HERE --seed "$SEED" --keep build/soak-faults
part 15 "pack killed, and let down by the disk" "$P" tests/soak/kills.py $B/cli/stoker "$shim" \
    --seconds SECONDS_HERE --seed "$SEED" --keep build/soak-kills
part 15 "programs drawn at random, against torch" \
    "$P" tests/soak/programs.py --seconds SECONDS_HERE --seed "$SEED"
part 10 "loaders opened and closed" "$P" tests/soak/open_close.py --seconds SECONDS_HERE --seed "$SEED"
part 5 "whole images and boxes against libjpeg-turbo" repeated SECONDS_HERE 20000 $B/tests/test_codec_jpeg_own
part 4 "damaged files against libjpeg-turbo" repeated SECONDS_HERE 10000 $B/tests/test_codec_jpeg_own_damage
part 3 "boxes from the marks that earlier boxes left, against libjpeg-turbo" \
    repeated SECONDS_HERE 1000 $B/tests/test_codec_jpeg_own_marks
kills=$((SOAK_S / 36 + 1))
part 3 "a loader killed $kills times at random moments, and resumed" env STOKER_TEST_KILLS=$kills \
    "$P" -m pytest -q -rP -p no:cacheprovider tests/python/test_python_state.py -k test_killed_at_random_moments
exit $status
