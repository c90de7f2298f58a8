# SPDX-License-Identifier: Apache-2.0
"""Uses an installed wheel as its users do; needs nothing but it and NumPy.

    python3 check_installed.py CHECK [ARGUMENTS]

CHECK is the name of a function below. What it is used with is silent on stderr.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import stoker
from stoker import transforms as T

SAMPLES = Path(__file__).resolve().parent / "samples"
PAGES = {
    "bash": "bash-completion/completions/stoker.bash",
    "zsh": "zsh/site-functions/_stoker",
    "fish": "fish/vendor_completions.d/stoker.fish",
}
EVEN = T.Compose([T.CenterCrop(40), T.ToTensor()])
TRAINING = T.Compose(
    [T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize([0.4] * 3, [0.2] * 3)]
)
GLIBC = {"linux-vdso", "ld-linux-x86-64", "ld-linux-aarch64", "libc", "libm", "libpthread", "libdl", "librt"}


def program(*arguments: object) -> str:
    got = subprocess.run(["stoker", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert got.returncode == 0 and not got.stderr, f"stoker {arguments}: {got.returncode}\n{got.stdout}{got.stderr}"
    return got.stdout


def version(expected: str) -> None:
    assert stoker.__version__ == expected, stoker.__version__
    assert program("--version") == f"stoker {expected}\n"
    python = "Programming Language :: Python :: {}.{}".format(*sys.version_info)
    assert python in importlib.metadata.metadata("stoker").get_all("Classifier"), f"the metadata lack {python!r}"


def glibc(expected: str) -> None:
    assert os.confstr("CS_GNU_LIBC_VERSION") == f"glibc {expected}"


def only_glibc() -> None:
    """The extension and the program are linked with no library but the C library's."""
    for path in (stoker._ext.__file__, shutil.which("stoker")):
        linked = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
        names = {os.path.basename(line.split()[0]).partition(".so")[0] for line in linked.splitlines()}
        assert "libc" in names and names <= GLIBC, linked


def info() -> None:
    said = program("info")
    assert stoker.__version__ in said and "JPEG" in said, said


def everything_is_in() -> None:
    info = stoker.info()
    print(info)
    absent = [
        name for kind in ("codec", "audio", "library", "reader") for name, about in info[kind].items() if not about["present"]
    ]
    assert not absent, absent


def pages() -> None:
    """Man page and completions, where `man` and shells look for them beside a program."""
    where = shutil.which("stoker")
    assert where
    share = Path(where).parents[1] / "share"
    page = share / "man/man1/stoker.1"
    assert "Nm stoker" in page.read_text()
    if shutil.which("man"):
        found = subprocess.run(["man", "-w", "stoker"], capture_output=True, text=True, check=True).stdout
        assert Path(found.removesuffix("\n")).samefile(page), found  # Debian's /usr/local/man leads to share/man
    for shell, name in PAGES.items():
        assert (share / name).read_text() == program("completion", shell), name


def images() -> None:
    names = sorted(path for path in (SAMPLES / "images").iterdir() if path.suffix != ".npy")
    assert len(names) == 14, names
    for path in names:
        got, want = stoker.decode(path), np.load(f"{path}.npy")
        assert np.array_equal(got, want), path


def sounds() -> None:
    data = stoker.datasets.AudioFolder(SAMPLES / "sounds")
    assert len(data) == 7, len(data)
    for number, (sound, _) in enumerate(data):
        assert sound.dtype == np.float32 and sound.size > 100 and 0.01 < np.abs(sound).max() <= 2, data.samples[number]


def batches(data: stoker.datasets.EngineDataset) -> list[np.ndarray]:
    return [image for images, _ in stoker.DataLoader(data, batch_size=5, num_workers=2) for image in np.asarray(images)]


def every_format(*left_out: str) -> None:
    folder = batches(stoker.datasets.ImageFolder(SAMPLES / "train", EVEN))
    assert len(folder) == 24
    with tempfile.TemporaryDirectory() as out:
        for kind in sorted({"tar", "tfrecord", "lmdb", "hdf5", "npy"}.difference(left_out)):
            program("pack", SAMPLES / "train", f"{out}/{kind}", "--format", kind, "--quiet")
            program("verify", f"{out}/{kind}", "--deep", "--quiet")
            packed = batches(stoker.open(f"{out}/{kind}", transform=EVEN))
            assert len(packed) == 24 and all(map(np.array_equal, packed, folder)), kind
    rows = stoker.open(SAMPLES / "filters.h5", "images,labels")
    assert len(rows) == 7 and rows[1][1] == 2401519777379558960


def training() -> tuple[str, str]:
    """A digest of two shuffled epochs with random crops and flips, and the module that the batches' type is of."""
    data = stoker.datasets.ImageFolder(SAMPLES / "train", TRAINING)
    digest = hashlib.sha256()
    loader = stoker.DataLoader(data, batch_size=5, shuffle=True, seed=3, num_workers=2)
    for _ in range(2):
        for images, labels in loader:
            module = type(images).__module__
            for values in (np.asarray(images), np.asarray(labels)):
                digest.update(f"{values.dtype} {values.shape}".encode() + values.tobytes())
    return digest.hexdigest(), module


def print_epochs() -> None:
    print(training()[0])


def epochs(expected: str, module: str) -> None:
    assert training() == (expected, module), training()


def by_url(url: str) -> None:
    here = stoker.open(SAMPLES / "packed" / "shard-000000.tar", transform=EVEN)
    with tempfile.TemporaryDirectory() as cache:
        there = stoker.open(url, transform=EVEN, cache_dir=cache, timeout=30)
        assert all(map(np.array_equal, batches(there), batches(here)))


def refused(url: str) -> None:
    try:
        stoker.open(url, timeout=10)
    except OSError as error:
        assert "certificate" in str(error) and "SSL_CERT_FILE" in str(error), error
    else:
        raise AssertionError("a certificate that nobody vouches for was accepted")


def demo(compared: str) -> None:
    """Alone, or with torch's DataLoader if that is there."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        got = subprocess.run(
            ["stoker", "demo", "--images", "24", "--batch-size", "8", "--workers", "2"],
            env=environment, cwd=cache, capture_output=True, text=True, check=False,
        )  # fmt: skip
    alone = "Stoker alone" in got.stdout
    assert got.returncode == 0 and not got.stderr and alone == (compared == "alone"), got
    assert re.search(r"\btorch\b", got.stdout), got.stdout


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
