# SPDX-License-Identifier: Apache-2.0
"""torchvision's segmentation datasets in wrap_dataset_for_transforms_v2: the engine's batches are torch's."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import stoker
import torch
from conftest import picture
from torchvision import datasets as TV
from torchvision import tv_tensors
from torchvision.transforms import v2


def save_pairs(root, folders, names):
    """Save images and masks, in folders with these endings and modes; all parts of a sample have one size."""
    for k, name in enumerate(names):
        size = 60 + 7 * k, 90 - 5 * k
        for folder, ending, mode in folders:
            path = root / folder / f"{name}{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if mode == "RGB":
                picture(k, *size).save(path)
                continue
            mask = PIL.Image.fromarray(np.random.default_rng(k).integers(0, 22, size[::-1], np.uint8))
            if mode == "P":
                mask = mask.convert("P")
                mask.putpalette(bytes(range(256)) * 3)
            mask.save(path)


NAMES = [f"2007_{k:06}" for k in range(7)]
FLOAT = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
TYPES = v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}, scale=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("wrapped")
    voc = root / "VOCdevkit" / "VOC2012"
    save_pairs(voc, [("JPEGImages", ".jpg", "RGB"), ("SegmentationClass", ".png", "P")], NAMES)
    (voc / "ImageSets" / "Segmentation").mkdir(parents=True)
    (voc / "ImageSets" / "Segmentation" / "train.txt").write_text("\n".join(NAMES) + "\n")
    (voc / "ImageSets" / "Main").mkdir(parents=True)
    (voc / "ImageSets" / "Main" / "train.txt").write_text("\n".join(NAMES) + "\n")
    return root


def wrapped(root, transforms, **options):
    return TV.wrap_dataset_for_transforms_v2(TV.VOCSegmentation(root, transforms=transforms, **options))


def in_engine(loader):
    return loader.explain().rows[0].where.startswith("engine")


def same(ours, theirs):
    assert type(ours) is type(theirs) is list and len(ours) == len(theirs) == 2
    for one, other in zip(ours, theirs, strict=True):
        assert type(one) is type(other) is torch.Tensor and one.dtype == other.dtype and one.shape == other.shape
    assert torch.equal(ours[1], theirs[1]) and torch.equal(ours[0], theirs[0])


STEPS = {
    "resize": [v2.Resize((37, 53))],
    "enlarged": [v2.Resize((301, 233)), v2.CenterCrop((290, 180))],
    "flips": [v2.Resize((40, 40)), v2.RandomHorizontalFlip(1.0), v2.RandomVerticalFlip(1.0)],
    "crop": [v2.Resize(64), v2.CenterCrop((50, 90))],
    "border": [v2.CenterCrop(30), v2.Pad([1, 2, 3, 4], fill={tv_tensors.Mask: 255, "others": 7})],
    "both": [v2.Resize((20, 30)), v2.Pad(3, fill=9)],
    "one value": [v2.Resize((20, 30)), v2.Pad(3, fill={tv_tensors.Mask: 21})],

    "nested": [v2.Compose([v2.Resize((25, 25))]), v2.RandomApply([v2.ColorJitter(0.0)], p=1.0)],
    "normalized": [v2.Resize((25, 25))],
}


@pytest.mark.parametrize("last", [FLOAT, [v2.ToImage(), TYPES], [*FLOAT, v2.ToPureTensor()], [v2.ToTensor()]], ids=range(4))
@pytest.mark.parametrize("name", STEPS)
def test_batches_are_torchs(root, name, last):
    more = [v2.Normalize([0.5] * 3, [0.2] * 3)] if name == "normalized" else []
    steps = [*STEPS[name], *last[:2], *more, *last[2:]]
    data = wrapped(root, v2.Compose(steps))
    loader = stoker.DataLoader(data, 3, num_workers=1)
    assert in_engine(loader), str(loader.explain())
    for ours, theirs in zip(loader, torch.utils.data.DataLoader(data, 3), strict=True):
        same(ours, theirs)


@pytest.mark.parametrize("seed", range(3))
def test_images_and_masks_have_one_draw(root, tmp_path, seed):
    """Images that have their masks' numbers in each channel."""
    numbers = np.random.default_rng(seed).integers(0, 256, (61, 47), np.uint8)
    voc = tmp_path / "VOCdevkit" / "VOC2012"
    for folder in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (voc / folder).mkdir(parents=True)
    PIL.Image.fromarray(np.stack([numbers] * 3, 2)).save(voc / "JPEGImages" / "a.jpg", "PNG")
    PIL.Image.fromarray(numbers).save(voc / "SegmentationClass" / "a.png")
    (voc / "ImageSets" / "Segmentation" / "train.txt").write_text("a\n" * 8)
    steps = [v2.RandomCrop(30, padding=4, fill=5), v2.RandomHorizontalFlip(), v2.RandomVerticalFlip()]
    loader = stoker.DataLoader(wrapped(tmp_path, v2.Compose([*steps, *FLOAT])), 8, num_workers=1, shuffle=True)
    assert in_engine(loader)
    images, masks = next(iter(loader))
    assert torch.equal((images * 255).round().to(torch.uint8)[:, :1], masks) and len(masks.flatten(1).unique(dim=0)) > 1


def test_sizes_of_all_kinds_are_resized_as_torch_does(root, tmp_path):
    rng = np.random.default_rng(2)
    voc = tmp_path / "VOCdevkit" / "VOC2012"
    for folder in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (voc / folder).mkdir(parents=True)
    sizes = [(1, 1), (1, 9), (500, 3), (333, 500), (7, 7), *(tuple(map(int, rng.integers(1, 700, 2))) for _ in range(12))]
    for k, size in enumerate(sizes):
        PIL.Image.new("RGB", size[::-1]).save(voc / "JPEGImages" / f"{k}.jpg", "PNG")
        PIL.Image.fromarray(rng.integers(0, 256, size, np.uint8)).save(voc / "SegmentationClass" / f"{k}.png")
    (voc / "ImageSets" / "Segmentation" / "train.txt").write_text("".join(f"{k}\n" for k in range(len(sizes))))
    for size in ((1, 1), (13, 7), (224, 224), (601, 299)):
        data = wrapped(tmp_path, v2.Compose([v2.Resize(size), v2.CenterCrop((min(size[0], 200), size[1])), *FLOAT]))
        for (_, ours), (_, theirs) in zip(stoker.DataLoader(data, 17), torch.utils.data.DataLoader(data, 17), strict=True):
            assert torch.equal(ours, theirs)


STAYS = {
    "rotation": ([v2.RandomRotation(10), *FLOAT], "RandomRotation moves masks with an arithmetic"),
    "conversion": ([v2.ToImage(), v2.ConvertImageDtype(torch.float32)], "ConvertImageDtype moves masks"),
    "function": ([lambda image, mask: (image, mask), *FLOAT], "is not a transform of torchvision's v2"),
    "choice": ([v2.RandomChoice([v2.CenterCrop(20)]), *FLOAT], "RandomChoice moves masks"),
    "fill": ([v2.Pad(3, fill=2.5), *FLOAT], "Pad fills masks with 2.5"),
    "types": ([v2.ToImage(), v2.ToDtype({tv_tensors.Image: torch.float32}, scale=True)], "ToDtype has no type for Mask"),
    "plain": ([*FLOAT, v2.ToPureTensor(), v2.CenterCrop(20)], "after ToPureTensor CenterCrop moves the image alone"),
    "images": ([v2.CenterCrop(20)], "samples are images of Pillow"),
    "none": (None, "transforms are not torchvision's v2"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays_in_python(root, name):
    steps, why = STAYS[name]
    loader = stoker.DataLoader(wrapped(root, None if steps is None else v2.Compose(steps)), 2)
    assert not in_engine(loader) and any(why in row.why for row in loader.explain().rows), str(loader.explain())


@pytest.mark.parametrize("mode", ["1", "RGB", "I;16"])
def test_masks_of_other_types_stay_in_python(tmp_path, mode):
    voc = tmp_path / "VOCdevkit" / "VOC2012"
    save_pairs(voc, [("JPEGImages", ".jpg", "RGB"), ("SegmentationClass", ".png", "L")], ["a"])
    mask = PIL.Image.open(voc / "SegmentationClass" / "a.png").convert("I" if mode == "I;16" else mode)
    mask.convert(mode).save(voc / "SegmentationClass" / "a.png")
    (voc / "ImageSets" / "Segmentation").mkdir(parents=True)
    (voc / "ImageSets" / "Segmentation" / "train.txt").write_text("a\n")
    data = wrapped(tmp_path, v2.Compose([v2.CenterCrop(20), *FLOAT]))
    loader = stoker.DataLoader(data, 1)
    assert not in_engine(loader) and any(row.why.startswith("masks are images of mode ") for row in loader.explain().rows)
    same(next(iter(loader)), next(iter(torch.utils.data.DataLoader(data, 1))))


def test_remedies(root):
    plain = stoker.DataLoader(TV.VOCSegmentation(root, transforms=v2.CenterCrop(9)), 2).explain()
    boxes = stoker.DataLoader(TV.wrap_dataset_for_transforms_v2(TV.VOCDetection(root, transforms=v2.CenterCrop(9))), 2).explain()
    assert plain.rows[0].remedy == "use stoker.datasets.VOCSegmentation"
    assert boxes.rows[0].remedy.startswith("use stoker.datasets.VOCDetection")


def test_the_image_alone_is_moved_in_python(root):
    for given in ({"transform": v2.CenterCrop(9)}, {"transform": v2.CenterCrop(9), "target_transform": v2.CenterCrop(9)}):
        data = TV.wrap_dataset_for_transforms_v2(TV.VOCSegmentation(root, **given))
        assert not in_engine(stoker.DataLoader(data, 2))


class Mine(TV.VOCSegmentation):
    def __getitem__(self, index):
        return super().__getitem__(0)


def test_datasets_that_are_changed_stay_in_python(root, monkeypatch):
    steps = v2.Compose([v2.CenterCrop(20), *FLOAT])
    assert not in_engine(stoker.DataLoader(TV.wrap_dataset_for_transforms_v2(Mine(root, transforms=steps)), 2))
    data = wrapped(root, steps)
    monkeypatch.setattr(data, "_wrapper", lambda index, sample: sample)
    assert not in_engine(stoker.DataLoader(data, 2))
    data = wrapped(root, steps)
    loader = stoker.DataLoader(data, 7)
    assert in_engine(loader)
    monkeypatch.setattr(TV.VOCSegmentation, "__getitem__", lambda self, index: None)
    assert not in_engine(stoker.DataLoader(data, 2))


def test_changes_are_noticed(root):
    data = wrapped(root, v2.Compose([v2.CenterCrop(20), *FLOAT]))
    loader = stoker.DataLoader(data, 7)
    before = next(iter(loader))
    data._dataset.images.reverse()
    data._dataset.targets.reverse()
    after = next(iter(loader))
    assert all(torch.equal(one, other.flip(0)) for one, other in zip(before, after, strict=True))
    data.transforms = v2.Compose([v2.CenterCrop(10), *FLOAT])
    assert next(iter(loader))[1].shape == (7, 1, 10, 10)
    data.transforms = v2.Compose([v2.RandomRotation((90, 90)), v2.CenterCrop(10), *FLOAT])
    assert next(iter(loader))[1].shape == (7, 1, 10, 10) and not in_engine(loader)


def test_subsets_and_options(root):
    data = wrapped(root, v2.Compose([v2.CenterCrop(20), *FLOAT]))
    part = torch.utils.data.ConcatDataset([torch.utils.data.Subset(data, [5, 1]), data])
    loader = stoker.DataLoader(part, 4, num_workers=2)
    assert in_engine(loader)
    for ours, theirs in zip(loader, torch.utils.data.DataLoader(part, 4), strict=True):
        same(ours, theirs)
    assert not in_engine(stoker.DataLoader(data, 2, collate_fn=lambda batch: tuple(zip(*batch))))
    with pytest.raises(ValueError, match="output='numpy' is not possible with masks"):
        stoker.DataLoader(data, 2, output="numpy")
    ragged = wrapped(root, v2.Compose(FLOAT))
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(stoker.DataLoader(ragged, 7))
    images, masks = next(iter(stoker.DataLoader(ragged, 7, ragged="list")))
    assert all(mask.shape == (1, *image.shape[1:]) for image, mask in zip(images, masks, strict=True))


def test_pets_and_cityscapes(tmp_path):
    steps = v2.Compose([v2.Resize((20, 30)), *FLOAT])
    names = ["Abyssinian_1", "beagle_2"]
    pets = tmp_path / "oxford-iiit-pet"
    save_pairs(pets, [("images", ".jpg", "RGB"), ("annotations/trimaps", ".png", "L")], names)
    (pets / "annotations" / "trainval.txt").write_text("Abyssinian_1 1 1 1\nbeagle_2 2 2 1\n")
    cities = ["aachen/aachen_0_0", "bonn/bonn_0_1"]
    save_pairs(
        tmp_path, [("leftImg8bit/train", "_leftImg8bit.png", "RGB"), ("gtFine/train", "_gtFine_labelIds.png", "L")], cities
    )
    sets = [
        TV.OxfordIIITPet(tmp_path, target_types="segmentation", transforms=steps),
        TV.Cityscapes(tmp_path, target_type="semantic", transforms=steps),
    ]
    for data in map(TV.wrap_dataset_for_transforms_v2, sets):
        loader = stoker.DataLoader(data, 2)
        assert in_engine(loader)
        same(next(iter(loader)), next(iter(torch.utils.data.DataLoader(data, 2))))
    other = TV.OxfordIIITPet(tmp_path, target_types=["category", "segmentation"], transforms=steps)
    assert not in_engine(stoker.DataLoader(TV.wrap_dataset_for_transforms_v2(other), 2))
