# SPDX-License-Identifier: Apache-2.0
# The user's commands. Meson builds everything; scripts/ does the work.
#   make PYTHON=/path/to/python   uses that interpreter, and its torch if it has one
export PYTHON

all:   ; @scripts/build.sh
demo:  ; @scripts/build.sh torch && .venv/bin/stoker demo
test:  ; @scripts/test.sh
bench: ; @scripts/bench.sh
soak:  ; @scripts/soak.sh
faults: ; @scripts/faults.sh
clean: ; rm -rf build .venv
wheel: ; @scripts/wheel.sh
release: ; @scripts/release.sh

.PHONY: all demo test bench soak faults clean wheel release
