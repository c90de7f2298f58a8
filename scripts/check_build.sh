#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks headers and exported names against a finished build directory. Speaks TAP.
#   scripts/check_build.sh BUILD_DIR
source "$(dirname "$0")/common.sh"
BUILD=$1
WARN=(-Wall -Wextra -Werror -Iinclude)

public_header() { echo '#include <stoker/stoker.h>' | "$@" "${WARN[@]}" -pedantic -fsyntax-only -; }

# A header that compiles alone, twice in one file, includes all it needs and has its guard.
headers_alone() {
    local header bad=0
    while read -r header; do
        local -a isa=()
        case $header in # these are for one architecture only; some leave functions to who includes them
            *_x86.h) [ "$(uname -m)" = x86_64 ] || continue; isa=(-mavx2 -mfma -mf16c -mbmi2 -Wno-error) ;;
            *_neon.h) [ "$(uname -m)" = aarch64 ] || continue ;;
            */source/hdf5/inside.h) pkg-config --exists hdf5 || continue; read -ra isa < <(pkg-config --cflags hdf5) ;;
        esac
        printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
            cc -x c -std=gnu11 -D_GNU_SOURCE -Isrc -I. "-I$BUILD" "${WARN[@]}" "${isa[@]}" -Wno-unused-function \
                -Wno-missing-field-initializers -fsyntax-only - || bad=1
    done < <(find src cli -name '*.h')
    return $bad
}

# Fails, and shows them, when lines of $1 do not match $2.
no_line() { if grep -vE "$2" <<<"$1"; then return 1; fi; }

only_ours_exported() {
    local names
    names=$(nm -D --defined-only "$BUILD/libstoker.so" | awk '{print $3}' | sed 's/@.*//')
    [ -n "$names" ]
    no_line "$names" '^stoker_'
}

# Every function that the header promises is there.
promises_kept() {
    local name bad=0 names
    names=$(nm -D --defined-only "$BUILD/libstoker.so" | awk '{print $3}')
    for name in $(grep -v '^ *\*' include/stoker/stoker.h | tr '\n' ' ' |
        grep -o 'STOKER_API [^;(]*(' | grep -o 'stoker_[a-z_]*(' | tr -d '('); do
        grep -qx "$name" <<<"$names" || { echo "$name is declared and not exported"; bad=1; }
    done
    return $bad
}

# Names shared between files of the library begin with st_ or stoker_: a static link meets nobody else's.
hidden_names() {
    local names
    names=$(nm -g --defined-only "$BUILD/libstoker.a" | awk 'NF == 3 {print $3}' | sort -u)
    [ -n "$names" ]
    no_line "$names" '^(st_|stoker_)'
}

tap_check "stoker.h compiles as C11" public_header cc -x c -std=c11
tap_check "stoker.h compiles as C++" public_header g++ -x c++ -std=c++11
tap_check "every header compiles alone" headers_alone
tap_check "exported names begin with stoker_" only_ours_exported
tap_check "every function of stoker.h is exported" promises_kept
tap_check "hidden names begin with st_" hidden_names
tap_done
