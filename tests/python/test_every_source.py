# SPDX-License-Identifier: Apache-2.0
"""Every class of stoker.datasets, in the same way: as a map-style dataset in torch's own DataLoader with forked
and spawned workers, and in stoker.DataLoader shuffled, on two ranks, and taken up again in the middle."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sources
import stoker
import torch
from conftest import save_tree
from PIL import Image
from sources import COUNT, encoded, label, pixels
from stoker import audio, datasets
from stoker import transforms as T
from test_sources_url import Ranges, address

CHANCE = T.Compose([T.RandomCrop(16), T.RandomHorizontalFlip(), T.ToTensor()])
HEARD = audio.Compose([audio.Mono(), audio.RandomCrop(300)])
WIDE = audio.Compose([audio.Channels(2), audio.PadTrim(300)])


def packed(path: str) -> str:
    Path(path + ".gz").write_bytes(gzip.compress(Path(path).read_bytes()))
    return path + ".gz"


def jsonl(root: Path) -> Path:
    lines = []
    for i in range(COUNT):
        (root / f"{i}.png").write_bytes(encoded(i))
        lines.append(json.dumps({"path": f"{i}.png", "label": label(i), "text": f"number {i}"}))
    (root / "x.jsonl").write_text("\n".join(lines))
    return root / "x.jsonl"


def npy(root: Path) -> str:
    np.save(root / "x.npy", np.stack([pixels(i) for i in range(COUNT)]))
    return str(root / "x.npy")


def sounds(root: Path) -> Path:
    for i in range(COUNT):
        path = root / "sounds" / f"class{i % 3}" / f"{i:02}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        wave = np.random.default_rng(i).uniform(-1, 1, (1 + i % 2, 200 + 20 * i)).astype(np.float32)
        path.write_bytes(audio._as_wav(wave, 8000))
    return root / "sounds"


def sound_tar(root: Path) -> Path:
    members = []
    for i, path in enumerate(sorted(sounds(root).glob("*/*.wav"))):
        members += [(f"{i}.wav", path.read_bytes()), (f"{i}.cls", b"%d" % i)]
    return sources.write_tar(root / "sounds.tar", members)


def folder(root: Path) -> Path:
    return save_tree(root / "tree", {"ant": 9, "bee": 8, "cow": 6})


def put(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def mask(i: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels(i)[..., 0]).save(file, "png")
    return file.getvalue()


def stems(root: Path) -> Path:
    for i in range(COUNT):
        put(root / "images" / f"{i:02}.png", encoded(i))
        put(root / "masks" / f"{i:02}.png", mask(i))
    return root


def pets(root: Path) -> Path:
    base = root / "oxford-iiit-pet"
    for i in range(COUNT):
        put(base / "images" / f"Beagle_{i}.jpg", encoded(i))
        put(base / "annotations" / "trimaps" / f"Beagle_{i}.png", mask(i))
    put(base / "annotations" / "trainval.txt", "".join(f"Beagle_{i} 1 2 1\n" for i in range(COUNT)))
    return root


def cities(root: Path) -> Path:
    for i in range(COUNT):
        name = f"ulm/ulm_{i:06}_000019"
        put(root / "leftImg8bit" / "train" / f"{name}_leftImg8bit.png", encoded(i))
        put(root / "gtFine" / "train" / f"{name}_gtFine_labelIds.png", mask(i))
    return root


def voc(root: Path) -> Path:
    base = root / "VOCdevkit" / "VOC2012"
    sides = "".join(f"<{side}>{value}</{side}>" for side, value in zip(("xmin", "ymin", "xmax", "ymax"), (2, 3, 21, 18)))
    for i in range(COUNT):
        put(base / "JPEGImages" / f"{i}.jpg", encoded(i))
        put(base / "SegmentationClass" / f"{i}.png", mask(i))
        cow = f"<object><name>cow</name><bndbox>{sides}</bndbox></object>"
        put(base / "Annotations" / f"{i}.xml", f"<annotation>{cow * (i % 3)}</annotation>")
    for task in ("Segmentation", "Main"):
        put(base / "ImageSets" / task / "train.txt", "\n".join(map(str, range(COUNT))))
    return root


def coco(root: Path) -> tuple[Path, Path]:
    about: dict[str, Any] = {"images": [], "annotations": []}
    for i in range(COUNT):
        put(root / "images" / f"{i}.png", encoded(i))
        about["images"].append({"id": 100 - i, "file_name": f"{i}.png"})
        for k in range(i % 3):
            about["annotations"].append({"id": k, "image_id": 100 - i, "category_id": i, "bbox": [2 + k, 3, 9.5, 12]})
    put(root / "about.json", json.dumps(about))
    return root / "images", root / "about.json"


def yolo(root: Path) -> Path:
    for i in range(COUNT):
        put(root / "images" / f"{i:02}.png", encoded(i))
        put(root / "labels" / f"{i:02}.txt", f"{i} 0.5 0.4 0.3 0.6\n" * (i % 3))
    return root / "images"


def parts(root: Path, transform: Any) -> list[datasets.EngineDataset]:
    (root / "a").mkdir()
    (root / "b").mkdir()
    return [
        datasets.WebDataset(sources.make_tar(root / "a"), ("png", "cls"), transform),
        datasets.HDF5(sources.make_hdf5(root / "b"), ("images", "labels"), transform),
    ]


def by_url(root: Path, server: ThreadingHTTPServer) -> datasets.WebDataset:
    sources.make_tar(root)
    for shard in range(3):
        server.files[f"/s-{shard}.tar"] = (root / f"s-{shard}.tar").read_bytes()
    url = address(server, "/s-{0..2}.tar")
    return datasets.WebDataset(url, ("png", "cls"), CHANCE, cache_dir=root / "cache", timeout=20)


# Those in which a sample comes more than once.
TWICE = {"Concat", "Mix", "Subset"}
# How each is made.
EVERY = {
    "WebDataset": lambda root: datasets.WebDataset(
        sources.make_tar(root), ("png", "cls", "txt", "json", "npy", "rag.npy", "bin", "__key__"), CHANCE
    ),
    "WebDataset.gz": lambda root: datasets.WebDataset(
        packed(sources.make_tar(root).replace("{0..2}", "0")), ("png", "cls"), CHANCE
    ),
    "WebDataset of sounds": lambda root: datasets.WebDataset(sound_tar(root), ("wav", "cls"), WIDE),
    "TFRecord": lambda root: datasets.TFRecord(sources.make_tfrecord(root), transform=CHANCE),
    "TFRecord.gz": lambda root: datasets.TFRecord(packed(sources.make_tfrecord(root)[0]), transform=CHANCE),
    "HDF5": lambda root: datasets.HDF5(
        sources.make_hdf5(root), ("images", "labels", "scores", "more/boxes", "deep"), CHANCE
    ),
    "LMDB datum": lambda root: datasets.LMDB(sources.make_lmdb(root), "datum", CHANCE),
    "LMDB image": lambda root: datasets.LMDB(sources.make_lmdb(root, encoded), "image", CHANCE),
    "LMDB bytes": lambda root: datasets.LMDB(sources.make_lmdb(root), "bytes"),
    "Zip": lambda root: datasets.Zip(sources.make_zip(root), transform=CHANCE),
    "Npz": lambda root: datasets.Npz(sources.make_npz(root), ("images", "labels"), CHANCE),
    "Npy": lambda root: datasets.Npy(npy(root), transform=CHANCE),
    "Npy.gz": lambda root: datasets.Npy(packed(npy(root)), transform=CHANCE),
    "Manifest.csv": lambda root: datasets.Manifest(sources.make_manifest(root), transform=CHANCE),
    "Manifest.csv.gz": lambda root: datasets.Manifest(packed(sources.make_manifest(root)), transform=CHANCE),
    "Manifest.jsonl": lambda root: datasets.Manifest(jsonl(root), ("path=image", "label", "text"), CHANCE),
    "AudioFolder": lambda root: datasets.AudioFolder(sounds(root), HEARD),
    "ImageFolder": lambda root: datasets.ImageFolder(folder(root), CHANCE),
    "FlatFolder": lambda root: datasets.FlatFolder(folder(root), CHANCE),
    "ImageBytes": lambda root: datasets.ImageBytes(
        [encoded(i) for i in range(COUNT)], [label(i) for i in range(COUNT)], CHANCE
    ),
    "ImageMaskFolder": lambda root: datasets.ImageMaskFolder(stems(root) / "images", root / "masks", CHANCE),
    "ImagePairs": lambda root: datasets.ImagePairs(stems(root) / "images", root / "images", CHANCE),
    "OxfordIIITPet": lambda root: datasets.OxfordIIITPet(pets(root), transform=CHANCE),
    "Cityscapes": lambda root: datasets.Cityscapes(cities(root), transform=CHANCE),
    "VOCSegmentation": lambda root: datasets.VOCSegmentation(voc(root), transform=CHANCE),
    "VOCDetection": lambda root: datasets.VOCDetection(voc(root), transform=CHANCE),
    "CocoDetection": lambda root: datasets.CocoDetection(*coco(root), CHANCE),
    "YOLODetection": lambda root: datasets.YOLODetection(yolo(root), transform=CHANCE),
    "Concat": lambda root: datasets.Concat(parts(root, CHANCE)),
    "Subset": lambda root: datasets.Subset(datasets.Concat(parts(root, CHANCE)), [30, 3, 3, *range(15), -1]),
    "Mix": lambda root: datasets.Mix(parts(root, CHANCE), [1, 3], seed=4),
    "URL": by_url,
}


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """All of them, by name."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Ranges) as server:
        server.files, server.asked = {}, []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        made = {}
        for number, (name, make) in enumerate(EVERY.items()):
            root = tmp_path_factory.mktemp(f"source{number}")
            made[name] = make(root, server) if make is by_url else make(root)
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture(params=list(EVERY))
def data(request, every):
    return every[request.param]


def test_none_is_missing():
    inner = {"EngineDataset", "FieldDataset"}
    assert {name for name in datasets.__all__ if name not in inner} == {
        name.split(".")[0].split(" ")[0] for name in EVERY if name != "URL"
    }


def plain(value: Any) -> Any:
    """Something that can be compared and sorted, of any field."""
    if isinstance(value, torch.Tensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    return repr(value)


def still(data: Any) -> Any:
    """The same dataset without chance: so each sample can be told by its bytes."""
    again = pickle.loads(pickle.dumps(data))
    if again.transform is not None and again.transform is not WIDE:
        sound = audio.is_on_sounds(again.transform)
        again.transform = WIDE if sound else T.Compose([T.CenterCrop(16), T.ToTensor()])
    return again


def rows(batches: Any) -> list[Any]:
    """The samples of batches, each as what its fields are."""
    return [tuple(map(plain, row)) for batch in batches for row in zip(*batch, strict=True)]


def as_loader_gives(data: Any) -> list[Any]:
    return rows(stoker.DataLoader(data, batch_size=7, num_workers=0))


def as_list(samples: list[Any]) -> list[Any]:
    return samples


# ---- data[i] ----


def test_map_style(data):
    data = still(data)
    count = len(data)
    assert count > 4
    first, last = data[0], data[count - 1]
    assert [*map(plain, data[-1])] == [*map(plain, last)]
    assert [*map(plain, data[-count])] == [*map(plain, first)]
    assert [*map(plain, data[np.int64(0)])] == [*map(plain, first)]
    for index in (count, -count - 1):
        with pytest.raises(IndexError):
            data[index]
    with pytest.raises(TypeError):
        data["0"]
    assert len(list(data)) == count  # which ends by IndexError
    again = pickle.loads(pickle.dumps(data))
    assert len(again) == count and [*map(plain, again[1])] == [*map(plain, data[1])]


def test_the_loader_gives_the_same_as_data_i(data):
    data = still(data)
    given = as_loader_gives(data)
    assert len(given) == len(data)
    for i in range(0, len(data), 4):
        for one, other in zip(data[i], given[i], strict=True):
            if isinstance(one, (torch.Tensor, np.ndarray)):
                assert plain(one) == other
            elif isinstance(one, (int, float)):
                assert np.frombuffer(other[2], other[0]).item() == one
            else:
                assert plain(one) == other


def test_forked_workers(data):
    data = still(data)
    here = [[*map(plain, sample)] for sample in data]  # what is open already must not disturb the children
    loader = torch.utils.data.DataLoader(
        data, batch_size=5, num_workers=2, multiprocessing_context="fork", collate_fn=as_list
    )
    assert [[*map(plain, sample)] for batch in loader for sample in batch] == here
    assert [*map(plain, data[0])] == here[0]


def test_spawned_workers(every):
    """All datasets in one, for workers take seconds to begin."""
    each = [still(data) for data in every.values()]
    loader = torch.utils.data.DataLoader(
        torch.utils.data.ConcatDataset(each),
        batch_size=16,
        num_workers=2,
        multiprocessing_context="spawn",
        collate_fn=as_list,
    )
    there = [[*map(plain, sample)] for batch in loader for sample in batch]
    assert there == [[*map(plain, sample)] for data in each for sample in data]


# ---- stoker.DataLoader ----


def test_shuffled_epochs_are_whole(data, request):
    data = still(data)
    in_order = as_loader_gives(data)
    loader = stoker.DataLoader(data, batch_size=4, shuffle=True, seed=3)
    one, two = rows(loader), rows(loader)
    assert sorted(one) == sorted(two) == sorted(in_order)
    assert one != two and one != in_order
    if not TWICE & {request.node.callspec.params["data"]}:
        assert len(set(one)) == len(data)


def test_two_ranks_are_disjoint_and_whole(data):
    data = still(data)
    shares = [
        rows(stoker.DataLoader(data, batch_size=4, shuffle=True, seed=1, rank=rank, world_size=2, num_workers=1))
        for rank in range(2)
    ]
    assert len(shares[0]) == len(shares[1]) == (len(data) + 1) // 2
    left = sorted(as_loader_gives(data))
    for row in shares[0] + shares[1][: len(data) // 2]:  # of an odd number one comes twice, to make ranks equal
        left.remove(row)
    assert left == []


def test_resume_in_the_middle(data):
    options = {"batch_size": 4, "shuffle": True, "seed": 5}
    whole = [rows([batch]) for batch in stoker.DataLoader(data, **options)]
    loader = stoker.DataLoader(data, **options)
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    other = stoker.DataLoader(pickle.loads(pickle.dumps(data)), num_workers=1, **options)
    other.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert [rows([batch]) for batch in other] == whole[2:]
