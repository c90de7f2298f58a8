# SPDX-License-Identifier: Apache-2.0
"""transforms= of datasets with masks or boxes: own steps get the image with its target, and every part of a sample is moved
by one draw, before them (in the engine) and behind them (by torchvision's v2).

Images here have their mask's numbers in each channel, so that the mask must equal the image whatever is drawn.
"""

from __future__ import annotations

import io
import json
import random
import tarfile

import numpy as np
import pytest
import stoker
import torch
import torchvision.transforms as V1
from conftest import picture
from PIL import Image, ImageChops, ImageFilter, ImageOps
from stoker import datasets as D
from stoker import transforms as T
from test_split import equal
from torchvision import tv_tensors
from torchvision.transforms import v2 as V2

NEAREST = V1.InterpolationMode.NEAREST


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("joint")
    rng = np.random.default_rng(5)
    (root / "images").mkdir()
    (root / "masks").mkdir()
    about = {"images": [], "annotations": [], "categories": [{"id": 3, "name": "x"}]}
    with tarfile.open(root / "two.tar", "w") as file:
        for k in range(10):
            numbers = rng.integers(0, 256, (40 + k, 52 - k), np.uint8)
            Image.fromarray(np.stack([numbers] * 3, 2)).save(root / "images" / f"{k}.png")
            Image.fromarray(numbers).save(root / "masks" / f"{k}.png")
            about["images"].append({"id": k, "file_name": f"{k}.png"})
            about["annotations"] += [
                {"id": 9 * k + n, "image_id": k, "category_id": 3, "bbox": [3 + n, 4, 20, 30 - n], "area": 9.0 + n}
                for n in range(k % 3 + 1)
            ]
            for field, folder in (("png", "images"), ("a.png", "masks"), ("b.png", "masks")):
                data = (root / folder / f"{k}.png").read_bytes()
                member = tarfile.TarInfo(f"{k}.{field}")
                member.size = len(data)
                file.addfile(member, io.BytesIO(data))
    (root / "boxes.json").write_text(json.dumps(about))
    return root


class Roll:
    def __call__(self, image, mask):
        assert image.mode == "RGB" and mask.mode == "L" and image.size == mask.size
        n = int(torch.randint(20, ()))
        return ImageChops.offset(image, n), ImageChops.offset(mask, n)


def keep(image, target):
    return image, target


def masks(root, transforms):
    return D.ImageMaskFolder(root / "images", root / "masks", transforms=transforms)


PIPELINES = {
    "crops": lambda M: M.Compose([M.RandomCrop(30), Roll(), M.RandomHorizontalFlip(), M.RandomCrop(20, 4), M.ToTensor()]),
    "first": lambda M: M.Compose([Roll(), M.RandomVerticalFlip(), M.CenterCrop(20), M.ToTensor()]),
    "last": lambda M: M.Compose([M.CenterCrop(24), M.RandomHorizontalFlip(), Roll(), M.ToTensor()]),
    "inside": lambda M: M.Compose([M.Compose([M.CenterCrop(24), Roll()]), M.Compose([M.RandomVerticalFlip(), M.ToTensor()])]),
    "turned": lambda M: M.Compose([keep, M.RandomRotation(90, NEAREST, expand=True), M.CenterCrop(20), M.ToTensor()]),
    "chosen": lambda M: M.Compose([
        M.RandomChoice([M.CenterCrop(36), Roll()]), M.RandomOrder([Roll(), M.RandomCrop(30)]),
        M.RandomApply([Roll(), M.RandomVerticalFlip(1.0)], 0.5), M.CenterCrop(20), M.ToTensor(),
    ]),
    "applied": lambda M: M.Compose([Roll(), M.RandomApply([M.RandomCrop(30)], 0.5), M.CenterCrop(20), M.ToTensor()]),
}


@pytest.mark.parametrize("module", [T, V1, V2])
@pytest.mark.parametrize("name", list(PIPELINES))
def test_masks_move_with_their_images(root, name, module):
    loader = stoker.DataLoader(masks(root, PIPELINES[name](module)), 4, shuffle=True, seed=3)
    seen = [list(loader) for _ in range(3)]
    for images, moved in (batch for epoch in seen for batch in epoch):
        assert torch.equal((images * 255).round().to(torch.uint8)[:, 1], moved) and moved.dtype is torch.uint8
    assert not equal(seen[0], seen[1])


class Values:
    """Proved steps of one's own, which get the image alone."""

    def __init__(self, p):
        self.p = p
        self.flip = V1.RandomHorizontalFlip(self.p)

    def __call__(self, img):
        if random.random() < self.p:
            img = ImageOps.solarize(img.convert("RGB"), 256)
            img = img.filter(ImageFilter.GaussianBlur(random.uniform(0, 0)))
        return self.flip(img)


@pytest.mark.parametrize("module", [T, V1, V2])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_own_steps_that_are_proved_move_all_parts_in_either_place(root, module, p):
    for first, last in ((Values(p), Roll()), (Roll(), Values(p)), (Values(p), module.RandomCrop(25))):
        whole = module.Compose([first, last, module.RandomApply([Values(p)], 0.5), module.CenterCrop(20), module.ToTensor()])
        seen = list(stoker.DataLoader(masks(root, whole), 5, shuffle=True, seed=3))
        for images, moved in seen:
            assert torch.equal((images * 255).round().to(torch.uint8)[:, 1], moved)


def test_own_blurs_blur_the_image_alone(root):
    blur = stoker.DataLoader(masks(root, T.Compose([keep, Blur(), T.ToTensor(), T.CenterCrop(20)])), 5)
    plain = stoker.DataLoader(masks(root, T.Compose([keep, T.ToTensor(), T.CenterCrop(20)])), 5)
    for (images, moved), (sharp, same) in zip(blur, plain, strict=True):
        assert torch.equal(moved, same) and images.std() < sharp.std() / 2


class Blur:
    def __call__(self, img):
        return img.filter(ImageFilter.GaussianBlur(random.uniform(1, 2)))


@pytest.mark.parametrize("name", ["crops", "applied"])
def test_the_number_of_workers_changes_nothing(root, name):
    def batches(workers):
        loader = stoker.DataLoader(masks(root, PIPELINES[name](T)), 3, shuffle=True, num_workers=workers, seed=4)
        return list(loader)

    assert equal(batches(0), batches(2)) and equal(batches(0), batches(1))


def test_borders_have_the_masks_number(root):
    pad = T.Compose([keep, T.Pad(5, fill=200, mask_fill=7), T.CenterCrop((70, 70)), T.ToTensor()])
    images, moved = next(iter(stoker.DataLoader(masks(root, pad), 10)))
    assert (moved == 7).sum() > 100 and (images == 200 / 255).all(1).sum() > 100
    engine = D.ImageMaskFolder(root / "images", root / "masks", T.Compose(pad.transforms[1:]))
    assert equal([images, moved], next(iter(stoker.DataLoader(engine, 10))))


def test_what_the_engine_has_runs_there(root):
    whole = T.Compose([T.RandomCrop(30), T.RandomHorizontalFlip(), T.ToTensor()])
    loader = stoker.DataLoader(masks(root, whole), 5, seed=2)
    assert loader.explain().rows[0].where.startswith("engine")
    given = D.ImageMaskFolder(root / "images", root / "masks", whole)
    assert equal(list(loader), list(stoker.DataLoader(given, 5, seed=2)))


def test_a_function_for_everything(root):
    def transforms(image, mask):
        return V1.functional.to_tensor(ImageOps.mirror(image)), torch.from_numpy(np.array(ImageOps.mirror(mask))).long()

    images, moved = masks(root, transforms)[3]
    plain = D.ImageMaskFolder(root / "images", root / "masks")[3]
    assert np.array_equal(moved, plain[1][:, ::-1]) and moved.dtype == np.int64
    assert torch.equal((images * 255).round().to(torch.uint8)[0], torch.from_numpy(plain[0][:, ::-1, 0].copy()))


class Damage(V2.Transform):
    """torchvision's way to write a transform of one's own: `transform` is called for each part."""

    def transform(self, part, params):
        return part if isinstance(part, tv_tensors.Mask) else ImageOps.invert(part)


@pytest.mark.parametrize("step", [Damage(), V2.RandomApply([V2.JPEG(1), Damage()], 1.0), V2.RandomChoice([Damage()])])
def test_transforms_of_v2_leave_masks_as_they_are(root, step):
    """They would take a mask that is Pillow's for an image."""
    data = masks(root, V2.Compose([V2.CenterCrop(20), step, V2.ToImage()]))
    plain = D.ImageMaskFolder(root / "images", root / "masks", V2.Compose([V2.CenterCrop(20), V2.ToImage()]))
    for (image, mask), (before, expected) in zip(data, plain, strict=True):
        assert np.array_equal(mask, expected) and not torch.equal(image, before)


def test_after_a_tensor_is_made(root):
    def negative(image, mask):
        assert isinstance(image, torch.Tensor) and mask.mode == "L"
        return -image, mask

    steps = [T.CenterCrop(20), T.ToTensor(), negative, T.Normalize([0.5] * 3, [0.5] * 3)]
    [images, moved] = next(iter(stoker.DataLoader(masks(root, T.Compose(steps)), 10)))
    expected = (-(moved.float() / 255) - 0.5) / 0.5
    assert torch.allclose(images, expected[:, None].expand_as(images), atol=1e-6)


def test_several_masks(root):
    def swap(image, target):
        assert list(target) == ["a.png", "b.png"]
        return image, {"a.png": ImageOps.invert(target["b.png"]), "b.png": target["a.png"]}

    steps = T.Compose([T.RandomCrop(20), swap, T.RandomHorizontalFlip(), T.ToTensor()])
    data = D.WebDataset(root / "two.tar", ("png", "a.png", "b.png"), masks=["a.png", "b.png"], transforms=steps)
    for images, a, b in stoker.DataLoader(data, 4, seed=1):
        assert torch.equal((images * 255).round().to(torch.uint8)[:, 0], b) and torch.equal(255 - a, b)


def test_boxes(root):
    seen = []

    def check(image, target):
        boxes = target["boxes"]
        assert isinstance(boxes, tv_tensors.BoundingBoxes) and boxes.canvas_size == image.size[::-1]
        assert list(target) == ["boxes", "labels", "area", "iscrowd"] and len(target["labels"]) == len(boxes)
        seen.append(len(boxes))
        return image, target

    after = [T.RandomHorizontalFlip(1.0), T.SanitizeBoundingBoxes(9, 80.0), T.ToTensor()]
    data = [
        D.CocoDetection(root / "images", root / "boxes.json", transforms=T.Compose([T.Resize((60, 60)), check, *after])),
        D.CocoDetection(root / "images", root / "boxes.json", T.Compose([T.Resize((60, 60)), *after])),
    ]
    assert equal(*(list(stoker.DataLoader(one, 4)) for one in data)) and seen == [k % 3 + 1 for k in range(10)]


def test_boxes_that_are_removed_take_their_labels_along(root):
    def shrink(image, target):
        boxes = torch.as_tensor(target["boxes"]).clone()
        boxes[1:, 2] = boxes[1:, 0] + 1  # too narrow
        return image, {**target, "boxes": boxes}

    steps = T.Compose([shrink, T.SanitizeBoundingBoxes(4), T.RandomVerticalFlip(1.0), T.ToTensor()])
    data = D.CocoDetection(root / "images", root / "boxes.json", transforms=steps)
    for sample in data:
        assert [len(part) for part in sample[1:5]] == [1] * 4 and sample[3][0] == 9.0
        assert sample[1].dtype == np.float32 and type(sample[1]) is np.ndarray


def test_boxes_turn_in_the_engine_and_behind_a_step_of_ones_own(root):
    turn = [T.RandomRotation((90, 90), expand=True), T.ToTensor()]
    made = []
    for own in ([], [keep]):
        steps = T.Compose([T.Resize((40, 60)), *own, *turn])
        data = D.CocoDetection(root / "images", root / "boxes.json", transforms=steps)
        made.append([(image, boxes) for image, boxes, *_ in data])
        assert sum(len(batch[1]) for batch in stoker.DataLoader(data, 5)) == 10
    for (image, boxes), (other, others) in zip(*made, strict=True):
        assert torch.equal(image, torch.as_tensor(other)) and image.shape == (3, 60, 40)
        assert np.allclose(boxes, others, rtol=0, atol=1e-4)


def test_boxes_change_their_format_behind_a_step_of_ones_own(root):
    for own in ([], [keep]):
        steps = T.Compose([*own, T.ConvertBoundingBoxFormat("cxcywh"), T.ToTensor()])
        data = D.CocoDetection(root / "images", root / "boxes.json", transforms=steps)
        plain = D.CocoDetection(root / "images", root / "boxes.json")
        for sample, before in zip(data, plain, strict=True):
            left, top, right, bottom = np.asarray(before[1]).T
            assert np.allclose(np.asarray(sample[1]).T, [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top])


def test_boxes_of_another_format_reach_steps_of_ones_own_as_corners(root, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    picture(1, 200, 100).save(tmp_path / "images" / "1.png")
    (tmp_path / "labels" / "1.txt").write_text("1 0.5 0.5 0.1 0.2\n")
    seen = []

    def look(image, target):
        seen.append((str(target["boxes"].format), target["boxes"].tolist(), sorted(target)))
        return image, target

    data = D.YOLODetection(tmp_path / "images", transforms=T.Compose([look, T.ToTensor()]))
    assert np.asarray(data[0][1]).tolist() == [[90, 40, 110, 60]]
    assert seen == [("BoundingBoxFormat.XYXY", [[90, 40, 110, 60]], ["boxes", "labels"])]


def test_key_points_and_steps_of_ones_own_are_refused(root):
    steps = T.Compose([keep, T.ToTensor()])
    with pytest.raises(NotImplementedError, match="key points only follow steps of the engine"):
        D.CocoDetection(root / "images", root / "boxes.json", transforms=steps, keypoints=True)


def test_subsets_and_concatenations(root):
    data = masks(root, PIPELINES["crops"](T))
    for other in (D.Subset(data, [3, 1]), D.Concat([data, data]), torch.utils.data.Subset(data, [2, 5])):
        images, moved = next(iter(stoker.DataLoader(other, 2, seed=1, seed_by="sample")))
        assert torch.equal((images * 255).round().to(torch.uint8)[:, 1], moved)


def test_workers_of_another_start_method(root):
    data = masks(root, PIPELINES["crops"](T))
    loader = stoker.DataLoader(data, 5, num_workers=1, multiprocessing_context="spawn")
    assert sum(len(moved) for _, moved in loader) == 10


def test_what_is_refused(root):
    folders = root / "images", root / "masks"
    with pytest.raises(NotImplementedError, match="without its mask: pass transforms="):
        D.ImageMaskFolder(*folders, T.Compose([Roll(), T.ToTensor()]))
    with pytest.raises(ValueError, match="both given"):
        D.ImageMaskFolder(*folders, T.ToTensor(), transforms=keep)
    with pytest.raises(ValueError, match="does not have"):
        D.WebDataset(root / "two.tar", ("png",), transforms=keep)
    with pytest.raises(TypeError, match="neither a transform nor a function"):
        D.ImageMaskFolder(*folders, transforms=3)
    with pytest.raises(TypeError, match="must return two values, the image and its mask"):
        masks(root, lambda image, mask: image)[0]
    with pytest.raises(TypeError, match="must return a dict with a.png, b.png"):
        fields = ("png", "a.png", "b.png")
        D.WebDataset(root / "two.tar", fields, masks=fields[1:], transforms=lambda image, target: (image, {}))[0]
