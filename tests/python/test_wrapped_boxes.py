# SPDX-License-Identifier: Apache-2.0
"""torchvision's VOCDetection in wrap_dataset_for_transforms_v2: the engine's batches are torch's, boxes of whole numbers, too."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import stoker
import torch
from torchvision import datasets as TV
from torchvision import tv_tensors
from torchvision.transforms import v2

COUNT = 11
FLOAT = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]


def pairs(batch):
    return tuple(zip(*batch))


def objects(rng, width, height, count):
    for _ in range(count):
        left, right = sorted(rng.integers(1, width + 1, 2).tolist())
        top, bottom = sorted(rng.integers(1, height + 1, 2).tolist())
        yield (
            f"<object><name>{rng.choice(['dog', 'person', 'aeroplane'])}</name><difficult>0</difficult><bndbox><xmin>{left}</xmin>"
            f"<ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>"
        )


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root, rng = tmp_path_factory.mktemp("voc"), np.random.default_rng(5)
    voc = root / "VOCdevkit" / "VOC2012"
    for folder in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (voc / folder).mkdir(parents=True)
    for k in range(COUNT):
        width, height = map(int, rng.integers(20, 130, 2))
        PIL.Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(voc / "JPEGImages" / f"{k:06}.jpg", "PNG")
        text = "".join(objects(rng, width, height, 1 + k % 4))
        size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
        (voc / "Annotations" / f"{k:06}.xml").write_text(f"<annotation>{size}{text}</annotation>")
    (voc / "ImageSets" / "Main" / "train.txt").write_text("".join(f"{k:06}\n" for k in reversed(range(COUNT))))
    return root


def wrapped(root, transforms, target_keys=None):
    return TV.wrap_dataset_for_transforms_v2(TV.VOCDetection(root, transforms=transforms), target_keys=target_keys)


def in_engine(loader):
    return loader.explain().rows[0].where.startswith("engine")


def same(ours, theirs):
    assert type(ours) is type(theirs) is tuple and len(ours) == len(theirs) == 2
    for (image, target), (wanted, meant) in zip(zip(*ours), zip(*theirs), strict=True):
        assert type(image) is type(wanted) and image.dtype == wanted.dtype and torch.equal(image, wanted)
        assert list(target) == list(meant)
        for name in target:
            assert type(target[name]) is type(meant[name]) and target[name].dtype == meant[name].dtype
            assert torch.equal(target[name], meant[name]), name
        if isinstance(meant["boxes"], tv_tensors.BoundingBoxes):
            assert (target["boxes"].canvas_size, target["boxes"].format) == (meant["boxes"].canvas_size, meant["boxes"].format)


STEPS = {
    "nothing": [],
    "resize": [v2.Resize((37, 53))],
    "resized twice": [v2.Resize((301, 233)), v2.Resize((41, 90)), v2.RandomHorizontalFlip(1.0)],
    "flips": [v2.RandomHorizontalFlip(1.0), v2.Resize(64, max_size=99), v2.RandomVerticalFlip(1.0)],
    "crop": [v2.Resize((50, 70)), v2.CenterCrop((30, 40)), v2.SanitizeBoundingBoxes(3, 20)],
    "border": [v2.Resize((50, 70)), v2.Pad([1, 2, 3, 4], fill={tv_tensors.BoundingBoxes: 9, "others": 7}), v2.ClampBoundingBoxes()],
    "left as it is": [v2.RandomIoUCrop(sampler_options=[1.0]), v2.RandomPhotometricDistort(p=0.0)],
}


@pytest.mark.parametrize("last", [FLOAT, [*FLOAT, v2.ToPureTensor()], [v2.PILToTensor()]], ids=["image", "plain", "bytes"])
@pytest.mark.parametrize("name", STEPS)
def test_batches_are_torchs(root, name, last):
    data = wrapped(root, v2.Compose([*STEPS[name], *last]))
    loader = stoker.DataLoader(data, 4, num_workers=1, collate_fn=pairs)
    assert in_engine(loader), str(loader.explain())
    for ours, theirs in zip(loader, torch.utils.data.DataLoader(data, 4, collate_fn=pairs), strict=True):
        same(ours, theirs)


def test_ssds_recipe(root):
    """Boxes and images have one draw: a box that is as large as its image stays so."""
    steps = [v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=(123, 117, 104)), v2.RandomIoUCrop(), v2.RandomHorizontalFlip(),
             v2.SanitizeBoundingBoxes(), v2.Resize((60, 60)), *FLOAT, v2.ToPureTensor()]  # fmt: skip
    loader = stoker.DataLoader(wrapped(root, v2.Compose(steps)), 4, num_workers=2, collate_fn=pairs, shuffle=True)
    assert in_engine(loader), str(loader.explain())
    for _ in range(5):
        for images, targets in loader:
            assert all(image.shape == (3, 60, 60) for image in images)
            for target in targets:
                boxes = target["boxes"]
                assert type(boxes) is torch.Tensor and boxes.dtype == torch.int64 and len(boxes) == len(target["labels"])
                assert not len(boxes) or (0 <= boxes.min() and boxes.max() <= 60)


STAYS = {
    "rotation": ([v2.RandomRotation(10), *FLOAT], "RandomRotation moves boxes of whole numbers"),
    "labels": ([v2.SanitizeBoundingBoxes(labels_getter=None), *FLOAT], "labels_getter=None"),
    "types": ([v2.ToImage(), v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)], "ToDtype has types"),
    "plain": ([*FLOAT, v2.ToPureTensor(), v2.SanitizeBoundingBoxes()], "after ToPureTensor boxes do not follow"),
    "images": ([v2.CenterCrop(20)], "samples are images of Pillow"),
    "function": ([lambda image, target: (image, target), *FLOAT], "is not a transform of torchvision's v2"),
    "format": ([v2.ConvertBoundingBoxFormat("CXCYWH"), *FLOAT], "ConvertBoundingBoxFormat moves boxes"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays_in_python(root, name):
    steps, why = STAYS[name]
    loader = stoker.DataLoader(wrapped(root, v2.Compose(steps)), 3, num_workers=0, collate_fn=pairs)
    assert not in_engine(loader) and why in str(loader._why_python)


def test_datasets_that_were_changed_stay_in_python(root):
    def why(data, **options):
        loader = stoker.DataLoader(data, 1, num_workers=0, **{"collate_fn": pairs, **options})
        assert not in_engine(loader)
        return str(loader._why_python)

    steps = v2.Compose([v2.Resize((30, 30)), *FLOAT])
    assert "target_keys" in why(wrapped(root, steps, ["boxes"]))
    assert "different numbers of boxes" in why(wrapped(root, steps), collate_fn=None)
    data = wrapped(root, steps)
    data._dataset.images[2] = data._dataset.images[3]
    assert "images or targets of the dataset were changed" in why(data)
    assert "None" in why(wrapped(root, None))
    data = wrapped(root, steps)
    loader = stoker.DataLoader(data, 2, num_workers=0, collate_fn=pairs)
    before = next(iter(loader))[1]
    data._dataset.targets.reverse()
    data._dataset.images.reverse()
    after = next(iter(loader))[1]
    assert not torch.equal(before[0]["boxes"], after[0]["boxes"])
    same(next(iter(loader)), next(iter(torch.utils.data.DataLoader(data, 2, collate_fn=pairs))))


def test_parts_of_several_datasets(root):
    one, plain = wrapped(root, v2.Compose(FLOAT)), wrapped(root, v2.Compose([*FLOAT, v2.ToPureTensor()]))
    data = torch.utils.data.ConcatDataset([one, torch.utils.data.Subset(one, [3, 1])])
    loader = stoker.DataLoader(data, 5, num_workers=0, collate_fn=pairs)
    assert in_engine(loader)
    for ours, theirs in zip(loader, torch.utils.data.DataLoader(data, 5, collate_fn=pairs), strict=True):
        same(ours, theirs)
    loader = stoker.DataLoader(torch.utils.data.ConcatDataset([one, plain]), 5, num_workers=0, collate_fn=pairs)
    assert not in_engine(loader) and "make different tensors" in str(loader._why_python)


def test_whole_numbers_are_refused_where_they_make_no_sense(root):
    data = stoker._ext.Dataset.from_pairs(root / "VOCdevkit" / "VOC2012", None, layout="voc boxes", set="train")
    for boxes in ("boxes=whole_points", "boxes=whole_", "boxes+labels=whole_xyxy", "boxes=whole_relative_xyxy"):
        with pytest.raises(ValueError, match="boxes:"):
            stoker._ext.Loader(data, stoker._ext.Pipeline(""), boxes=boxes)
