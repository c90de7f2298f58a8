# SPDX-License-Identifier: Apache-2.0
"""data[i] from many threads at once: what one thread gets, and no thread gets another's."""

import io
import tarfile
import threading

import numpy as np
import pytest
import stoker
from PIL import Image
from stoker import transforms as T

COUNT, THREADS, READS = 40, 8, 400
RESIZE = T.Compose([T.Resize((12, 14)), T.ToTensor()])


def encoded(number):
    out = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 256, (20 + number % 5, 24, 3), np.uint8)
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("threads")
    with tarfile.open(root / "a.tar", "w") as tar:
        for number in range(COUNT):
            target = root / "images" / f"class{number % 4}" / f"{number:03d}.png"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(encoded(number))
            for suffix, data in (("png", encoded(number)), ("cls", b"%d" % number), ("txt", b"text %d" % number)):
                member = tarfile.TarInfo(f"{number:03d}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return root


def read_in_threads(data, wanted):
    """What differed or was raised, of all reads."""
    trouble, begin = [], threading.Barrier(THREADS)

    def read(seed):
        order = np.random.default_rng(seed).integers(0, COUNT, READS)
        begin.wait()
        for index in map(int, order):
            try:
                got = data[index]
                same = np.array_equal(np.asarray(got[0]), wanted[index][0]) and tuple(got[1:]) == wanted[index][1:]
            except Exception as error:
                same = repr(error)
            if same is not True:
                trouble.append((index, same))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return trouble


@pytest.mark.parametrize("transform", [RESIZE, None], ids=["resized", "as it is"])
@pytest.mark.parametrize("kind", ["folder", "tar"])
def test_samples_read_in_threads_are_those_read_one_by_one(folder, kind, transform):
    def opened():
        if kind == "folder":
            return stoker.datasets.ImageFolder(str(folder / "images"), transform=transform)
        return stoker.open(str(folder / "a.tar"), ("png", "cls", "txt"), transform)

    alone = opened()
    wanted = [(np.asarray(alone[index][0]).copy(), *alone[index][1:]) for index in range(COUNT)]
    assert read_in_threads(opened(), wanted) == []
