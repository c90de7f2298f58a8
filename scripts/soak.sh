#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What takes too long for every day: a million comparisons of our JPEG decoder with libjpeg-turbo, and 200,000
# damaged files. Prints the counts.
source "$(dirname "$0")/common.sh"
exec </dev/null
scripts/setup.sh
meson_setup build/soak -Dtests=true -Dpython=disabled >/dev/null
say "building"
meson compile -C build/soak test_codec_jpeg_own test_codec_jpeg_own_damage >/dev/null
say "whole images and boxes against libjpeg-turbo: 10^6 comparisons"
build/soak/tests/test_codec_jpeg_own --many 1000000
say "damaged files against libjpeg-turbo: 200,000"
build/soak/tests/test_codec_jpeg_own_damage --many 200000
