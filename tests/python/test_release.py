# SPDX-License-Identifier: Apache-2.0
"""What make release refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a release tests wheels in chroots, which only root may do")


def run(*command, cwd, **environment):
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture()
def repository(tmp_path):
    """One that may be released, with scripts in the place of those that build and test the wheel."""
    root = tmp_path / "tree"
    for folder in ("scripts", "include/stoker"):
        (root / folder).mkdir(parents=True)
    for name in ("release.sh", "common.sh"):
        shutil.copy(ROOT / "scripts" / name, root / "scripts")
    built = """case $1 in
sources) mkdir -p build/wheel/sources && cp ../versions.json build/wheel/sources ;;
*) mkdir -p dist && echo x > dist/stoker-0.9.1-$1.whl ;;
esac"""
    for name, text in (("setup.sh", "true"), ("wheel.sh", built), ("test_wheel.sh", "echo tested $1")):
        (root / "scripts" / name).write_text(f"#!/bin/sh\n{text}\n")
        (root / "scripts" / name).chmod(0o755)
    set_versions(root, "0.9.1", "0.9.1")
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## 0.9.1 - 2026-01-01\n\n- Something.\n")
    (root / ".gitignore").write_text("/dist/\n/build*/\n")
    bundle(root, zlib={"version": "1.3-1"})
    run("git", "init", "-q", cwd=root)
    commit(root)
    return root


def set_versions(root, mesons, headers):
    (root / "meson.build").write_text(f"project('stoker', 'c',\n  version: '{mesons}',\n  license: 'x')\n")
    numbers = zip(("MAJOR", "MINOR", "PATCH"), headers.split("."), strict=True)
    header = "".join(f"#define STOKER_VERSION_{name} {number}\n" for name, number in numbers)
    (root / "include" / "stoker" / "stoker.h").write_text(header)


def bundle(root, **libraries):
    """The versions that wheel.sh will find."""
    root.with_name("versions.json").write_text(json.dumps(libraries))


def commit(root):
    run("git", "add", "-A", cwd=root)
    names = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    assert run("git", *names, "commit", "-qm", "x", cwd=root).returncode == 0


def release(root, **environment):
    got = run(root / "scripts" / "release.sh", cwd=root, **environment)
    return got.returncode, got.stdout + got.stderr


def assert_refused_at_once(root, *reasons):
    status, said = release(root)
    assert status and all(reason in said for reason in reasons), said
    assert not (root / "dist").exists()


@needs_root
def test_a_release_that_is_ready(repository):
    run("git", "tag", "v0.9.0", cwd=repository)
    run("git", "tag", "v0.10.0-trial", cwd=repository)
    status, said = release(repository)
    assert status == 0 and "git tag -a v0.9.1" in said, said
    sums = (repository / "dist" / "SHA256SUMS").read_text()
    for arch in ("x86_64", "aarch64"):
        assert f"tested {arch}" in said and f"stoker-0.9.1-{arch}.whl" in sums


def test_a_dirty_tree_is_not_released(repository):
    (repository / "new.c").write_text("int x;\n")
    assert_refused_at_once(repository, "not committed", "new.c")


@pytest.mark.parametrize(("text", "reason"), [
    ("## Unreleased\n\n- More.\n\n## 0.9.1 - 2026-01-01\n\n- Something.\n", "'Unreleased' section"),
    ("## 0.9.0 - 2026-01-01\n\n- Something.\n", "no section '## 0.9.1 - YYYY-MM-DD'"),
    ("## 0.9.1 - not yet released\n\n- Something.\n", "no section '## 0.9.1 - YYYY-MM-DD'"),
])  # fmt: skip
def test_an_unreleased_changelog_is_not_released(repository, text, reason):
    (repository / "CHANGELOG.md").write_text(f"# Changelog\n\n{text}")
    commit(repository)
    assert_refused_at_once(repository, reason)


def test_versions_that_differ_are_not_released(repository):
    set_versions(repository, "0.9.1", "0.9.0")
    commit(repository)
    assert_refused_at_once(repository, "meson.build has version 0.9.1", "stoker.h has 0.9.0")


@pytest.mark.parametrize(("tag", "reason"), [
    ("v0.9.1", "the tag v0.9.1 exists"), ("v0.10.0", "0.9.1 is older than the tag v0.10.0"),
])  # fmt: skip
def test_versions_only_rise(repository, tag, reason):
    run("git", "tag", tag, cwd=repository)
    assert_refused_at_once(repository, reason)


@needs_root
def test_an_old_library_is_released_only_if_accepted(repository):
    bundle(repository, zlib={"version": "1.3-1"}, openssl={"version": "3.5-1", "newer": "3.5-2"})
    for accepted in ("", "zlib=1.3-1", "openssl=3.4-1"):
        status, said = release(repository, ACCEPT_OLD=accepted)
        assert status and "Debian has 3.5-2" in said and "ACCEPT_OLD='openssl=3.5-1' make release" in said, said
        assert not (repository / "dist").exists()
    status, said = release(repository, ACCEPT_OLD="openssl=3.5-1")
    assert status == 0 and "Debian has 3.5-2" in said and "tested aarch64" in said, said
