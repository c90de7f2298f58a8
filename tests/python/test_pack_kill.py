# SPDX-License-Identifier: Apache-2.0
"""`stoker pack` killed at any moment: the same command goes on, and the end is as if nothing had been."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import picture
from packing import PROGRAM, READERS, archive, as_pixels, pack, stoker

COUNT = 6500  # an output of one piece is kept after each 1,000 samples
FORMATS = ["lmdb", "hdf5", "npy"]
OPTIONS = ["--on-error", "skip", "--workers", 2, "--quiet"]


BAD = {5, 999, 1000, 1001, 2500, *range(4000, 4300), *range(COUNT - 3, COUNT)}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """Small samples, of which some are bad: in the middle, just behind a keep, and the last ones."""
    return archive(tmp_path_factory.mktemp("kill") / "in.tar", COUNT, BAD, (40, 32))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*"))}


def assert_same(found: dict[str, bytes], wanted: dict[str, bytes]) -> None:
    """In few words: bytes of whole files are nothing to print."""
    assert sorted(found) == sorted(wanted)
    assert [name for name in found if found[name] != wanted[name]] == []


def killed_after(seconds: float, *arguments) -> bool:
    process = subprocess.Popen([str(PROGRAM), "pack", *map(str, arguments)], stdout=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def noted(out: Path) -> dict | None:
    """How far the manifest says it is."""
    path = out / "manifest.json"
    return json.loads(path.read_text()).get("under_way") if path.exists() else None


def killed_when_noted(*arguments, samples: int = 1, name: str) -> dict:
    """Kills it when so many samples are noted; once more if it was faster than we."""
    for _ in range(30):
        process = subprocess.Popen([str(PROGRAM), "pack", *map(str, arguments)], stderr=subprocess.DEVNULL)
        mark = None
        while process.poll() is None and not (mark and mark["samples"] >= samples):
            mark = noted(arguments[1])
        process.send_signal(signal.SIGKILL)
        if process.wait() == 2:
            pytest.skip(f"this build has no {name}")
        mark = noted(arguments[1])
        if mark and mark["samples"] >= samples:
            return mark
        shutil.rmtree(arguments[1])
    pytest.fail("it was always done before it could be killed")


@pytest.fixture(params=FORMATS)
def form(request, source, tmp_path):
    """The format, what an uninterrupted run writes, and how long it takes."""
    start = time.monotonic()
    got = stoker("pack", source, tmp_path / "whole", "--format", request.param, *OPTIONS)
    if got.returncode == 2:
        pytest.skip(f"this build has no {request.param}")
    assert got.returncode == 3, got.stderr
    return request.param, files(tmp_path / "whole"), time.monotonic() - start


def test_bad_samples_leave_no_gap(form, tmp_path):
    name, _, _ = form
    good = [i for i in range(COUNT) if i not in BAD]
    images = [np.asarray(picture(i, 40, 32)) for i in range(16)]
    found = list(READERS[name](tmp_path / "whole"))
    assert [int(number) for _, number in found] == good
    assert all(np.array_equal(as_pixels(image), images[i * 7 % 16]) for (image, _), i in zip(found, good, strict=True))


def test_killed_at_random_moments(form, source, tmp_path):
    name, whole, took = form
    dice = random.Random(name)
    out, kills, kept = tmp_path / "out", 0, 0
    arguments = [source, out, "--format", name, *OPTIONS]
    for _ in range(80):
        killed = killed_after(dice.uniform(0.05, 0.6) * took, *arguments)
        if not killed or '"complete": true' in files(out).get("manifest.json", b"").decode():
            if killed:  # right before it would have taken its lock away
                (out / ".stoker-pack-lock").unlink(missing_ok=True)
            assert_same(files(out), whole)
            shutil.rmtree(out)
            if kills >= 6:
                break
            kept = 0
            continue
        kills += 1
        for path in out.glob("[!.]*.[mhn]*"):  # what has its name is whole
            assert path.name == "manifest.json" or path.read_bytes() == whole[path.name]
        mark = noted(out)
        assert mark is None or mark["samples"] >= kept  # nothing that was kept is lost again
        kept = mark["samples"] if mark else 0
    assert kills >= 6 and not out.exists()


@pytest.mark.parametrize("samples", [1000, 5000])
def test_goes_on_where_it_was_kept(form, source, tmp_path, samples):
    """Waits for a mark, kills, and sees that what was done is not done again."""
    name, whole, _ = form
    out = tmp_path / "out"
    arguments = [source, out, "--format", name, *OPTIONS]
    mark = killed_when_noted(*arguments, samples=samples, name=name)
    got = pack(*[a for a in arguments if a != "--quiet"], code=3)
    done = next(line.split()[1] for line in got.stdout.splitlines() if line.startswith("resumed"))
    assert int(done.replace(",", "")) >= mark["positions"]
    assert_same(files(out), whole)


def test_nothing_is_noted_with_only_bad_samples_behind_it(tmp_path):
    """Who goes on learns what the samples are like from the first one."""
    source = archive(tmp_path / "in.tar", 8000, set(range(2000, 8000)))
    out = tmp_path / "out"
    process = subprocess.Popen([str(PROGRAM), "pack", *map(str, [source, out, "--format", "npy", *OPTIONS])])
    seen = set()
    while process.poll() is None:
        mark = noted(out)
        seen.add(mark["samples"] if mark else 0)
    assert process.returncode == 3 and seen <= {0, 1000}
    assert np.load(out / "cls.npy").tolist() == list(range(2000))


def test_lines_that_the_ledger_got_too_early(form, source, tmp_path):
    """As if killed between the ledger and the manifest."""
    name, whole, _ = form
    out = tmp_path / "out"
    arguments = [source, out, "--format", name, *OPTIONS]
    killed_when_noted(*arguments, samples=2000, name=name)
    with open(out / "bad_samples.jsonl", "a") as ledger:
        ledger.write('{"sample": 2500, "name": "x", "reason": "y"}\n')
    pack(*arguments, code=3)
    assert_same(files(out), whole)


def test_killed_between_the_names_of_two_files(source, tmp_path):
    """As if killed while npy files got their names: the first has it, the second not yet."""
    pack(source, tmp_path / "whole", "--format", "npy", *OPTIONS, code=3)
    out = tmp_path / "out"
    arguments = [source, out, "--format", "npy", *OPTIONS]
    killed_when_noted(*arguments, name="npy")
    (out / ".partial-png.npy").rename(out / "png.npy")
    pack(*arguments, code=3)
    assert files(out) == files(tmp_path / "whole")


@pytest.mark.parametrize("name, partial", [("lmdb", "data.mdb"), ("hdf5", "data.h5"), ("npy", "png.npy")])
@pytest.mark.parametrize("how", ["gone", "short", "other", "link"])
def test_what_was_kept_and_is_gone_is_an_error(source, tmp_path, name, partial, how):
    out = tmp_path / "out"
    arguments = [source, out, "--format", name, *OPTIONS]
    killed_when_noted(*arguments, name=name)
    path, outside = out / f".partial-{partial}", tmp_path / "outside"
    outside.write_bytes(path.read_bytes())
    was = outside.read_bytes()
    path.unlink()
    if how == "short":
        path.write_bytes(was[:3000])
    if how == "other":
        path.write_bytes(np.random.default_rng(1).bytes(len(was)))
    if how == "link":
        path.symlink_to(outside)
    got = pack(*arguments, code=1)
    assert got.stderr.count("\n") == 1 and partial in got.stderr, got.stderr
    assert outside.read_bytes() == was and not (out / partial).exists()
