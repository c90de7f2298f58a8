#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs as users do, and uses what was installed: the C library through pkg-config, the Python package in
# a fresh environment. Speaks TAP. Needs scripts/build.sh to have run.
source "$(dirname "$0")/common.sh"
WORK=$ROOT/build/install
PREFIX=$WORK/root
IMAGES=$WORK/images

install_library() {
    build_tests c
    rm -rf "$PREFIX"
    meson install -C build/test-c --no-rebuild --quiet
    test -f "$PREFIX/include/stoker/stoker.h" -a -f "$PREFIX/share/man/man1/stoker.1"
    local file
    for file in bash-completion/completions/stoker.bash zsh/site-functions/_stoker fish/vendor_completions.d/stoker.fish; do
        grep -q stoker "$PREFIX/share/$file"
    done
}

flags() { PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig pkg-config "$@" stoker; }

shared_example() {
    cc -Wall -Wextra -Werror examples/c/load_folder.c -o "$WORK/load_folder" $(flags --cflags --libs)
    LD_LIBRARY_PATH=$PREFIX/lib "$WORK/load_folder" "$IMAGES" | grep -x '12 samples'
}

static_example() {
    local libs
    # Ours statically, the others as they are: what their own static libraries want is seldom installed.
    libs="$(flags --libs) $(pkg-config --libs $(flags --print-requires-private | awk '{print $1}')) -pthread -lm -ldl"
    cc examples/c/load_folder.c -o "$WORK/load_static" $(flags --cflags) "$PREFIX/lib/libstoker.a" ${libs//-lstoker/}
    "$WORK/load_static" "$IMAGES" | grep -x '12 samples'
}

readme_example() { # the commands of its README, as they stand there
    local there=$WORK/readme
    rm -rf "$there"
    mkdir -p "$there"
    ln -s "$ROOT/examples" "$there/examples"
    ln -s "$IMAGES" "$there/train"
    sed -n '/^```sh$/,/^```$/{//!p}' examples/c/README.md >"$there/commands"
    (cd "$there" && PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig LD_LIBRARY_PATH=$PREFIX/lib bash -e commands) | grep -x '12 samples'
}

absent_folder() { # an error is one sentence that names the folder, and exit status 1
    local status=0
    LD_LIBRARY_PATH=$PREFIX/lib "$WORK/load_folder" "$WORK/absent" 2>"$WORK/said" || status=$?
    [ $status = 1 ]
    [ "$(wc -l <"$WORK/said")" = 1 ]
    grep "$WORK/absent" "$WORK/said"
}

program() {
    "$PREFIX/bin/stoker" --version | grep -E '^stoker [0-9]+\.[0-9]+\.[0-9]+$'
    "$PREFIX/bin/stoker" bench "$IMAGES" --seconds 0.4 --workers 2 --batch 4
}

wheel() {
    rm -rf "$WORK/wheels" "$WORK/fresh" build/wheel-test
    # As deep as the folders of the other builds, so that ccache knows the paths in what it compiles. Its kernels are never
    # run, so one generation of GPUs is enough; scripts/build.sh compiles them all.
    uv build --quiet --wheel --python "$VENV/bin/python" --out-dir "$WORK/wheels" \
        --config-setting=build-dir=build/wheel-test --config-setting=setup-args=-Dgpu_generations=90 .
    ls "$WORK"/wheels/stoker-*-cp311-abi3-*.whl
}

nothing_but_the_module() { # the engine inside cannot meet another libstoker in the same process
    local names
    names=$(nm -D --defined-only "$WORK"/fresh/lib/python3*/site-packages/stoker/_ext*.so | awk '{print $3}')
    [ "$names" = PyInit__ext ]
}

demo_without_torch() { # nothing to compare with, and no Pillow to paint with: says so, and shows what there is
    cd "$WORK"
    XDG_CACHE_HOME=$WORK/cache "$WORK/fresh/bin/stoker" demo --images 24 --batch-size 8 --workers 2 >"$WORK/said" 2>&1
    grep 'Pillow is not installed' "$WORK/said"
    grep 'Stoker alone' "$WORK/said"
    grep -E '^images/s +[0-9]' "$WORK/said"
    no_line Traceback "$WORK/said"
    XDG_CACHE_HOME=$WORK/cache "$WORK/fresh/bin/stoker" demo --data "$IMAGES" --batch-size 4 --workers 1 | grep 'Stoker alone'
}

fresh_environment() {
    uv venv --quiet --python "$("$VENV/bin/python" -c 'import sys; print(sys._base_executable)')" "$WORK/fresh"
    uv pip install --quiet --python "$WORK/fresh/bin/python" "$WORK"/wheels/*.whl
    cd "$WORK" # not the tree: what is imported is what was installed
    "$WORK/fresh/bin/stoker" info
    "$WORK/fresh/bin/python" - "$IMAGES" <<'END'
import sys
import numpy
import stoker
from stoker import transforms as T

data = stoker.datasets.ImageFolder(sys.argv[1], transform=T.Compose([T.RandomResizedCrop(32), T.ToTensor()]))
batches = list(stoker.DataLoader(data, batch_size=5, shuffle=True))
assert [len(labels) for _, labels in batches] == [5, 5, 2], batches
assert all(isinstance(images, numpy.ndarray) and images.shape[1:] == (3, 32, 32) for images, _ in batches)
END
}

mkdir -p "$WORK"
"$VENV/bin/python" -c "from stoker.synth import make_folder; make_folder('$IMAGES', count=12, seed=3, classes=3)"
tap_check "meson install puts library, header, man page and completion in place" install_library
tap_check "an example builds and runs with pkg-config, shared" shared_example
tap_check "an example builds and runs with pkg-config, static" static_example
tap_check "the commands of its README" readme_example
tap_check "an absent folder is one sentence and exit status 1" absent_folder
tap_check "the installed program runs" program
tap_check "the wheel is abi3 for CPython 3.11 and newer" wheel
tap_check "pip install into a fresh environment works, without torch" fresh_environment
tap_check "the extension exports nothing but its entry point" nothing_but_the_module
tap_check "stoker demo runs without torch and Pillow, and says what is missing" demo_without_torch
tap_done
