# SPDX-License-Identifier: Apache-2.0
"""What is packed: the sdist has every file, a build without its libraries names them all, and the wheel's bill of
materials is complete. The wheel itself is tested by scripts/test_wheel.sh, releases by test_release.py."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import stoker

ROOT = Path(__file__).resolve().parents[2]
BESIDE = Path(sys.executable).parent
LIBRARIES = {  # Debian's package: pkg-config's name
    "libjpeg-dev": "libjpeg", "libspng-dev": "spng or libpng", "zlib1g-dev": "zlib", "libwebp-dev": "libwebp",
    "libtiff-dev": "libtiff-4 >=4.5", "liburing-dev": "liburing", "libdeflate-dev": "libdeflate", "libzstd-dev": "libzstd",
    "libhdf5-dev": "hdf5", "liblmdb-dev": "lmdb", "libcurl4-openssl-dev": "libcurl >=7.86", "libsndfile1-dev": "sndfile",
}  # fmt: skip
needs_git = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no git checkout")


def run(*command, cwd=ROOT, **environment):
    path = f"{BESIDE}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**os.environ, "PATH": path, **environment}, capture_output=True,
        text=True, timeout=600, check=False,
    )  # fmt: skip


def setup(folder, *options, **environment):
    """What `meson setup` says, which is what `pip install .` shows."""
    got = run(BESIDE / "meson", "setup", folder, *options, **environment)
    return got.returncode, got.stdout + got.stderr


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- what pip installs --------------------------------------------------------------------------


def test_man_page_and_completions_are_beside_the_program():
    installed = {str(file): file.locate().resolve() for file in importlib.metadata.files("stoker")}
    share = (BESIDE.parent / "share").resolve()
    assert share / "man/man1/stoker.1" in installed.values(), sorted(installed)
    assert (share / "man/man1/stoker.1").read_text() == (ROOT / "docs/man/stoker.1").read_text()
    for shell, name in load("check_installed").PAGES.items():
        assert share / name in installed.values()
        assert (share / name).read_text() == run(BESIDE / "stoker", "completion", shell).stdout


@pytest.mark.skipif(not shutil.which("man"), reason="there is no man here")
def test_man_finds_the_page_by_path():
    found = run("man", "-w", "stoker", MANPATH="")
    assert found.stdout.strip() == str(BESIDE.parent / "share/man/man1/stoker.1"), found.stderr


# ---- a build without its libraries --------------------------------------------------------------


def test_all_that_is_missing_is_said_at_once(tmp_path):
    status, said = setup(tmp_path / "build", "-Dpython=disabled", PKG_CONFIG_LIBDIR=str(tmp_path), PKG_CONFIG_PATH="")
    assert status, said
    required, optional = re.search(r"missing: (.*)\.\nAlso missing, but not required: (.*)\.\n", said).groups()
    assert required == "libjpeg, spng or libpng, zlib"
    assert set(required.split(", ") + optional.split(", ")) == set(LIBRARIES.values())
    (apt,), (dnf,), (conda,) = (
        re.findall(rf"^ +{manager} (?:-c conda-forge )?(.*)$", said, re.MULTILINE)
        for manager in ("apt-get install", "dnf install", "conda install")
    )
    assert apt.split() == list(LIBRARIES)
    assert len(dnf.split()) == len(conda.split()) == len(LIBRARIES)


def test_what_is_asked_for_is_required(tmp_path):
    status, said = setup(
        tmp_path / "build", "-Dpython=disabled", "-Dtiff=enabled", "-Dcurl=disabled", PKG_CONFIG_LIBDIR=str(tmp_path),
        PKG_CONFIG_PATH="",
    )  # fmt: skip
    assert status and re.search(r"missing: libjpeg, spng or libpng, zlib, libtiff-4 >=4.5\.\n", said), said
    assert "libcurl" not in said


def test_a_build_goes_without_what_is_not_required(tmp_path):
    script = tmp_path / "pkg-config"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *sndfile*|*lmdb*) exit 1 ;; esac\nexec {shutil.which("pkg-config")} "$@"\n'
    )
    script.chmod(0o755)
    status, said = setup(tmp_path / "build", "-Dpython=disabled", "-Dcuda=disabled", PKG_CONFIG=str(script))
    assert status == 0, said
    assert "built without lmdb, sndfile" in said
    assert re.search(r"apt-get install liblmdb-dev libsndfile1-dev$", said, re.MULTILINE), said


# ---- versions and files -------------------------------------------------------------------------


def test_the_version_is_mesons():
    got = run(BESIDE / "meson", "introspect", "--projectinfo", "meson.build")
    assert json.loads(got.stdout)["version"] == stoker.__version__


@needs_git
def test_the_sdist_has_every_file(tmp_path):
    code = "import sys, mesonpy; print(mesonpy.build_sdist(sys.argv[1], {'setup-args': ['-Dcuda=disabled']}))"
    got = run(sys.executable, "-c", code, tmp_path)
    assert got.returncode == 0, got.stdout + got.stderr
    (path,) = tmp_path.glob("stoker-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = set(run("git", "ls-tree", "-r", "--name-only", "-z", "HEAD").stdout.strip("\0").split("\0"))
    assert tracked - names == set()
    assert names - tracked <= {"PKG-INFO"} | {str(parent) for name in tracked for parent in Path(name).parents} | {""}


# ---- the wheel's own files ----------------------------------------------------------------------


def test_every_bundled_library_has_a_recipe_and_a_licence():
    listed = json.loads((ROOT / "packaging" / "libraries.json").read_text())
    script = (ROOT / "packaging" / "build_libraries.sh").read_text()
    built = re.search(r"^ALL=\((.*?)\)$", script, re.MULTILINE | re.DOTALL)[1].split()
    assert sorted(built) == sorted(listed)
    for name, about in listed.items():
        assert f"\nbuild_{name.replace('-', '_')}() {{" in script, name
        assert about["licence"] and about["for"], name
        # Built before it: what changes in them is noticed.
        assert set(about.get("needs", ())) <= set(built[: built.index(name)]), name


def test_what_a_library_is_compiled_with_is_listed():
    """The packages that its pkg-config file requires; those, and no others, make it be built again."""
    listed = json.loads((ROOT / "packaging" / "libraries.json").read_text())
    script = (ROOT / "packaging" / "build_libraries.sh").read_text()
    recipes = {name: re.search(rf"^build_{name.replace('-', '_')}\(\) {{$(.*?)^}}$", script, re.M | re.S)[1] for name in listed}
    describes = {name: re.findall(r'^ *describe (\S+) (?:"[^"]*"|\S+)(?: "?([a-z0-9 ]*)"?)?', recipe, re.M) for name, recipe in recipes.items()}
    home = {package: name for name, found in describes.items() for package, _ in found}
    for name, found in describes.items():
        required = {home[package] for _, packages in found for package in packages.split()} - {name}
        assert required == set(listed[name].get("needs", ())), name


@pytest.mark.parametrize(("debian", "upstream"), [
    ("1:1.2.13.dfsg-1", "1.2.13"), ("1:1.3.dfsg+really1.3.1-1+deb13u1", "1.3.1"), ("1.5.4+dfsg2-5", "1.5.4"),
    ("1.10.8+repack1-1", "1.10.8"), ("1.4.2+ds-2", "1.4.2"), ("3.0.20-1~deb12u2", "3.0.20"), ("3.100-6", "3.100"),
])  # fmt: skip
def test_upstream_versions(debian, upstream):
    assert load("sources").upstream(debian) == upstream


@pytest.mark.skipif(not shutil.which("dpkg"), reason="there is no dpkg here, which compares versions")
def test_a_newer_version_that_cannot_be_fetched_is_reported(tmp_path, monkeypatch, capsys):
    sources = load("sources")
    listed = {"bookworm": ["1.9-1~deb12u2", "1.9-1~deb12u1"], "trixie": ["1.10-1"]}
    for version in ("1.9-1~deb12u1", "1.10-1"):
        (tmp_path / "fetched" / "x" / version).mkdir(parents=True)
        (tmp_path / "fetched" / "x" / version / "x.dsc").write_text(version)
    monkeypatch.setattr(sources, "versions", lambda package, suite: listed[suite["name"]])
    there = {"1.10-1"}
    monkeypatch.setattr(sources, "download", lambda package, version, *_: "" if version in there else "E: not found")
    suites = {name: {"name": name} for name in listed}
    got = sources.fetch("x", tmp_path, suites)
    assert (got["version"], got["suite"]) == ("1.10-1", "trixie") and "newer" not in got
    there.add("1.9-1~deb12u1")
    got = sources.fetch("x", tmp_path, suites)
    assert (got["version"], got["newer"]) == ("1.9-1~deb12u1", "1.9-1~deb12u2")
    # What apt-get said is kept; who builds a wheel is told the result in a line.
    assert "x 1.9-1~deb12u2 of bookworm: E: not found\n" in (tmp_path / "fetch.log").read_text()
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sources.subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(sources, "apt_state", lambda *_: {})
    monkeypatch.setattr(sources, "fetch", lambda package, *_: got if package == "xz-utils" else {"version": "1"})
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path), "http://mirror", "bookworm", "trixie"])
    sources.main()
    line = "stoker: the mirror lists liblzma 1.9-1~deb12u2 but lacks its files: taking 1.9-1~deb12u1\n"
    assert capsys.readouterr() == ("", line)


def test_licences_and_bill_of_materials_are_added(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    listed = json.loads((ROOT / "packaging" / "libraries.json").read_text())
    versions = {
        name: {"version": "1:2.3-4", "upstream": "2.3", "suite": "bookworm", "dsc": "x.dsc", "sha256": "0" * 64}
        for name in listed
    }
    for name in listed:
        (tmp_path / "source" / name / "debian").mkdir(parents=True)
        (tmp_path / "source" / name / "COPYING").write_text(f"of {name}")
        (tmp_path / "source" / name / "debian" / "copyright").write_text("Debian's")
    (tmp_path / "versions.json").write_text(json.dumps(versions))
    wheel = tmp_path / "stoker-1.2.3-cp311-abi3-manylinux_2_31_x86_64.whl"
    metadata = "Metadata-Version: 2.4\nName: stoker\nVersion: 1.2.3\nLicense-Expression: Apache-2.0\n\nText: none\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        program = zipfile.ZipInfo("stoker-1.2.3.data/scripts/stoker")
        program.external_attr = 0o100755 << 16
        archive.writestr(program, b"\x7fELF")
        archive.writestr("stoker-1.2.3.dist-info/METADATA", metadata)
        archive.writestr("stoker-1.2.3.dist-info/RECORD", "")
    for out in ("first", "second"):
        (tmp_path / out).mkdir()
        monkeypatch.setattr(sys, "argv", ["", wheel, tmp_path / "versions.json", tmp_path / "source", tmp_path / out])
        load("finish_wheel").main()
    finished = tmp_path / "first" / wheel.name
    assert finished.read_bytes() == (tmp_path / "second" / wheel.name).read_bytes()
    with zipfile.ZipFile(finished) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
        assert archive.getinfo("stoker-1.2.3.data/scripts/stoker").external_attr >> 16 == 0o100755
    info = "stoker-1.2.3.dist-info"
    head = files[f"{info}/METADATA"].decode().partition("\n\n")[0]
    assert "License-Expression: Apache-2.0 AND " in head and head.count("License-File: ") == 2 * len(listed)
    for name in re.findall("License-File: (.*)", head):
        assert f"{info}/licenses/{name}" in files
    rows = list(csv.reader(files[f"{info}/RECORD"].decode().splitlines()))
    assert {row[0] for row in rows} == set(files)
    for name, digest, size in rows[:-1]:
        want = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        assert (digest, size) == (f"sha256={want}", str(len(files[name])))
    bill = json.loads(files[f"{info}/sboms/stoker.cdx.json"])
    refs = {part["name"]: part["bom-ref"] for part in bill["components"]}
    uses = {part["ref"]: part["dependsOn"] for part in bill["dependencies"]}
    assert uses.keys() == {"pkg:pypi/stoker@1.2.3", *refs.values()}
    assert uses[refs["curl"]] == [refs["openssl"], refs["nghttp2"]] and uses[refs["zlib"]] == []
    assert bill["bomFormat"] == "CycloneDX" and {part["name"] for part in bill["components"]} == set(listed)
    assert all(part["purl"].startswith("pkg:deb/debian/") and part["version"] == "2.3" for part in bill["components"])
