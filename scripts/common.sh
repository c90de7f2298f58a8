# SPDX-License-Identifier: Apache-2.0
# What the scripts share; sourced, not run. They stand in the root of the tree afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
VENV=$ROOT/.venv
export UV_NO_PROGRESS=1 PIP_DISABLE_PIP_VERSION_CHECK=1
export CCACHE_DEPEND=1 # the compiler says what a file includes: a miss then costs no more than compiling

say() { printf '== %s\n' "$*"; }
die() { printf 'stoker: %s\n' "$*" >&2; exit 1; }

# The CPUs this process may use, for builds.
jobs() { nproc; }

# uv and meson as installed in the virtual environment.
uv() { "$VENV/bin/uv" "$@"; }
meson() { PATH="$VENV/bin:$PATH" "$VENV/bin/meson" "$@"; }

# Libraries that the engine uses: Debian's package, pkg-config's name, what for.
LIBRARIES="libjpeg62-turbo-dev libjpeg JPEG
libspng-dev spng PNG
libwebp-dev libwebp WebP
libtiff-dev libtiff-4 TIFF
liburing-dev liburing reads in batches by io_uring
zlib1g-dev zlib gzip and zip
libdeflate-dev libdeflate the same, faster
libzstd-dev libzstd zstd
libhdf5-dev hdf5 HDF5
liblmdb-dev lmdb LMDB
libcurl4-openssl-dev libcurl datasets by URL
libsndfile1-dev sndfile sounds"
library_packages() { cut -d' ' -f1 <<<"$LIBRARIES"; }

# Debian's mirror as this machine's apt knows it.
debian_mirror() {
    local known
    known=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null)
    grep -m1 '/debian/$' <<<"$known" || die "apt knows no Debian mirror here"
}

# The architecture that this machine's cross compiler and qemu are for, Debian's name of an architecture, and the CPU
# that qemu emulates for it: AVX-512 is not among them, and some features only slow the emulation down.
other_arch() {
    case $(uname -m) in
    x86_64) echo aarch64 ;;
    aarch64) echo x86_64 ;;
    *) die "no other architecture is known for $(uname -m)" ;;
    esac
}
debian_arch() {
    case $1 in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) die "neither x86_64 nor aarch64: $1" ;;
    esac
}
emulated_cpu() {
    case $1 in
    x86_64) echo max ;;
    aarch64) echo neoverse-n1 ;;
    esac
}

# The options by which a compiler for architecture $1 finds the headers of sysroot $2 first. Debian's cross compilers
# have headers of the C library beside themselves, and would take those.
sysroot_headers() {
    if [ "$1" = "$(uname -m)" ]; then return; fi
    local folder
    for folder in "$("$1-linux-gnu-gcc" -print-file-name=include)" "$2/usr/include/$1-linux-gnu" "$2/usr/include"; do
        echo "-isystem$folder"
    done
}

# A stamp holds what a step was done for; the step is left out while that is unchanged.
stamp_is() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }
stamp_set() { mkdir -p "$(dirname "$1")" && printf '%s\n' "$2" >"$1"; }

# Sets up build directory $1 with the meson options that follow, once for each set of options; a build
# directory that meson can no longer use (a moved tree, another compiler) is made anew.
meson_setup() {
    local dir=$1; shift
    local key="$(meson --version) $(cc --version | head -n1) $ROOT $*"
    if stamp_is "$dir/.stamp" "$key" && [ -f "$dir/build.ninja" ]; then return; fi
    rm -rf "$dir"
    mkdir -p "$dir"
    if ! meson setup "$dir" "$@" >"$dir/setup.log" 2>&1; then
        cat "$dir/setup.log"
        return 1
    fi
    stamp_set "$dir/.stamp" "$key"
}

# The tests of build folder $1 without those that match $WITHOUT, or the programs that they need: $2 is `tests` or
# `programs`.
tests_of() { meson introspect "$1" --targets --tests | scripts/test_programs.py "$2" "${WITHOUT:-}"; }

# Builds the C tests in build/test-$1, and what they need, with the meson options that follow. Their kernels are
# never run, so one generation of GPUs is enough. `c` is also the build that scripts/test_install.sh installs: all of it.
build_tests() {
    local layer=$1 programs=()
    shift
    if [ "$layer" = c ]; then set -- --prefix="$ROOT/build/install/root" --libdir=lib "$@"; fi
    meson_setup "build/test-$layer" -Dtests=true -Dpython=disabled -Dgpu_generations=90 "$@" || return
    if [ "$layer" != c ]; then
        PATH="$VENV/bin:$PATH" ninja -C "build/test-$layer" build.ninja || return # a meson.build may have changed
        mapfile -t programs < <(tests_of "build/test-$layer" programs)
    fi
    meson compile -C "build/test-$layer" -j "$(jobs)" "${programs[@]}"
}

# Runs grep with these arguments, and fails if it finds a line, which it shows, or cannot look. In the middle of a
# function `! grep` would fail nothing: `set -e` ignores what `!` negates.
no_line() {
    local status=0
    grep "$@" || status=$?
    [ $status = 1 ]
}

# A check of a script that speaks TAP: what must hold, then the command. `tap_done` ends the script.
tap_checks=0 tap_failed=0
tap_check() {
    local what=$1 log=$ROOT/build/tap-check.$$.log
    shift
    tap_checks=$((tap_checks + 1))
    # In the background, since bash ignores `set -e` in what an `if` runs. What is left of that: a check inside of
    # `( ... ) || ...`, where every command but its last could fail unseen.
    (set -e; false; true) &
    if wait $!; then die "tap_check in a place where bash ignores set -e: $what"; fi
    (set -e; "$@") >"$log" 2>&1 &
    if wait $!; then
        echo "ok $tap_checks - $what"
    else
        echo "not ok $tap_checks - $what"
        tail -n 30 "$log" | sed 's/^/#   /'
        tap_failed=1
    fi
    rm -f "$log"
}
tap_skip() {
    tap_checks=$((tap_checks + 1))
    echo "ok $tap_checks - $1 # SKIP $2"
}
tap_done() {
    echo "1..$tap_checks"
    exit $tap_failed
}
