#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the planted faults; arguments go to tests/faults/run_faults.py. With --traceml, TraceML is fetched into an
# environment of its own, which uses the torch of .venv. With --stoker PATH nothing is built: that program is used, and
# the python3 of the path with its torch (and the package of $PYTHONPATH).
source "$(dirname "$0")/common.sh"
exec </dev/null
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$ROOT/build/bytecode
TRACEML=$ROOT/build/faults/traceml
if [[ " $* " == *" --stoker "* ]]; then
    exec python3 tests/faults/run_faults.py "$@"
fi
scripts/build.sh torch test
if [[ " $* " == *" --traceml "* ]] && [ ! -x "$TRACEML/bin/traceml" ]; then
    say "fetching TraceML into build/faults/traceml"
    uv venv --quiet --python "$VENV/bin/python" "$TRACEML"
    version=$(PYTHONPATH=tests/faults "$VENV/bin/python" -c 'from run_faults import TRACEML_VERSION as v; print(v)')
    # compiled now: its aggregator must be ready 15 s after its start
    uv pip install --quiet --compile-bytecode --python "$TRACEML/bin/python" "traceml-ai==$version"
    site='import sysconfig; print(sysconfig.get_path("purelib"))'
    "$VENV/bin/python" -c "$site" >"$("$TRACEML/bin/python" -c "$site")/borrowed-torch.pth"
fi
exec "$VENV/bin/python" tests/faults/run_faults.py "$@"
