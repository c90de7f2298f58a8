#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation site into build/site: sets up, builds the package, runs every Python block and both notebooks,
# generates the reference, and checks all links. Needs no network once the packages are there.
#   scripts/docs.sh [--no-run]     without running the examples
source "$(dirname "$0")/common.sh"
exec </dev/null
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$ROOT/build/bytecode

scripts/build.sh torch docs
say "gathering the pages"
PATH="$VENV/bin:$PATH" "$VENV/bin/python" scripts/docs/assemble.py build/docs "$@"
say "building the site"
rm -rf build/site
NO_MKDOCS_2_WARNING=1 "$VENV/bin/python" -m mkdocs build --quiet --strict -f build/docs/mkdocs.yml -d "$ROOT/build/site"
"$VENV/bin/python" scripts/docs/links.py build/site
say "done: build/site/index.html"
