#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds what a release uploads into dist/: the sdist, and the wheels for CPython 3.11 and newer on any Linux with
# glibc 2.31 or newer.
#   scripts/wheel.sh [x86_64|aarch64]     default: this machine's architecture, and the other one if its tools are there
#   scripts/wheel.sh sources              only fetches the sources of the libraries
#   scripts/wheel.sh missing ARCH         only names the Debian packages that are missing to build and test a wheel
# STOKER_URL, the repository's address, is written into their metadata: packaging/addresses.py. DIST is another folder than
# dist/.
# The libraries are built from Debian's source packages against the C library of Debian 11 and linked statically, so
# the wheel depends on nothing but glibc. build/wheel keeps them: only the first run takes long.
source "$(dirname "$0")/common.sh"

# The Debian packages that are missing to build for architecture $1: a cross compiler, and qemu, which runs the programs
# by which libraries look for features.
missing_tools() {
    [ "$1" != "$(uname -m)" ] || return 0
    command -v "$1-linux-gnu-gcc" >/dev/null || printf ' gcc-%s-linux-gnu' "${1/_/-}"
    command -v "qemu-$1" >/dev/null || printf ' qemu-user'
    if [ "${2:-}" = "and test" ]; then command -v "qemu-$1-static" >/dev/null || printf ' qemu-user-static'; fi
}

# Once a day, and when the list changes. The libraries have the same versions as the tests ran with; what the mirror
# lacks comes from Debian 13.
fetch_sources() {
    local versions=$WORK/sources/versions.json
    if [ packaging/libraries.json -ot "$versions" ] && [ -z "$(find "$versions" -mmin +1440)" ]; then return; fi
    say "fetching the libraries' sources"
    "$VENV/bin/python" packaging/sources.py "$WORK/sources" "$(debian_mirror)" \
        "$(. /etc/os-release; echo "$VERSION_CODENAME")" trixie
}

WORK=$ROOT/build/wheel
DIST=${DIST:-dist}
grep -q '^ID=debian$' /etc/os-release || die "wheels are built on Debian: the libraries are its source packages"
if [ $# = 0 ]; then
    scripts/wheel.sh "$(uname -m)"
    missing=$(missing_tools "$(other_arch)")
    if [ -n "$missing" ]; then
        say "no wheel for $(other_arch): that needs  apt-get install$missing"
    else
        scripts/wheel.sh "$(other_arch)"
    fi
    exit
fi
if [ "$1" = sources ]; then
    scripts/setup.sh wheel
    fetch_sources
    exit
fi
if [ "$1" = missing ]; then
    missing_tools "$2" "and test"
    exit
fi
ARCH=$1
DEBIAN=$(debian_arch "$ARCH")
POLICY=manylinux_2_31_$ARCH
LIMIT_MB=13
OUT=$WORK/$ARCH
SYSROOT=$ROOT/build/sysroot-$DEBIAN-bullseye
missing=$(missing_tools "$ARCH")
[ -z "$missing" ] || die "to build for $ARCH on $(uname -m):  apt-get install$missing"

# What Meson must know to build for the target: $1 is the kind of file, `native` or `cross`.
machine_file() {
    local launcher headers wrapper=
    # The program prints its completion scripts during the build.
    if [ "$1" = cross ]; then wrapper="exe_wrapper = ['qemu-$ARCH', '-cpu', '$(emulated_cpu "$ARCH")', '-L', '$SYSROOT']"; fi
    launcher=$(command -v ccache || true)
    headers=$(sysroot_headers "$ARCH" "$SYSROOT" | sed "s/.*/, '&'/" | tr -d '\n')
    cat <<END
[binaries]
c = [${launcher:+'$launcher', }'$ARCH-linux-gnu-gcc']
ar = '$ARCH-linux-gnu-ar'
strip = '$ARCH-linux-gnu-strip'
pkg-config = 'pkg-config'
$wrapper

[built-in options]
c_args = ['--sysroot=$SYSROOT', '-ffunction-sections', '-fdata-sections', '-fstack-protector-strong',
    '-ffile-prefix-map=$ROOT=.', '-I$OUT/python-headers'$headers]
# A compiler looks for the C library beside itself before it looks into the sysroot, unless -B names the place. The
# libraries' names stay inside, so that a process may load others' copies of the same libraries.
c_link_args = ['--sysroot=$SYSROOT', '-B$SYSROOT/usr/lib/$ARCH-linux-gnu', '-Wl,--exclude-libs,ALL', '-Wl,--gc-sections', '-Wl,-s', '-Wl,-z,relro,-z,now',
    '-static-libgcc']
prefer_static = true

[properties]
pkg_config_libdir = '$OUT/prefix/lib/pkgconfig'
END
    if [ "$1" = cross ]; then
        cat <<END
needs_exe_wrapper = true

[host_machine]
system = 'linux'
cpu_family = '$ARCH'
cpu = '$ARCH'
endian = 'little'
END
    fi
}

# Debian's Python.h includes a file beside the other headers of the system, which the sysroot hides. The one of the
# other architecture is not there; this machine's serves, since the stable ABI is the same for both.
python_headers() {
    rm -rf "$OUT/python-headers"
    mkdir -p "$OUT/python-headers"
    "$VENV/bin/python" - "$OUT/python-headers" "$ARCH" <<'END'
import pathlib, re, shutil, sys, sysconfig
include = pathlib.Path(sysconfig.get_paths()["include"])
for name in re.findall(r"include <([^>]+/pyconfig\.h)>", (include / "pyconfig.h").read_text()):
    source = include.parent / name
    if name.startswith(f"{sys.argv[2]}-linux-gnu/") and not source.exists():
        source = include.parent / sysconfig.get_config_var("MULTIARCH") / name.partition("/")[2]
    if source.exists():
        target = pathlib.Path(sys.argv[1], name)
        target.parent.mkdir(parents=True)
        shutil.copy(source, target)
END
}

build_wheel() {
    local kind=native option
    local -a settings=()
    for option in webp tiff uring deflate zstd hdf5 lmdb audio curl; do
        settings+=("--config-setting=setup-args=-D$option=enabled")
    done
    if [ "$ARCH" != "$(uname -m)" ]; then
        kind=cross
    fi
    machine_file $kind >"$OUT/machine.ini"
    python_headers
    # Meson reads machine files once: a build folder made with another one is made anew.
    if ! stamp_is "$OUT/.stamp-machine" "$(cat "$OUT/machine.ini" "$OUT"/stamps/* | sha256sum)"; then rm -rf "$OUT/stoker"; fi
    rm -rf "$OUT/raw"
    # The platform is for the wheel's name. uv must not remember it: it would take this interpreter for the other
    # architecture's when it installs packages.
    _PYTHON_HOST_PLATFORM=linux-$ARCH PATH="$VENV/bin:$PATH" PKG_CONFIG_LIBDIR=$OUT/prefix/lib/pkgconfig PKG_CONFIG_PATH='' \
        uv build --no-cache --quiet --wheel --no-build-isolation --python "$VENV/bin/python" \
        --out-dir "$OUT/raw" --config-setting="build-dir=$OUT/stoker" \
        --config-setting="setup-args=--$kind-file=$OUT/machine.ini" "${settings[@]}" .
    stamp_set "$OUT/.stamp-machine" "$(cat "$OUT/machine.ini" "$OUT"/stamps/* | sha256sum)"
    grep -h 'CUDA kernels' "$OUT/stoker/meson-logs/meson-log.txt" | tail -n 1
}

# Checks that the wheel keeps to the policy and names it so; adds the licences and the bill of materials.
finish_wheel() {
    rm -rf "$OUT/repaired"
    # It accepts the names of policies for the machine it runs on only, so it is told of another machine.
    "$VENV/bin/python" -c 'import platform, sys
machine = sys.argv.pop(1)
platform.machine = lambda: machine
from auditwheel.main import main
sys.exit(main())' "$ARCH" repair --patcher none --plat "$POLICY" --only-plat -w "$OUT/repaired" "$OUT"/raw/stoker-*.whl \
        2>"$OUT/audit.log" || { cat "$OUT/audit.log" >&2; die "auditwheel refuses the wheel"; }
    rm -f "$DIST"/stoker-*-"$POLICY".whl
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) "$VENV/bin/python" packaging/finish_wheel.py "$OUT"/repaired/stoker-*.whl \
        "$WORK/sources/versions.json" "$OUT/source" "$DIST"
}

check() {
    local wheel size
    wheel=$(echo "$DIST"/stoker-*-"$POLICY".whl)
    "$VENV/bin/twine" check --strict "$DIST"/stoker-*.tar.gz "$wheel"
    "$VENV/bin/auditwheel" show --json "$wheel" >"$OUT/audit.json"
    "$VENV/bin/python" - "$OUT/audit.json" "$POLICY" <<'END'
import json, sys
with open(sys.argv[1]) as file:
    found = json.load(file)
if found["overall_tag"] != sys.argv[2] or found["external_libs"]:
    sys.exit(f"stoker: this is no wheel for {sys.argv[2]}: {json.dumps(found, indent=1)}")
END
    size=$(stat -c %s "$wheel")
    [ "$size" -le $((LIMIT_MB * 1000000)) ] || die "$wheel has $size bytes: more than $LIMIT_MB MB"
    say "$wheel: $((size / 1000)) kB, $POLICY"
}

scripts/setup.sh cuda wheel
mkdir -p "$OUT" "$DIST"
SUITE=bullseye scripts/sysroot.sh $DEBIAN libc6-dev
fetch_sources
say "building the libraries for $ARCH"
packaging/build_libraries.sh "$ARCH" "$SYSROOT" "$WORK/sources" "$OUT"
say "building the sdist"
rm -f "$DIST"/stoker-*.tar.gz
PATH="$VENV/bin:$PATH" uv build --quiet --sdist --no-build-isolation --python "$VENV/bin/python" --out-dir "$DIST" .
if [ -n "${STOKER_URL:-}" ]; then "$VENV/bin/python" packaging/addresses.py sdist "$STOKER_URL" "$DIST"/stoker-*.tar.gz; fi
say "building the wheel"
build_wheel
finish_wheel
check
