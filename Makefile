# SPDX-License-Identifier: Apache-2.0
# The user's commands. Meson builds everything; scripts/ does the work.
#   make PYTHON=/path/to/python   uses that interpreter, and its torch if it has one
#   make release STOKER_URL=https://github.com/OWNER/NAME   writes the repository's address into what is released
export PYTHON STOKER_URL

all:   ; @scripts/build.sh
demo:  ; @scripts/build.sh torch && .venv/bin/stoker demo
test:  ; @scripts/test.sh
check: ; @STOKER_TEST_SHARE=20 WITHOUT='pipe/memory|soak/.*' scripts/test.sh checks c quick
bench: ; @scripts/bench.sh
.PHONY: docs
docs:  ; @scripts/docs.sh
soak:  ; @scripts/soak.sh
faults: ; @scripts/faults.sh
clean: ; rm -rf build .venv
wheel: ; @scripts/wheel.sh
release-check: ; @scripts/release_check.sh
release: ; @scripts/release.sh

.PHONY: all demo test check bench soak faults clean wheel release-check release
