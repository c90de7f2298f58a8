# SPDX-License-Identifier: Apache-2.0
"""Small datasets of every format that the engine reads, for faults below the reader. Made of the files of tests/data
and tests/fuzz/corpus by the standard library alone."""

from __future__ import annotations

import gzip
import pathlib
import shutil
import subprocess
import sys
import zipfile
from typing import NamedTuple

TESTS = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "mutants"))

import archives
import sums
from archives import CORPUS, DATA

COUNT = 10


class Dataset(NamedTuple):
    name: str
    path: pathlib.Path  # what is opened
    fields: str = ""
    kind: str = ""  # where the path does not tell
    refused: bool = False  # whatever happens


def pictures():
    """Names and bytes of small images in several formats; all can be read."""
    names = ["png/rgb", "jpeg/rgb", "webp/rgb-lossy", "bmp/rgb", "pnm/rgb", "tiff/rgb", "png/l", "png/rgba",
             "webp/rgb-lossless", "tiff/lzw"]
    endings = {"png": "png", "jpeg": "jpg", "webp": "webp", "bmp": "bmp", "pnm": "ppm", "tiff": "tiff"}
    for number, name in enumerate(names[:COUNT]):
        form = name.split("/")[0]
        options = [CORPUS / name, *sorted((CORPUS / form).iterdir())]
        file = next(path for path in options if path.exists())
        yield number, endings[form], file.read_bytes()


def write_folder(root):
    for number, ending, data in pictures():
        place = root / f"class{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.{ending}").write_bytes(data)
    return root


def members():
    for number, ending, data in pictures():
        yield f"{number:03}.{'jpg' if ending == 'jpg' else 'png'}", data
        yield f"{number:03}.cls", b"%d" % (number % 3)


def write_tar(path, pack=lambda data: data):
    path.write_bytes(pack(archives.tar(list(members()))))
    return path


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def tagged(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def example(image, label):
    features = {b"image/encoded": tagged(1, tagged(1, image)), b"image/class/label": tagged(3, tagged(1, varint(label)))}
    return tagged(1, b"".join(tagged(1, tagged(1, name) + tagged(2, value)) for name, value in features.items()))


def write_records(path, pack=lambda data: data):
    out = b""
    for number, _, image in pictures():
        data = example(image, number % 3)
        head = len(data).to_bytes(8, "little")
        out += head + sums.masked(head) + data + sums.masked(data)
    path.write_bytes(pack(out))
    return path


def write_zip(path, way):
    with zipfile.ZipFile(path, "w", way) as archive:
        for number, ending, data in pictures():
            archive.writestr(zipfile.ZipInfo(f"class{number % 3}/{number}.{ending}"), data, way)
    return path


def write_table(root, name, head, line):
    root.mkdir()
    lines = [head] if head else []
    for number, ending, data in pictures():
        (root / f"{number}.{ending}").write_bytes(data)
        lines.append(line % (f"{number}.{ending}", number % 3))
    (root / name).write_text("\n".join(lines) + "\n")
    return root / name


def copied(root, path):
    root.mkdir(exist_ok=True)
    target = root / path.name
    (shutil.copytree if path.is_dir() else shutil.copyfile)(path, target)
    return target


def packed(root, program, name, *options):
    """As `stoker pack` writes it, without what this build cannot decode."""
    command = [program, "pack", root / "folder", root / name, "--quiet", "--on-error", "skip", *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr  # 3: some samples are left out
    return root / name


def unfinished(root, whole):
    """The same pack before its last file was written."""
    copy = copied(root / "unfinished", whole)
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"complete": true', '"complete": false'))
    return copy


def squeeze(data):
    return gzip.compress(data, 1, mtime=0)


def make_all(root, program):
    """In the folder `root`, which is new; `program` is stoker."""
    fields = "image/encoded=image,image/class/label=int"
    made = [
        Dataset("folder", write_folder(root / "folder")),
        Dataset("flat", root / "folder", kind="flat"),
        Dataset("tar", write_tar(root / "x.tar")),
        Dataset("tar.gz", write_tar(root / "y.tar.gz", squeeze)),
        Dataset("tfrecord", write_records(root / "x.tfrecord"), fields),
        Dataset("tfrecord.gz", write_records(root / "y.tfrecord", squeeze), fields),
        Dataset("zip stored", write_zip(root / "x.zip", zipfile.ZIP_STORED)),
        Dataset("zip deflated", write_zip(root / "y.zip", zipfile.ZIP_DEFLATED)),
        Dataset("csv", write_table(root / "csv", "x.csv", "path,label", "%s,%d")),
        Dataset("jsonl", write_table(root / "jsonl", "x.jsonl", "", '{"path": "%s", "label": %d}')),
        Dataset("npy", copied(root, DATA / "npy" / "rgb.npy")),
        Dataset("npy.zst", copied(root, DATA / "npy" / "rgb.npy.zst")),
        Dataset("npz", copied(root, DATA / "npz" / "stored.npz")),
        Dataset("npz deflated", copied(root, DATA / "npz" / "deflated.npz")),
        Dataset("hdf5 chunks", copied(root, DATA / "hdf5" / "layouts_v110.h5")),
        Dataset("hdf5 filters", copied(root, DATA / "hdf5" / "filters.h5")),
        Dataset("hdf5 variable", copied(root, DATA / "hdf5" / "variable.h5")),
        Dataset("lmdb", copied(root, DATA / "lmdb" / "datum")),
        Dataset("pack tar", packed(root, program, "pack-tar", "--crop-ready", "--shard-size", "16K")),
        Dataset("pack tfrecord", packed(root, program, "pack-tfrecord", "--format", "tfrecord")),
    ]
    return [*made, Dataset("pack unfinished", unfinished(root, root / "pack-tar"), refused=True)]
