#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds and checks what a release uploads, and uploads nothing. Refuses a tree that is not committed, a changelog
# without this version, and a version that was released before.
source "$(dirname "$0")/common.sh"
VERSION=$(sed -n "s/^ *version: '\([0-9.]*\)',$/\1/p" meson.build | head -n 1)

ready() {
    local changes
    [ -n "$VERSION" ] || die "meson.build states no version"
    changes=$(git status --porcelain)
    [ -z "$changes" ] || die "the tree has changes that are not committed:
$changes"
    if git rev-parse --quiet --verify "refs/tags/v$VERSION" >/dev/null; then
        die "the tag v$VERSION exists: set the next version in meson.build"
    fi
    grep -qE "^## $VERSION( |$)" CHANGELOG.md || die "CHANGELOG.md has no section '## $VERSION'"
    if grep -qi '^## Unreleased' CHANGELOG.md; then
        die "CHANGELOG.md still has an 'Unreleased' section: move it into '## $VERSION'"
    fi
}

ready
rm -rf dist
for arch in x86_64 aarch64; do scripts/wheel.sh $arch; done
for arch in x86_64 aarch64; do scripts/test_wheel.sh $arch; done
(cd dist && sha256sum stoker-* >SHA256SUMS && cat SHA256SUMS)
say "ready: git tag -a v$VERSION -m 'Stoker $VERSION', then upload dist/stoker-*.tar.gz and dist/stoker-*.whl"
