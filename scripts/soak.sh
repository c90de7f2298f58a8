#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What takes too long for every day: a million comparisons of our JPEG decoder with libjpeg-turbo, 200,000 damaged
# files against it, boxes of 20,000 files from marks, 100,000 damaged datasets of every format, and a training run that
# is killed a hundred times. Prints the counts.
source "$(dirname "$0")/common.sh"
exec </dev/null
scripts/build.sh torch test
meson_setup build/soak -Dtests=true -Dpython=disabled >/dev/null
say "building"
meson compile -C build/soak -j "$(jobs)" test_codec_jpeg_own test_codec_jpeg_own_damage \
  test_codec_jpeg_own_marks mutant >/dev/null
say "damaged datasets, each in a process with little memory and time: 100,000"
status=0
"$VENV/bin/python" tests/mutants/mutants.py build/soak/tests/mutants/mutant --count 100000 --jobs "$(jobs)" || status=1
say "whole images and boxes against libjpeg-turbo: 10^6 comparisons"
build/soak/tests/test_codec_jpeg_own --many 1000000 || status=1
say "damaged files against libjpeg-turbo: 200,000"
build/soak/tests/test_codec_jpeg_own_damage --many 200000 || status=1
say "boxes from the marks that earlier boxes left, against libjpeg-turbo: 20,000 files"
build/soak/tests/test_codec_jpeg_own_marks --many 20000 || status=1
say "a loader killed at random moments, and resumed: 100 times"
STOKER_TEST_KILLS=100 "$VENV/bin/python" -m pytest -q -rP -p no:cacheprovider tests/python/test_python_state.py \
    -k test_killed_at_random_moments || status=1
exit $status
