#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prepares the tests of the other architecture: on x86-64 those of aarch64, on aarch64 those of x86-64.
#   scripts/cross.sh FILE     writes FILE, a cross file for Meson; its programs run under qemu-user
# Where that cannot be, the last line of stderr says why, and the exit status is 1.
source "$(dirname "$0")/common.sh"
FILE=$1

grep -q '^ID=debian$' /etc/os-release || die "libraries of another architecture are fetched on Debian only"
arch=$(other_arch)
debian=$(debian_arch "$arch") cpu=$(emulated_cpu "$arch")
compiler=$arch-linux-gnu-gcc
for program in "$compiler" "$arch-linux-gnu-ar" "qemu-$arch" pkg-config; do
    command -v "$program" >/dev/null || die "there is no $program here"
done
scripts/sysroot.sh $debian libc6-dev $(library_packages)
sysroot=$ROOT/build/sysroot-$debian
launcher=$(command -v ccache || true)
# A cross compiler looks for its own linker under names that mold does not have; there it finds it.
mold=/usr/libexec/mold
if [ ! -e $mold/ld ]; then mold=; fi

cat >"$FILE.new" <<END
[binaries]
c = [${launcher:+'$launcher', }'$compiler']
ar = '$arch-linux-gnu-ar'
strip = '$arch-linux-gnu-strip'
pkg-config = 'pkg-config'
exe_wrapper = ['qemu-$arch', '-cpu', '$cpu', '-L', '$sysroot']

[built-in options]
c_args = ['--sysroot=$sysroot', '-DST_EMULATED']
c_link_args = ['--sysroot=$sysroot'${mold:+, '-B$mold'}]

[properties]
needs_exe_wrapper = true
sys_root = '$sysroot'
pkg_config_libdir = ['$sysroot/usr/lib/$arch-linux-gnu/pkgconfig', '$sysroot/usr/share/pkgconfig']

[host_machine]
system = 'linux'
cpu_family = '$arch'
cpu = '$arch'
endian = 'little'
END
# Unchanged, it stays as old as it is, or Meson would configure again.
if cmp -s "$FILE.new" "$FILE"; then rm "$FILE.new"; else mv "$FILE.new" "$FILE"; fi
