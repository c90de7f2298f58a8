#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs programs with a library of another version: one compiled against stoker.h with a later library in which every
# structure that may grow has grown, and one compiled against the later header with this library. Speaks TAP.
#   scripts/test_abi.sh BUILD_DIR
source "$(dirname "$0")/common.sh"
BUILD=$ROOT/$1
LATER=$ROOT/build/abi
WORK=$ROOT/build/abi-work

later_library() {
    mkdir -p "$WORK/stoker"
    "$VENV/bin/python" tests/abi/grow.py include/stoker/stoker.h "$WORK/stoker/stoker.h"
    meson_setup "$LATER" -Dpython=disabled -Dcuda=disabled -Dbuildtype=plain \
        "-Dc_args=-O0 -include $WORK/stoker/stoker.h"
    meson compile -C "$LATER" -j "$(jobs)" stoker:shared_library
}

programs() {
    local flags=(-std=c11 -Wall -Wextra -Werror -g tests/abi/program.c)
    cc "${flags[@]}" -Iinclude -o "$WORK/program" -L"$BUILD" -lstoker
    cc "${flags[@]}" -DLATER "-I$WORK" -o "$WORK/later_program" -L"$LATER" -lstoker
}

# Runs program $1 with the library in $2, which is $3 (older, same, newer) than the header it was compiled with.
runs() {
    rm -rf "$WORK/data"
    mkdir -p "$WORK/data"
    LD_LIBRARY_PATH=$2 "$WORK/$1" "$3" "$WORK/data"
}

# The program does look: told that this library is a newer one, it says that it is not.
notices() {
    local status=0
    LD_LIBRARY_PATH=$BUILD "$WORK/program" newer "$WORK/data" || status=$?
    [ $status = 1 ]
}

mkdir -p "$WORK"
tap_check "a later library, whose structures have grown, builds" later_library
tap_check "programs build against this header and the later one" programs
tap_check "a program runs with the library it was compiled for" runs program "$BUILD" same
tap_check "a program runs with a later library" runs program "$LATER" newer
tap_check "a later program runs with its library" runs later_program "$LATER" same
tap_check "a later program runs with an earlier library, as far as that can" runs later_program "$BUILD" older
tap_check "the program fails if the library is not what it was told" notices
tap_done
