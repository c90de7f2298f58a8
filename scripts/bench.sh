#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures Stoker against its peers; arguments go to bench/run.py.
source "$(dirname "$0")/common.sh"
scripts/build.sh torch bench
PATH="$VENV/bin:$PATH" exec "$VENV/bin/python" bench/run.py "$@"
