#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the kernel tests for the other architecture and runs them under qemu-user; speaks TAP.
#   on x86-64: the NEON kernels; on aarch64: the C, SSE2 and AVX2 kernels of x86-64 (qemu has no AVX-512)
# Only the kernels and what they stand on are built, so that no library of that architecture is needed.
source "$(dirname "$0")/common.sh"

COMMON="src/base/cpu.c src/base/err.c src/base/mem.c src/op/finish.c src/op/kernels_c.c src/op/resize.c
    src/op/resize_taps.c src/op/turn.c src/codec/jpeg/kernels.c src/codec/jpeg/kernels_c.c
    src/codec/jpeg/streams.c src/source/crc32c.c"
TESTS="codec/jpeg_own_kernels op/finish op/kernels op/resize source/crc32c"
AVX2="-mavx2 -mfma -mf16c"
AVX512="$AVX2 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vbmi -mavx512vnni"

case $(uname -m) in
aarch64) arch=x86_64 qemu="qemu-x86_64 -cpu max -L /usr/x86_64-linux-gnu" ;;
x86_64) arch=aarch64 qemu="qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu" ;;
*)
    echo "ok 1 - kernels of another architecture # SKIP none is known for $(uname -m)"
    echo "1..1"
    exit
    ;;
esac
compiler=$arch-linux-gnu-gcc
out=build/cross-$arch
mkdir -p "$out"

# compile FLAGS SOURCE...
compile() {
    local flags=$1
    shift
    for source in "$@"; do
        $compiler -c -std=gnu11 -O3 -g -D_GNU_SOURCE -ffp-contract=off -Wall -Wextra -Werror \
            -Wno-missing-field-initializers $flags -Iinclude -Isrc -Itests \
            -o "$out/${source//\//_}.o" "$source"
    done
}

build() {
    rm -f "$out"/*.o
    compile "" $COMMON $(for name in $TESTS; do echo "tests/${name/\//\/test_}.c"; done)
    if [ $arch = aarch64 ]; then
        compile "" src/op/kernels_neon.c src/op/finish_neon.c src/codec/jpeg/*_neon.c
        compile "-march=armv8-a+crc" src/source/crc32c_arm.c
    else
        compile "-msse4.2" src/source/crc32c_x86.c
        compile "" src/op/kernels_x86.c src/op/kernels_sse2.c src/codec/jpeg/*_sse2.c
        compile "$AVX2" src/op/kernels_avx2.c src/op/finish_avx2.c src/codec/jpeg/*_avx2.c
        compile "$AVX512" src/op/kernels_avx512.c src/op/finish_avx512.c src/codec/jpeg/*_avx512.c
    fi
    for name in $TESTS; do
        $compiler -o "$out/${name//\//_}" "$out/tests_${name/\//_test_}.c.o" "$out"/src_*.o -lm
    done
}

tap_check "the kernel tests build for $arch" build
if [ $tap_failed = 0 ]; then
    for name in $TESTS; do
        status=0
        $qemu "$out/${name//\//_}" >"$out/${name//\//_}.tap" || status=$?
        # The numbers and the plan of one whole; the lines themselves as they are.
        while IFS= read -r line; do
            case $line in
            "ok "* | "not ok "*)
                tap_checks=$((tap_checks + 1))
                case $line in not*) tap_failed=1 ;; esac
                echo "$line" | sed -E "s|ok [0-9]+ - |ok $tap_checks - $arch $name: |"
                ;;
            "1.."*) ;;
            *) echo "$line" ;;
            esac
        done <"$out/${name//\//_}.tap"
        tap_check "$arch: $name ends well" test $status = 0
    done
fi
tap_done
