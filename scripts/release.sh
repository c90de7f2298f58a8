#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds and checks what a release uploads, and uploads nothing. Refuses to work without the repository's address, a tree
# that is not committed, a version that the header or the changelog does not have, one that is not newer than those
# released, documents that deny the release, and a bundled library of which Debian has a newer version that could not be
# fetched.
#   make release STOKER_URL=https://github.com/OWNER/NAME
#   ACCEPT_OLD='NAME=VERSION ...' make release ...     bundles these libraries in these versions nevertheless
source "$(dirname "$0")/common.sh"
VERSION=$(sed -n "s/^ *version: '\([0-9.]*\)',$/\1/p" meson.build | head -n 1)

header_version() { sed -n 's/^#define STOKER_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' include/stoker/stoker.h | paste -sd .; }

# The newest version that has a tag, or nothing.
released() { git tag --list 'v[0-9]*' | sed -n 's/^v\([0-9.]*\)$/\1/p' | sort -V | tail -n 1; }

ready() {
    local changes newest denied
    python3 packaging/addresses.py check "${STOKER_URL:-}"
    [ -n "$VERSION" ] || die "meson.build states no version"
    changes=$(git status --porcelain)
    [ -z "$changes" ] || die "the tree has changes that are not committed:
$changes"
    [ "$(header_version)" = "$VERSION" ] ||
        die "meson.build has version $VERSION, but include/stoker/stoker.h has $(header_version): make them equal"
    newest=$(released)
    [ "$newest" != "$VERSION" ] || die "the tag v$VERSION exists: set the next version in meson.build and stoker.h"
    [ "$(printf '%s\n' "$newest" "$VERSION" | sort -V | tail -n 1)" = "$VERSION" ] ||
        die "version $VERSION is older than the tag v$newest: set the next version in meson.build and stoker.h"
    grep -qE "^## ${VERSION//./\\.} - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
        die "CHANGELOG.md has no section '## $VERSION - YYYY-MM-DD'"
    if grep -qi '^## Unreleased' CHANGELOG.md; then
        die "CHANGELOG.md still has an 'Unreleased' section: move it into '## $VERSION'"
    fi
    denied=$(git grep -liE '(not|no release)( yet)? on PyPI' -- README.md docs || true)
    [ -z "$denied" ] || die "these still say that there is no release on PyPI:" $denied
    [ "$(id -u)" = 0 ] || die "the wheels are tested in chroots: run make release as root"
}

# What wheel.sh writes down of a library that it could not fetch in its newest version.
up_to_date() {
    python3 - build/wheel/sources/versions.json "${ACCEPT_OLD:-}" <<'END_PYTHON'
import json, sys
with open(sys.argv[1]) as file:
    old = {f"{name}={about['version']}": about["newer"] for name, about in json.load(file).items() if "newer" in about}
for bundled, newer in old.items():
    print(f"stoker: the wheels would have {bundled}, but Debian has {newer}, which its mirror did not deliver", file=sys.stderr)
if set(old) - set(sys.argv[2].split()):
    sys.exit(f"stoker: wait for the mirror, or accept that:  ACCEPT_OLD='{' '.join(old)}' make release ...")
END_PYTHON
}

ready
scripts/setup.sh wheel release
rm -rf dist build/wheel/sources/versions.json # today's versions of the libraries, not yesterday's
scripts/wheel.sh sources
up_to_date
DIST=dist scripts/release_check.sh x86_64 aarch64
(cd dist && sha256sum stoker-"$VERSION"* >SHA256SUMS && cat SHA256SUMS)
say "ready: git tag -a v$VERSION -m 'Stoker $VERSION', then upload dist/stoker-*.tar.gz and dist/stoker-*.whl"
