#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds everything and installs it into .venv; arguments are groups for scripts/setup.sh.
source "$(dirname "$0")/common.sh"
scripts/setup.sh "$@"

# All that the installed package is made from.
sources_key() {
    {
        cat "$VENV/.stamp-python"
        find meson.build meson_options.txt pyproject.toml README.md LICENSE include src cli doctor docs/man python examples \
            -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum
    } | sha256sum | cut -d' ' -f1
}

key=$(sources_key)
if stamp_is build/.stamp-installed "$key" && "$VENV/bin/python" -c 'import stoker' 2>/dev/null; then
    exit 0
fi
say "building and installing into .venv"
# The build directory is kept, so that only what changed is built again.
PATH="$VENV/bin:$PATH" uv pip install --quiet --python "$VENV/bin/python" --no-build-isolation --no-deps \
    --reinstall-package stoker --config-settings build-dir=build/package .
"$VENV/bin/python" -c 'import stoker'
stamp_set build/.stamp-installed "$key"
say "done: .venv/bin/python -c 'import stoker' and .venv/bin/stoker --help"
