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
            */crc32c_streams.h) isa=(-Wno-error) ;;
            *_neon.h) [ "$(uname -m)" = aarch64 ] || continue ;;
        esac
        printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
            cc -x c -std=gnu11 -D_GNU_SOURCE -Isrc -I. "-I$BUILD" "${WARN[@]}" "${isa[@]}" -Wno-unused-function \
                -Wno-missing-field-initializers -fsyntax-only - || bad=1
    done < <(find src cli doctor -name '*.h')
    return $bad
}

# The functions that the header declares.
declared() {
    grep -v '^ *\*' include/stoker/stoker.h | tr '\n' ' ' | grep -o 'STOKER_API [^;(]*(' |
        grep -o 'stoker_[a-z_]*(' | tr -d '(' | sort -u
}

# The symbols of the shared library as NAME@@VERSION; the versions themselves are of type A.
exported() { nm -D --defined-only "$BUILD/libstoker.so" | awk '$2 != "A" {print $3}' | sort -u; }

exports_are_the_header() {
    [ "$(declared | wc -l)" -gt 50 ]
    diff <(declared) <(exported | sed 's/@.*//')
}

exports_have_versions() { exported | no_line -vE '@@STOKER_[0-9]+\.[0-9]+$'; }

soname() { readelf -d "$BUILD/libstoker.so" | grep 'SONAME.*\[libstoker\.so\.0\]'; }

# Names shared between files of the library begin with st_ or stoker_: a static link meets nobody else's.
hidden_names() {
    local names
    names=$(nm -g --defined-only "$BUILD/libstoker.a" | awk 'NF == 3 {print $3}' | sort -u)
    [ -n "$names" ]
    no_line -vE '^(st_|stoker_)' <<<"$names"
}

tap_check "stoker.h compiles as C11" public_header cc -x c -std=c11
tap_check "stoker.h compiles as C++" public_header g++ -x c++ -std=c++11
tap_check "every header compiles alone" headers_alone
tap_check "the shared library exports the functions of stoker.h and nothing else" exports_are_the_header
tap_check "every exported function has a version" exports_have_versions
tap_check "the shared library has the soname libstoker.so.0" soname
tap_check "hidden names begin with st_" hidden_names
tap_done
