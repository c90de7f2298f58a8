# SPDX-License-Identifier: Apache-2.0
"""torchvision's CocoDetection in wrap_dataset_for_transforms_v2: the engine's batches are torch's."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import PIL.Image
import pytest
import stoker
import torch
from test_wrapped_boxes import FLOAT, in_engine, pairs
from torchvision import datasets as TV
from torchvision import tv_tensors
from torchvision.transforms import v2

pytest.importorskip("pycocotools")
COUNT = 9


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root, rng = tmp_path_factory.mktemp("coco"), np.random.default_rng(3)
    (root / "part").mkdir()
    images, objects = [], []
    for k in range(COUNT):
        width, height = map(int, rng.integers(20, 130, 2))
        name = f"part/{k}.png"
        PIL.Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(root / name)
        images.append({"id": int(100 - 7 * k), "file_name": name, "width": width, "height": height})
        for _ in range(0 if k == 4 else 1 + k % 3):
            x, y = rng.uniform(0, width - 4), rng.uniform(0, height - 4)
            box = [round(float(v), 2) for v in (x, y, rng.uniform(1, width - x), rng.uniform(1, height - y))]
            objects.append({"id": len(objects) + 5, "image_id": images[-1]["id"], "category_id": int(rng.integers(1, 91)), "bbox": box,
                            "area": box[2] * box[3], "iscrowd": 0})  # fmt: skip
    for name, change in {"boxes": lambda v: v + 0.001, "whole": int}.items():
        changed = [each | {"bbox": [change(v) for v in each["bbox"]]} for each in objects]
        about = {"images": images, "annotations": changed, "categories": []}
        (root / f"{name}.json").write_text(json.dumps(about))
    return root


def wrapped(root, transforms, file="boxes", target_keys=None, ids=None):
    with contextlib.redirect_stdout(io.StringIO()):
        data = TV.CocoDetection(root, str(root / f"{file}.json"), transforms=transforms)
    data.ids = data.ids if ids is None else ids(data)
    return TV.wrap_dataset_for_transforms_v2(data, target_keys=target_keys)


def with_objects(data):
    return [id_ for id_ in reversed(data.ids) if data.coco.imgToAnns[id_]]


def same(ours, theirs):
    assert type(ours) is type(theirs) is tuple and len(ours) == len(theirs) == 2
    for (image, target), (wanted, meant) in zip(zip(*ours), zip(*theirs), strict=True):
        assert type(image) is type(wanted) and image.dtype == wanted.dtype and torch.equal(image, wanted)
        assert list(target) == list(meant) and type(target["image_id"]) is int and target["image_id"] == meant["image_id"]
        for name in list(meant)[1:]:
            assert type(target[name]) is type(meant[name]) and target[name].dtype == meant[name].dtype
            assert torch.equal(target[name], meant[name]), name
        if isinstance(meant.get("boxes"), tv_tensors.BoundingBoxes):
            assert (target["boxes"].canvas_size, target["boxes"].format) == (meant["boxes"].canvas_size, meant["boxes"].format)


STEPS = {
    "nothing": [],
    "resized twice": [v2.Resize((301, 233)), v2.Resize((41, 90)), v2.RandomHorizontalFlip(1.0)],
    "crop": [v2.Resize((50, 70)), v2.CenterCrop((30, 40)), v2.RandomVerticalFlip(1.0)],
    "border": [v2.Resize(64, max_size=99), v2.Pad([1, 2, 3, 4], fill={tv_tensors.BoundingBoxes: 9, "others": 7})],
}


@pytest.mark.parametrize("file", ["boxes", "whole"])
@pytest.mark.parametrize("last", [FLOAT, [*FLOAT, v2.ToPureTensor()]], ids=["image", "plain"])
@pytest.mark.parametrize("name", STEPS)
def test_batches_are_torchs(root, name, last, file):
    data = wrapped(root, v2.Compose([*STEPS[name], *last]), file)
    loader = stoker.DataLoader(data, 4, num_workers=1, collate_fn=pairs)
    assert in_engine(loader), str(loader.explain())
    for ours, theirs in zip(loader, torch.utils.data.DataLoader(data, 4, collate_fn=pairs), strict=True):
        same(ours, theirs)


def test_chosen_images_with_small_boxes_removed(root):
    """What detection recipes do: images without objects are left out."""
    steps = [v2.Resize((50, 70)), v2.CenterCrop((30, 40)), v2.ClampBoundingBoxes(), v2.SanitizeBoundingBoxes(3, 20), *FLOAT]
    data = torch.utils.data.Subset(wrapped(root, v2.Compose(steps), ids=with_objects), [6, 0, 3, 1])
    loader = stoker.DataLoader(data, 2, num_workers=1, collate_fn=pairs)
    assert in_engine(loader), str(loader.explain())
    removed = 0
    for ours, theirs in zip(loader, torch.utils.data.DataLoader(data, 2, collate_fn=pairs), strict=True):
        removed += sum(not len(target["boxes"]) for target in theirs[1] if "boxes" in target)
        same(ours, theirs)


def test_ids_that_change_between_epochs(root):
    data = wrapped(root, v2.Compose(FLOAT), ids=with_objects)
    loader = stoker.DataLoader(data, 4, num_workers=1, collate_fn=pairs)
    assert in_engine(loader)
    first = [target["image_id"] for _, targets in loader for target in targets]
    data._dataset.ids = data._dataset.ids[:3]
    second = [target["image_id"] for _, targets in loader for target in targets]
    assert len(first) == COUNT - 1 and second == first[:3]


def stays(loader, why):
    plan = str(loader.explain())
    assert not in_engine(loader) and " ".join(why.split()) in " ".join(plan.split()), plan


def test_what_stays_in_python(root):
    steps = v2.Compose([v2.ClampBoundingBoxes(), v2.SanitizeBoundingBoxes(), *FLOAT])
    stays(stoker.DataLoader(wrapped(root, steps), 2, collate_fn=pairs), "images without objects")
    stays(stoker.DataLoader(wrapped(root, v2.Compose(FLOAT), target_keys="all"), 2, collate_fn=pairs), "target_keys=")
    stays(stoker.DataLoader(wrapped(root, v2.Compose([v2.RandomRotation(9), *FLOAT])), 2, collate_fn=pairs), "RandomRotation moves")
    data = wrapped(root, v2.Compose(FLOAT))
    stays(stoker.DataLoader(data, 2, num_workers=1), "no batch can be made")
    coco = data._dataset.coco
    some = next(iter(coco.anns.values()))
    for box, why in (([1, 2, 3, 4], "are whole numbers"), ([1.0, 2.0], "is not four numbers"), ([1.0, 2.0, float("nan"), 3.0], "Out of range")):
        before, some["bbox"] = some["bbox"], box
        stays(stoker.DataLoader(data, 2, collate_fn=pairs), why)
        some["bbox"] = before
    coco.imgs[data._dataset.ids[0]]["file_name"] = "nowhere.png"
    stays(stoker.DataLoader(data, 2, collate_fn=pairs), "nowhere.png")
