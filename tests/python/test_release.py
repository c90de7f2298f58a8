# SPDX-License-Identifier: Apache-2.0
"""What make release refuses, and the addresses that it writes into what PyPI shows. What it builds and tests is tested by
scripts/release_check.sh."""

from __future__ import annotations

import email
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
URL = "https://github.com/some-one/feeder"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a release tests wheels in chroots, which only root may do")
in_checkout = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the addresses are written in an sdist already")


def run(*command, cwd, **environment):
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def addresses():
    spec = importlib.util.spec_from_file_location("addresses", ROOT / "packaging" / "addresses.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- the addresses ------------------------------------------------------------------------------


def targets(markdown):
    return re.findall(r"\]\(([^()\s]+)\)", markdown)


@in_checkout
def test_every_link_of_the_readme_is_absolute_and_leads_to_a_file(addresses):
    text = (ROOT / "README.md").read_text()
    written = addresses.readme(text, addresses.release(URL, "1.2.3"))
    raw = "https://raw.githubusercontent.com/some-one/feeder"
    leads = {f"{URL}/blob/v1.2.3/": 0, f"{URL}/tree/v1.2.3/": 0, f"{raw}/v1.2.3/": 0}
    for target in targets(written):
        assert target.startswith("https://"), target
        for start in leads:
            if target.startswith(start):
                leads[start] += 1
                assert (ROOT / target.removeprefix(start).partition("#")[0]).exists(), target
    pictures = len(re.findall(r"!\[[^\]]*\]\(", text))
    assert list(leads.values()) == [len(targets(text)) - pictures, 0, pictures] and pictures >= 2
    words = re.compile(r"\]\([^()\s]+\)")
    assert words.sub("]()", written) == words.sub("]()", text)  # nothing else changes


def test_which_links_are_written(addresses):
    text = """[a](docs/c.md#threads), [folder](docs/), [there](https://example.org/x), ![p](bench/results.svg),
[![p](bench/results.svg)](bench/RESULTS.md) `code`

```md
[in code](docs/c.md)
```
"""
    assert addresses.readme(text, addresses.release(URL, "1")) == f"""[a]({URL}/blob/v1/docs/c.md#threads), \
[folder]({URL}/tree/v1/docs), [there](https://example.org/x), \
![p](https://raw.githubusercontent.com/some-one/feeder/v1/bench/results.svg),
[![p](https://raw.githubusercontent.com/some-one/feeder/v1/bench/results.svg)]({URL}/blob/v1/bench/RESULTS.md) `code`

```md
[in code](docs/c.md)
```
"""


@pytest.mark.parametrize("target", ["docs/img/absent.svg", "../elsewhere.md", "/etc/passwd", "//example.org/x"])
def test_a_link_that_leads_nowhere_is_refused(addresses, target):
    with pytest.raises(SystemExit, match=re.escape(f"README.md links to {target}, which does not exist")):
        addresses.readme(f"[x]({target})", addresses.release(URL, "1"))


@pytest.mark.parametrize("url", [
    "http://github.com/a/b", "https://github.com/a", "https://github.com/a/b/", "https://github.com/a/b.git",
    "https://example.org/a/b", "https://github.com/a/b c", "https://github.com/a/b\nx",
])  # fmt: skip
def test_addresses_that_cannot_be_used(addresses, url):
    with pytest.raises(SystemExit, match="must have the form https://github.com/OWNER/NAME"):
        addresses.release(url, "1")


@in_checkout
def test_an_sdist_has_the_addresses_wherever_it_states_metadata(addresses, tmp_path):
    top = "stoker-1.2.3"
    files = {name: (ROOT / name).read_text() for name in ("pyproject.toml", "LICENSE")}
    files["README.md"] = "[the loader](docs/loader.md)\n"
    files["PKG-INFO"] = f"Metadata-Version: 2.4\nName: stoker\nVersion: 1.2.3\n\n{files['README.md']}"
    path = tmp_path / f"{top}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mode = len(text.encode()), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    addresses.sdist(URL, path)
    with tarfile.open(path) as archive:
        assert [entry.mode for entry in archive] == [0o644] * 4
        written = {name: archive.extractfile(f"{top}/{name}").read().decode() for name in files}
    link = f"[the loader]({URL}/blob/v1.2.3/docs/loader.md)\n"
    assert written["README.md"] == link and written["LICENSE"] == files["LICENSE"]
    info = email.message_from_string(written["PKG-INFO"])
    urls = tomllib.loads(written["pyproject.toml"])["project"]["urls"]
    assert info.get_payload() == link and info.get_all("Project-URL") == [f"{name}, {url}" for name, url in urls.items()]
    assert list(urls) == ["Homepage", "Documentation", "Source", "Changelog", "Issues"]
    assert urls["Changelog"] == f"{URL}/blob/v1.2.3/CHANGELOG.md" and urls["Homepage"] == URL
    for name in files:
        assert written[name].startswith(files[name].partition("[")[0].rstrip()), name


def test_an_sdist_that_has_urls_already_is_refused(addresses):
    with pytest.raises(SystemExit, match="has \\[project.urls\\] already"):
        addresses.pyproject("[project.urls]\n", addresses.release(URL, "1"))


# ---- what make release refuses ------------------------------------------------------------------


@pytest.fixture()
def repository(tmp_path):
    """One that may be released, with scripts in the place of those that build and test the wheel."""
    root = tmp_path / "tree"
    for folder in ("scripts/docs", "packaging", "docs", "include/stoker"):
        (root / folder).mkdir(parents=True)
    for name in ("scripts/release.sh", "scripts/common.sh", "scripts/docs/pages.py", "packaging/addresses.py"):
        shutil.copy(ROOT / name, root / name)
    fetched = "mkdir -p build/wheel/sources && cp ../versions.json build/wheel/sources"
    checked = """mkdir -p $DIST
for arch; do echo "checked $arch for $STOKER_URL"; echo x > $DIST/stoker-0.9.1-$arch.whl; done"""
    for name, text in (("setup.sh", "true"), ("wheel.sh", fetched), ("release_check.sh", checked)):
        (root / "scripts" / name).write_text(f"#!/bin/sh\n{text}\n")
        (root / "scripts" / name).chmod(0o755)
    set_versions(root, "0.9.1", "0.9.1")
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## 0.9.1 - 2026-01-01\n\n- Something.\n")
    (root / "README.md").write_text("# Stoker\n\npip install stoker\n")
    (root / ".gitignore").write_text("/dist/\n/build*/\n__pycache__/\n")
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
    got = run(root / "scripts" / "release.sh", cwd=root, **{"STOKER_URL": URL, **environment})
    return got.returncode, got.stdout + got.stderr


def assert_refused_at_once(root, *reasons, **environment):
    status, said = release(root, **environment)
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
        assert f"checked {arch} for {URL}\n" in said and f"stoker-0.9.1-{arch}.whl" in sums


@pytest.mark.parametrize(("url", "reason"), [
    ("", "needs the repository's address: make release STOKER_URL=https://github.com/OWNER/NAME"),
    ("https://example.org/x", "STOKER_URL is 'https://example.org/x': it must have the form"),
])  # fmt: skip
def test_a_release_without_its_address_is_refused(repository, url, reason):
    assert_refused_at_once(repository, reason, STOKER_URL=url)


@pytest.mark.parametrize(("name", "text"), [
    ("README.md", "(Not on PyPI yet. Until then: `make wheel`.)"), ("docs/install.md", "There is no release on PyPI yet."),
])  # fmt: skip
def test_documents_that_deny_the_release_are_not_released(repository, name, text):
    (repository / name).write_text(f"# Stoker\n\n{text}\n")
    commit(repository)
    assert_refused_at_once(repository, "still say that there is no release on PyPI", name)


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
    assert status == 0 and "Debian has 3.5-2" in said and "checked aarch64" in said, said
