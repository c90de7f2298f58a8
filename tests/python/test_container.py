# SPDX-License-Identifier: Apache-2.0
"""The Dockerfile and .devcontainer: files and stages that they name exist, and what runs in the image has its libraries."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import stoker._ext

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "Dockerfile").exists():
    pytest.skip("there is no Dockerfile beside the tests", allow_module_level=True)


class Stage(NamedTuple):
    base: str
    name: str
    steps: list[tuple[str, str]]  # instruction, arguments


def stages_of(text):
    """The stages of a Dockerfile, with comments left out and continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found = []
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        word, _, arguments = line.strip().partition(" ")
        assert word in ("FROM", "WORKDIR", "COPY", "RUN", "ARG", "ENV", "USER", "CMD"), line
        if word == "FROM":
            base, _, name = arguments.partition(" AS ")
            found.append(Stage(base, name, []))
        else:
            found[-1].steps.append((word, " ".join(arguments.split())))
    return found


STAGES = stages_of((ROOT / "Dockerfile").read_text())
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]


def steps(word):
    return [arguments for stage in STAGES for step, arguments in stage.steps if step == word]


def is_ignored(path):
    """Whether .dockerignore leaves out a path, or a folder that it is in."""
    parts = path.split("/")
    wholes = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    return any(
        fnmatch.fnmatchcase(part if pattern.startswith("**/") else whole, pattern.removeprefix("**/"))
        and whole.count("/") in (pattern.count("/"), whole.count("/") if pattern.startswith("**/") else -1)
        for pattern in IGNORED for part, whole in zip(parts, wholes, strict=True))  # fmt: skip


def test_stages_name_each_other():
    known = []
    for stage in STAGES:
        assert stage.base in known or re.fullmatch(r"debian:12(-slim)?", stage.base), stage.base
        for step, arguments in stage.steps:
            source = re.match(r"--from=(\S+)", arguments)
            assert step != "COPY" or source is None or source[1] in known, arguments
        known.append(stage.name)
    assert known == ["build", "package", ""]


def test_copied_files_exist_and_are_not_ignored():
    copied = [path for step in steps("COPY") if not step.startswith("--from=") for path in step.split()[:-1]]
    assert len(copied) >= 3
    for path in copied:
        assert (ROOT / path).exists() and (path == "." or not is_ignored(path)), path


def test_what_the_build_reads_is_in_the_context():
    """All that the package is made from, as scripts/build.sh lists it; and nothing that was built on this machine."""
    listed = re.search(r"find (meson\.build.*?)\\\n\s+-type f", (ROOT / "scripts/build.sh").read_text(), re.S)[1].split()
    assert len(listed) > 8
    for name in listed:
        assert (ROOT / name).exists() and not is_ignored(name), name
        for path in (ROOT / name).rglob("*.*"):
            if "__pycache__" not in path.parts:
                assert not is_ignored(path.relative_to(ROOT).as_posix()), path
    for name in (".git/config", ".venv/bin/python", "build/package/build.ninja", "python/stoker/__pycache__/a.pyc"):
        assert is_ignored(name), name


def test_scripts_that_it_runs_exist_and_know_their_arguments():
    runs = "\n".join(steps("RUN"))
    called = re.findall(r"(scripts/\w+\.sh)((?: \w+)*)", runs)
    assert {script for script, _ in called} == {"scripts/setup.sh", "scripts/build.sh"}
    setup = (ROOT / "scripts/setup.sh").read_text()
    for script, groups in called:
        assert (ROOT / script).stat().st_mode & 0o111, script
        for group in groups.split():
            assert f"wanted {group}" in setup, group
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^demo: .*scripts/build.sh torch && .venv/bin/stoker demo$", makefile, re.M)
    assert json.loads(steps("CMD")[-1]) == ["stoker", "demo"]


def test_it_keeps_to_good_practice():
    final = STAGES[-1]
    assert [arguments for step, arguments in final.steps if step == "USER"][-1] != "root"
    for stage in STAGES:
        for step, arguments in stage.steps:
            if step == "WORKDIR":
                assert arguments.startswith("/")
            if step == "RUN":
                assert not re.search(r"\b(sudo|cd)\b|\|(?!\|)\s*\w+ *$", arguments), arguments
                for install in re.findall(r"apt-get install[^&]*", arguments):
                    assert "-y" in install and "--no-install-recommends" in install
                    assert "rm -rf /var/lib/apt/lists/*" in arguments and "apt-get update" in arguments
    assert "://" not in (ROOT / "Dockerfile").read_text()
    # setup.sh needs no other file of the tree before the sources are copied.
    before = next(stage for stage in STAGES if stage.name == "build")
    copied = [step.split()[:-1] for word, step in before.steps if word == "COPY"]
    sourced = set(re.findall(r"\b(\w+\.sh)\b", (ROOT / "scripts/setup.sh").read_text()))
    assert {f"scripts/{name}" for name in sourced} <= {path for paths in copied for path in paths}


def test_runtime_image_installs_the_libraries_that_the_package_is_linked_with():
    release = Path("/etc/os-release")
    if not shutil.which("dpkg") or 'VERSION_ID="12"' not in (release.read_text() if release.exists() else ""):
        pytest.skip("which package a library is in is known on Debian 12")
    program = Path(sys.executable).parent / "stoker"
    installed = set(re.search(r"apt-get install ([^&]*)", STAGES[-1].steps[0][1])[1].split())
    needed = set()
    for path in (program, stoker._ext.__file__):
        linked = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        direct = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True).stdout
        for name in re.findall(r"NEEDED\s+(\S+)", direct):
            place = re.search(rf"^\s*{re.escape(name)} => (\S+)", linked, re.M)
            if place is None:
                continue  # the loader itself
            bare = place[1].removeprefix("/usr")  # packages say /lib or /usr/lib, whatever the loader says
            found = subprocess.run(["dpkg", "-S", bare, f"/usr{bare}"], capture_output=True, text=True, check=False)
            owners = set(re.findall(r"^(\S+?)(?::\w+)?: ", found.stdout, re.M))
            assert len(owners) == 1, (name, found.stdout, found.stderr)
            needed |= owners
    assert len(needed) > 5
    assert needed - {"libc6"} <= installed


def test_devcontainer_uses_the_build_stage():
    settings = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    build = settings["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (ROOT / ".devcontainer" / build["context"]).resolve() == ROOT
    assert build["target"] in [stage.name for stage in STAGES]
    assert settings["postCreateCommand"] == "make" and "all" in (ROOT / "Makefile").read_text()
