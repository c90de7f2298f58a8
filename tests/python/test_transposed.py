# SPDX-License-Identifier: Apache-2.0
"""collate_fn=lambda batch: tuple(zip(*batch)) in the engine, and samples with a dict: what Python would make of the samples."""

from __future__ import annotations

import builtins
import json

import numpy as np
import pytest
import stoker
import torch
import torchvision
from conftest import picture
from PIL import Image
from stoker import datasets as D
from stoker import transforms as T
from torchvision import tv_tensors
from torchvision.transforms import v2


def collate_fn(batch):
    """As torchvision's references have it."""
    return tuple(zip(*batch))


def into_list(samples):
    return list(zip(*samples))


def nested():
    def inner(rows):
        return tuple(zip(*rows))

    return inner


TRANSPOSING = [lambda b: tuple(zip(*b)), collate_fn, into_list, nested()]


def shadowed():
    space = {"zip": lambda *rows: [rows]}
    exec("def collate(batch): return tuple(zip(*batch))", space)
    return space["collate"]


def filtering(batch):
    batch = [each for each in batch if each is not None]
    return tuple(zip(*batch))


OTHERS = [
    shadowed(),
    filtering,
    lambda batch, more=(): tuple(zip(*batch)),
    lambda *batch: tuple(zip(*batch)),
    lambda batch: set(zip(*batch)),
    lambda batch: tuple(zip(batch)),
    lambda batch: batch,
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root, rng = tmp_path_factory.mktemp("transposed"), np.random.default_rng(3)
    about = {"images": [], "annotations": [], "categories": [{"id": 3, "name": "x"}]}
    for k in range(9):
        folder = root / "classes" / "ab"[k % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (30 + k, 40, 3), np.uint8)).save(folder / f"{k}.png")
        about["images"].append({"id": k, "file_name": f"{'ab'[k % 2]}/{k}.png"})
        about["annotations"] += [
            {
                "id": 10 * k + n, "image_id": k, "category_id": 3, "bbox": [3.5 + n, 4, 20, 20 - n], "area": 2.0,
                "segmentation": [[3, 3, 20, 4, 9, 25.5]], "keypoints": [4, 5, 2],
            }
            for n in range(k % 3)
        ]  # fmt: skip
    (root / "a.json").write_text(json.dumps(about))
    return root


def same(one, other):
    """Whether two things are equal, with their types."""
    assert type(one) is type(other), (type(one), type(other))
    if isinstance(one, (tuple, list)):
        assert len(one) == len(other)
        return all(map(same, one, other))
    if isinstance(one, dict):
        assert list(one) == list(other)
        return all(same(one[key], other[key]) for key in one)
    if isinstance(one, tv_tensors.BoundingBoxes):
        assert (one.format, one.canvas_size) == (other.format, other.canvas_size)
    if isinstance(one, (torch.Tensor, np.ndarray)):
        assert one.dtype == other.dtype and one.shape == other.shape
        return bool((one == other).all())
    return one == other


FIXED = T.Compose([T.Resize((17, 23)), T.RandomHorizontalFlip(1.0), T.ToTensor()])
RAGGED = T.Compose([T.RandomHorizontalFlip(1.0), T.ToTensor()])
SETS = {
    "folder": lambda root, steps: D.ImageFolder(root / "classes", steps),
    "coco": lambda root, steps: D.CocoDetection(root / "classes", root / "a.json", steps, keypoints=True, masks="objects"),
    "classes": lambda root, steps: D.CocoDetection(root / "classes", root / "a.json", steps, masks="classes"),
    "dicts": lambda root, steps: D.CocoDetection(
        root / "classes", root / "a.json", steps, keypoints=True, masks="objects", as_dict=True
    ),
    "torchvision's": lambda root, steps: torchvision.datasets.ImageFolder(
        root / "classes",
        torchvision.transforms.Compose([
            *([torchvision.transforms.Resize((17, 23))] if steps is FIXED else []), torchvision.transforms.ToTensor()
        ]),
        target_transform=str,
    ),
}  # fmt: skip


@pytest.mark.parametrize("collate", TRANSPOSING)
@pytest.mark.parametrize("steps", [FIXED, RAGGED], ids=["fixed", "ragged"])
@pytest.mark.parametrize("name", SETS)
def test_batches_are_what_the_function_makes_of_samples(root, name, steps, collate):
    data = SETS[name](root, steps)
    loader = stoker.DataLoader(data, 4, collate_fn=collate, num_workers=2)
    assert loader.explain().rows[0].where.startswith("engine")
    found = list(loader)
    wanted = [collate([data[k] for k in range(at, min(at + 4, len(data)))]) for at in range(0, len(data), 4)]
    assert len(found) == 3 and same(found, wanted)


@pytest.mark.parametrize("collate", OTHERS)
def test_other_functions_run_in_python(root, collate):
    data = SETS["folder"](root, FIXED)
    calls = []

    def counted(batch):
        calls.append(len(batch))
        return collate(batch)

    loader = stoker.DataLoader(data, 4, collate_fn=collate)
    assert "in Python" in str(loader.explain()) or "this process" in loader.explain().rows[0].where
    assert next(row for row in loader.explain().rows if row.stage == "collate").remedy
    list(stoker.DataLoader(data, 4, collate_fn=counted))
    assert calls == [4, 4, 1]


def test_built_in_functions_that_somebody_replaced(root, monkeypatch):
    python = zip
    monkeypatch.setattr(builtins, "zip", lambda *rows, **named: python(*rows, **named))
    loader = stoker.DataLoader(SETS["folder"](root, FIXED), 4, collate_fn=TRANSPOSING[0])
    assert loader.explain().rows[0].where == "this process"


def test_samples_that_are_no_tensors_run_in_python(root):
    """Without a transform samples of this package are arrays, and torchvision's are images."""
    plain, tv = D.ImageFolder(root / "classes"), torchvision.datasets.ImageFolder(root / "classes")
    images = torchvision.datasets.ImageFolder(root / "classes", v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, True)]))
    for data in (plain, tv, images):
        loader = stoker.DataLoader(data, 3, collate_fn=collate_fn)
        assert loader.explain().rows[0].where == "this process"
        assert isinstance(next(iter(loader))[0][1], type(data[1][0]))
    plain = torchvision.datasets.ImageFolder(
        root / "classes", v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, True), v2.ToPureTensor()])
    )
    loader = stoker.DataLoader(plain, 3, collate_fn=collate_fn)
    assert loader.explain().rows[0].where.startswith("engine") and same(next(iter(loader)), collate_fn([plain[k] for k in range(3)]))


def test_a_transform_that_changes_later(root):
    data = SETS["folder"](root, FIXED)
    loader = stoker.DataLoader(data, 9, collate_fn=collate_fn)
    assert next(iter(loader))[0][0].shape == (3, 17, 23)
    data.transform = RAGGED
    assert next(iter(loader))[0][1].shape[2] == 40
    data.transform = None
    assert same(next(iter(loader)), collate_fn([data[k] for k in range(9)]))


def test_bad_samples(root, tmp_path):
    data = SETS["coco"](root, FIXED)
    files = tmp_path / "classes"
    for k in range(9):
        (files / "ab"[k % 2]).mkdir(parents=True, exist_ok=True)
        (files / "ab"[k % 2] / f"{k}.png").write_bytes((root / "classes" / "ab"[k % 2] / f"{k}.png").read_bytes())
    (files / "a" / "2.png").write_bytes(b"no image")
    for as_dict in (False, True):
        bad = D.CocoDetection(files, root / "a.json", FIXED, masks="objects", as_dict=as_dict)
        images, *others = next(iter(stoker.DataLoader(bad, 5, collate_fn=collate_fn, on_error="replace")))
        assert not images[2].any() and len(images) == 5
        if as_dict:
            assert others[0][2]["image_id"] == -100 and others[0][2]["boxes"].shape == (0, 4) and len(others[0][2]["masks"]) == 0
        else:
            assert others[4][2] == -100 and len(others[0][2]) == 0
    assert len(data) == 9


# ---- dicts ----


def test_samples_with_a_dict(root):
    steps = T.Compose([T.RandomCrop(25), T.ConvertBoundingBoxFormat("xywh"), T.ToTensor()])
    data = D.CocoDetection(root / "classes", root / "a.json", steps, masks="objects", as_dict=True)
    image, target = data[2]
    assert list(target) == ["boxes", "labels", "area", "iscrowd", "image_id", "masks"] and target["image_id"] == 2
    assert type(target["boxes"]) is tv_tensors.BoundingBoxes and target["boxes"].canvas_size == (25, 25)
    assert target["boxes"].format.value == "XYWH" and image.shape == (3, 25, 25)
    assert type(target["masks"]) is tv_tensors.Mask and target["masks"].shape == (2, 25, 25)
    assert type(target["labels"]) is torch.Tensor and target["labels"].dtype == torch.int64
    images, targets = next(iter(stoker.DataLoader(data, 4)))
    assert images.shape == (4, 3, 25, 25) and [len(each["boxes"]) for each in targets] == [0, 1, 2, 0]
    single = next(iter(stoker.DataLoader(data, None)))
    assert single[0].shape == (3, 25, 25) and single[1]["image_id"] == 0
    raw = D.CocoDetection(root / "classes", root / "a.json", as_dict=True)[1]
    assert type(raw[0]) is np.ndarray and raw[1]["boxes"].canvas_size == (31, 40)
    part = D.Subset(data, [2, 1])
    assert same(part[0][1]["labels"], target["labels"]) and len(D.Concat([data, data])[11][1]["boxes"]) == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dict_after_steps_of_python(root, workers):
    def keep(image, target):
        return image, target

    def data(steps, name):
        return D.CocoDetection(root / "classes", root / "a.json", as_dict=True, masks="objects", **{name: steps})

    mixed = data(T.Compose([T.CenterCrop(24), keep, T.RandomHorizontalFlip(1.0), T.ToTensor()]), "transforms")
    whole = data(T.Compose([T.CenterCrop(24), T.RandomHorizontalFlip(1.0), T.ToTensor()]), "transform")
    for collate in (None, collate_fn):
        loaders = [stoker.DataLoader(each, 4, collate_fn=collate, num_workers=workers) for each in (mixed, whole)]
        assert loaders[1].explain().rows[0].where.startswith("engine") and "worker" in str(loaders[0].explain()) or not workers
        assert all(same(one, other) for one, other in zip(*map(list, loaders), strict=True))


def test_a_detection_model_takes_the_batches(root):
    data = D.CocoDetection(root / "classes", root / "a.json", RAGGED, masks="objects", as_dict=True)
    model = torchvision.models.detection.maskrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=4, min_size=32, max_size=48, box_detections_per_img=3
    )
    images, targets = next(iter(stoker.DataLoader(torch.utils.data.Subset(data, [2, 1]), 2, collate_fn=collate_fn)))
    losses = model(images, targets)
    assert torch.isfinite(sum(losses.values()))


def test_files_of_voc_and_yolo(tmp_path):
    folder = tmp_path / "yolo"
    for each in ("images", "labels"):
        (folder / each).mkdir(parents=True)
    picture(1, 20, 10).save(folder / "images" / "0.png")
    (folder / "labels" / "0.txt").write_text("1 0.5 0.5 0.5 0.5\n")
    image, target = D.YOLODetection(folder / "images", None, T.ToTensor(), as_dict=True)[0]
    height, width = image.shape[1:]
    assert target["boxes"].tolist() == [[width / 4, height / 4, 3 * width / 4, 3 * height / 4]]
    assert target["labels"].tolist() == [1] and target["boxes"].canvas_size == (height, width)


def test_options_that_do_not_go_together(root):
    data = SETS["dicts"](root, FIXED)
    with pytest.raises(ValueError, match="batch_transforms works on stacked images"):
        stoker.DataLoader(data, 2, batch_transforms=T.MixUp(num_classes=2))
    with pytest.raises(ValueError, match="output='numpy' is not possible with as_dict=True"):
        stoker.DataLoader(data, 2, output="numpy")
    with pytest.raises(ValueError, match="output='dlpack' is not possible with a collate_fn"):
        stoker.DataLoader(SETS["coco"](root, FIXED), 2, output="dlpack", collate_fn=collate_fn)
    images, *_ = next(iter(stoker.DataLoader(SETS["coco"](root, FIXED), 2, output="numpy", collate_fn=collate_fn)))
    assert type(images) is tuple and type(images[0]) is np.ndarray
