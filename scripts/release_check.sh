#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the sdist and the wheels and checks them as they would be released: what PyPI would show, and each wheel in bare
# Debian systems. As root, for the chroots; uploads nothing.
#   scripts/release_check.sh [ARCH...]     default: this machine's architecture, and the other one if its tools are there
# With STOKER_URL=https://github.com/OWNER/NAME they are what a release uploads, in dist/. Without it a stand-in takes its
# place, and they are in build/release-check.
source "$(dirname "$0")/common.sh"
if [ -z "${STOKER_URL:-}" ]; then
    STOKER_URL=https://github.com/example/stoker
    DIST=build/release-check
fi
export STOKER_URL DIST=${DIST:-dist}
python3 packaging/addresses.py check "$STOKER_URL"
[ "$(id -u)" = 0 ] || die "the wheels are tested in chroots: run make release-check as root"

# The architectures whose wheels can be built and tested here.
possible() {
    local missing
    uname -m
    missing=$(scripts/wheel.sh missing "$(other_arch)")
    if [ -z "$missing" ]; then
        other_arch
    else
        say "not checked: the wheel for $(other_arch). That needs  apt-get install$missing" >&2
    fi
}

ARCHS=("$@")
[ ${#ARCHS[@]} -gt 0 ] || mapfile -t ARCHS < <(possible)
scripts/build.sh wheel
rm -f "$DIST"/stoker-*
for arch in "${ARCHS[@]}"; do scripts/wheel.sh "$arch"; done
FILES=("$DIST"/stoker-*.tar.gz "$DIST"/stoker-*.whl)
status=0
say "what PyPI would show"
(
    metadata() { "$VENV/bin/python" packaging/check_metadata.py "$1" "$STOKER_URL" "${FILES[@]}"; }
    tap_check "sdist and wheels say the same of the project, and so would a build of the sdist" metadata equal
    tap_check "every link of the description is absolute, and leads to a file of the release" metadata links
    tap_check "PyPI knows every classifier" metadata accepted
    tap_done
) & # in the background, since bash ignores `set -e` in what is before `||`
wait $! || status=1
for arch in "${ARCHS[@]}"; do
    say "the wheel for $arch in bare systems"
    scripts/test_wheel.sh "$arch" || status=1
done
[ $status = 0 ] || die "not ready for a release: see the lines that begin with 'not ok'"
say "checked: $(cd "$DIST" && echo stoker-*.tar.gz stoker-*.whl), in $DIST"
