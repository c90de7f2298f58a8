# SPDX-License-Identifier: Apache-2.0
"""Which members of a tar file make a sample: 300 archives of random names, read here and by the package
webdataset itself."""

from __future__ import annotations

import io
import random
import re
import tarfile
import warnings
from pathlib import Path

import pytest
import stoker
from stoker import datasets

webdataset = pytest.importorskip("webdataset")

ARCHIVES, PER_TEST = 300, 20
FOLDERS = ["", "", "", "d/", "a.b/", "./", "/", "../", ".hidden/", "d/e.f/", "__meta__/", "d/__x__/", "x//", "é/"]
STEMS = ["0", "0", "1", "1", "sample", "A", "a", "a b", ".a", "..a", "__a__", "__key__", "_", "ü", "\udcfe", "a\nb"]
STEMS += ["", "__", "-", "~", "x" * 90]
SUFFIXES = [".jpg", ".jpg", ".cls", ".JPG", ".Jpg", ".seg.png", ".SEG.png", ".txt", ".json", ".tar", "", ".", ".."]
SUFFIXES += ["..jpg", ".a.b.c", ".__key", ".__x__", "._", ".1", ".é", ".jpg\n", ".jpg~", ".x y", "__"]
LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)
KINDS = [*[tarfile.REGTYPE] * 30, tarfile.CONTTYPE, tarfile.AREGTYPE, *LINKS]


def write(path: Path, rng: random.Random) -> None:
    """Members of a few keys, so that some are beside each other and some come again later."""
    with tarfile.open(path, "w", format=rng.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])) as archive:
        for _ in range(rng.randrange(1, 14)):
            key = rng.choice(FOLDERS) + rng.choice(STEMS)
            for suffix in rng.sample(SUFFIXES, rng.choice([1, 1, 2, 3])):
                member = tarfile.TarInfo(key + suffix or "0")
                member.type = rng.choice(KINDS)
                member.linkname = "0.jpg" if member.issym() or member.islnk() else ""
                data = rng.randbytes(rng.choice([0, 1, 3, 700])) if member.isreg() else b""
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def theirs(path: Path):
    """(key, {suffix: bytes}) of each sample, and which samples have two members of one name."""
    found, twins = [], set()

    def note(why: Exception) -> bool:
        assert "duplicate file name" in str(why)
        twins.add(len(found))  # it is handed out later
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False, handler=note)
        for sample in stream:
            for word in ("__url__", "__local_path__"):
                sample.pop(word, None)
            found.append((sample.pop("__key__"), sample))
    return found, twins


def can_be_asked_for(suffix: str) -> bool:
    return bool(suffix) and not re.search("[,;=]|^ | $", suffix)


def ours(path: Path, suffixes: set[str]):
    """The same; what cannot be had of a sample is left out of it."""
    engine = datasets.WebDataset(path, ("__key__",))._engine()
    keys = [engine.name(i).removeprefix(f"{path}: ") for i in range(len(engine))]
    samples: list[tuple[str, dict[str, bytes]]] = [(key, {}) for key in keys]
    twins = set()
    for suffix in suffixes:
        data = datasets.WebDataset(path, {suffix: "bytes"})
        assert len(data) == len(samples)
        for i, (_, sample) in enumerate(samples):
            try:
                (sample[suffix],) = data[i]
            except stoker.CorruptSample as why:
                if "two members" in str(why):
                    twins.add(i)
                else:
                    assert "no member" in str(why)
    return samples, twins


@pytest.mark.parametrize("block", range(ARCHIVES // PER_TEST))
def test_the_same_samples_as_webdataset(block, tmp_path):
    for seed in range(block * PER_TEST, (block + 1) * PER_TEST):
        path = tmp_path / f"{seed}.tar"
        write(path, random.Random(seed))
        want, twins = theirs(path)
        with tarfile.open(path) as archive:
            names = [(member.name, member.type) for member in archive]
        if not want:
            with pytest.raises(ValueError, match="no sample"):
                datasets.WebDataset(path, ("__key__",))
            continue
        suffixes = {suffix for _, sample in want for suffix in sample if can_be_asked_for(suffix)}
        got, refused = ours(path, suffixes)
        # webdataset stops at a sample with two members of one name, or keeps the first; here it is a bad sample
        expected = [
            (key, {} if i in twins else {s: data for s, data in sample.items() if s in suffixes})
            for i, (key, sample) in enumerate(want)
        ]
        assert got == expected, (seed, names)
        assert not suffixes or refused == twins, (seed, names)
