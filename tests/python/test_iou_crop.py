# SPDX-License-Identifier: Apache-2.0
"""RandomIoUCrop: for the same random numbers torchvision's crop of the image and of all that follows it."""

from __future__ import annotations

import collections
import math

import numpy as np
import pytest
import stoker
from test_boxes import any_boxes, npy, png, write

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")

from stoker import transforms as T  # noqa: E402
from test_transform_draws import same_distribution  # noqa: E402
from torchvision import tv_tensors  # noqa: E402

FIELDS = ("png", "boxes.npy", "labels.npy", "seg.png", "points.npy")
BOXES = {"boxes.npy": ["labels.npy"]}


class Numbers:
    """What the engine draws for one sample of the first epoch in the first step: it takes the place of torch's functions."""

    def __init__(self, seed: int, sample: int) -> None:
        blocks = np.arange(1 << 11, dtype=np.uint64)
        counter = [np.full_like(blocks, sample), np.zeros_like(blocks), np.zeros_like(blocks), blocks]
        keys, low = [seed, 0], np.uint64(32)
        for _ in range(10):
            first, second = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
            counter = [(second >> low) ^ counter[1] ^ np.uint64(keys[0]), second & np.uint64(0xFFFFFFFF),
                       (first >> low) ^ counter[3] ^ np.uint64(keys[1]), first & np.uint64(0xFFFFFFFF)]  # fmt: skip
            keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
        self._left = iter(np.stack(counter, 1).reshape(-1).tolist())

    def rand(self, count):
        return torch.tensor([(next(self._left) >> 8) / 2**24 for _ in range(count)])

    def randint(self, low, high, size):
        product = next(self._left) * high
        while product % 2**32 < 2**32 % high:
            product = next(self._left) * high
        return torch.full(size, product >> 32)


def sample(rng, count, height, width):
    boxes = any_boxes(rng, count, height, width)
    if count:
        boxes[0] = [0.1 * width, 0.2 * height, 0.8 * width, 0.9 * height]
    image = rng.integers(0, 256, (height, width, 3), np.uint8)
    points = rng.uniform(0, 60, (count, 2, 2)).astype(np.float32)
    return image, boxes, rng.integers(0, 90, count), rng.integers(0, 9, (height, width), np.uint8), points


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    rng = np.random.default_rng(3)
    given = [sample(rng, k % 6, *map(int, rng.integers(10, 70, 2))) for k in range(48)]
    stored = [(png(one[0]), npy(one[1]), npy(one[2]), png(one[3]), npy(one[4])) for one in given]
    return write(tmp_path_factory.mktemp("iou") / "a.tar", stored, FIELDS), given


def theirs(transform, one):
    image, boxes, labels, mask, points = one
    inputs = {
        "image": tv_tensors.Image(torch.from_numpy(image.transpose(2, 0, 1).copy())),
        "boxes": tv_tensors.BoundingBoxes(torch.from_numpy(boxes.reshape(-1, 4)), format="XYXY", canvas_size=image.shape[:2]),
        "labels": torch.from_numpy(labels),
        "mask": tv_tensors.Mask(torch.from_numpy(mask)),
        "points": tv_tensors.KeyPoints(torch.from_numpy(points), canvas_size=image.shape[:2]),
    }
    out = transform(inputs)
    return [out[name].as_subclass(torch.Tensor) for name in ("image", "boxes", "labels", "mask", "points")]


@pytest.mark.parametrize(("transform", "workers"), [
    (v2.RandomIoUCrop(trials=20), 2), (v2.RandomIoUCrop(0.1, 0.7, 0.3, 3.0, [0.0, 0.05, 0.2, 2.0], 7), 0),
    (v2.RandomIoUCrop(0.9, 0.2, trials=9), 0), (v2.RandomIoUCrop(sampler_options=[1.0]), 2),
])  # fmt: skip
def test_the_same_numbers_give_torchvisions_crop(shard, transform, workers, monkeypatch):
    path, given = shard
    ours = v2.Compose([transform, v2.PILToTensor()])
    data = stoker.datasets.WebDataset(path, FIELDS, ours, boxes=BOXES, masks=["seg.png"], keypoints=["points.npy"])
    made = [one for batch in stoker.DataLoader(data, 7, num_workers=workers, seed=5) for one in zip(*batch, strict=True)]
    cropped = 0
    for k, (one, got) in enumerate(zip(given, made, strict=True)):
        numbers = Numbers(5, k)
        monkeypatch.setattr(torch, "rand", numbers.rand)
        monkeypatch.setattr(torch, "randint", numbers.randint)
        want = theirs(transform, one)
        for ours_, theirs_ in zip(got, want, strict=True):
            assert torch.equal(ours_, theirs_), (k, one[0].shape)
        cropped += want[0].shape[1:] != one[0].shape[:2]
    assert cropped > 15 or transform.options == [1.0]


def test_boxes_outside_of_the_crop_are_removed(shard):
    path, given = shard
    steps = [v2.RandomHorizontalFlip(), v2.RandomIoUCrop(), v2.RandomVerticalFlip(1.0)]
    both = [v2.SanitizeBoundingBoxes(labels_getter=None)], []
    loaders = [
        stoker.DataLoader(stoker.datasets.WebDataset(path, FIELDS[:3], v2.Compose([*steps, *last, v2.PILToTensor()]), boxes=BOXES), 1, seed=2)
        for last in both
    ]  # fmt: skip
    removed = 0
    for (image, boxes, labels), (again, all_boxes, all_labels) in zip(*loaders, strict=True):
        assert torch.equal(image[0], again[0])
        sides = all_boxes[0][:, 2:] - all_boxes[0][:, :2]
        kept = (sides >= 1).all(1) & (sides.prod(1) >= 1) & (all_boxes[0] >= 0).all(1)
        kept &= (all_boxes[0] <= torch.tensor([again.shape[3], again.shape[2]] * 2)).all(1)
        assert torch.equal(boxes[0], all_boxes[0][kept]) and torch.equal(labels[0], all_labels[0][kept])
        removed += int((all_boxes[0][:, 2:] <= all_boxes[0][:, :2]).all(1).sum())
    assert removed > 20


def test_crops_are_distributed_as_torchvisions(tmp_path):
    height, width, repeats = 60, 80, 300
    y, x = np.mgrid[:height, :width]
    image = np.stack([x, y, 0 * x], 2).astype(np.uint8)
    boxes = np.array([[5, 10, 45, 50], [50, 5, 75, 20], [60, 40, 70, 58]], np.float32)
    path = write(tmp_path / "a.tar", [(png(image), npy(boxes), npy(np.arange(3)))] * repeats, FIELDS)
    data = stoker.datasets.WebDataset(path, FIELDS[:3], T.Compose([T.RandomIoUCrop(trials=10), T.PILToTensor()]), boxes=BOXES)
    ours = []
    for images, _, _ in stoker.DataLoader(data, 50):
        for one in images:
            (left, top), (right, bottom) = one[:2, 0, 0].tolist(), one[:2, -1, -1].tolist()
            ours.append((left, top, right - left + 1, bottom - top + 1))
    torch.manual_seed(0)
    transform, drawn = v2.RandomIoUCrop(trials=10), []
    inputs = [
        torch.zeros(3, height, width, dtype=torch.uint8),
        tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=(height, width)),
    ]
    for _ in range(repeats):
        made = transform.make_params(inputs)
        drawn.append((made["left"], made["top"], made["width"], made["height"]) if made else (0, 0, width, height))
    whole = [sum(one == (0, 0, width, height) for one in each) / repeats for each in (ours, drawn)]
    assert abs(whole[0] - whole[1]) < 4 * math.sqrt(2 * 0.2 * 0.8 / repeats)
    for k, name in enumerate(["left", "top", "width", "height"]):
        same_distribution([one[k] for one in ours], [one[k] for one in drawn], name)


def test_images_of_a_pixel_and_images_without_boxes_stay_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    shapes = [(1, 1), (1, 90), (90, 1), (2, 2), (30, 40)]
    samples = [sample(rng, k, *shape) for shape in shapes for k in (0, 2)]
    path = write(tmp_path / "a.tar", [(png(one[0]), npy(one[1]), npy(one[2])) for one in samples], FIELDS)
    data = stoker.datasets.WebDataset(path, FIELDS[:3], T.Compose([T.RandomIoUCrop(), T.ToTensor()]), boxes=BOXES)
    for (image, boxes, _), one in zip(stoker.DataLoader(data, 1), samples, strict=True):
        height, width = one[0].shape[:2]
        if not len(one[1]) or min(height, width) == 1:
            assert image.shape[2:] == (height, width) and np.array_equal(boxes[0], one[1].reshape(-1, 4))
    without = v2.Compose([v2.RandomIoUCrop(sampler_options=[0.5]), v2.ToImage()])  # torchvision never returns
    data = stoker.datasets.WebDataset(path, FIELDS[:3], without, boxes=BOXES)
    with pytest.raises(ValueError, match="random_iou_crop: no crop of an image of 1 x 1 with 0 boxes was found"):
        next(iter(stoker.DataLoader(data, 1)))


def test_it_needs_one_field_of_boxes(shard):
    path, _ = shard
    transform = T.Compose([T.RandomIoUCrop(), T.ToTensor()])
    for boxes, why in ((None, "there is no field"), ("boxes.npy,labels.npy", "there are several fields")):
        data = stoker.datasets.WebDataset(path, FIELDS[:3], transform, boxes=boxes)
        with pytest.raises(ValueError, match=f"depends on the boxes of the sample, of which {why}: name one"):
            next(iter(stoker.DataLoader(data, 2)))
    with pytest.raises(ValueError, match="of which there is no field"):
        transform(np.zeros((9, 9, 3), np.uint8))


def test_each_of_several_crops_is_its_own(shard):
    """A crop of a crop, either of them left out at times: the box around each object's pixels is the object's."""
    path, given = shard
    steps = [T.RandomIoUCrop(0.5), T.RandomApply([T.RandomIoUCrop(0.4, 0.9)], 0.5), T.RandomHorizontalFlip()]
    data = stoker.datasets.WebDataset(path, FIELDS[:4], T.Compose([*steps, T.PILToTensor()]), boxes=BOXES, masks=["seg.png"])
    shapes = collections.Counter()
    for image, _, _, mask in stoker.DataLoader(data, 1, seed=4):
        assert image.shape[2:] == mask.shape[1:]
        shapes[image.shape] += 1
    assert len(shapes) > 30


@pytest.mark.parametrize("transform", [
    v2.RandomIoUCrop(max_scale=1.5), v2.RandomIoUCrop(min_scale=-0.1), v2.RandomIoUCrop(trials=0),
    v2.RandomIoUCrop(sampler_options=[0.5] * 17), v2.RandomIoUCrop(sampler_options=[]), v2.RandomIoUCrop(sampler_options=[math.nan]),
])  # fmt: skip
def test_what_the_engine_does_not_do_stays_in_python(transform):
    with pytest.raises(NotImplementedError, match="cannot be compiled"):
        T.pipeline_text(v2.Compose([transform, v2.ToImage()]))


def test_arguments_become_torchvisions():
    given = T.RandomIoUCrop(0.2, 0.8, 0.4, 1.5, [0.3, 1.0], 9)
    assert T.pipeline_text(v2.RandomIoUCrop(0.2, 0.8, 0.4, 1.5, [0.3, 5.0], 9)) == T.pipeline_text(given)
    stoker._ext.Pipeline(T.pipeline_text(given))


def test_what_only_python_has_comes_behind_it(shard):
    """The engine crops, and hands over an image whose pixels are already in the order of Pillow's."""
    path, given = shard

    def nothing(image, target):
        assert image.size == target["boxes.npy"].canvas_size[::-1]
        return image, target

    own = [T.RandomIoUCrop(), nothing, T.PILToTensor()]
    data = stoker.datasets.WebDataset(path, FIELDS[:3], transforms=T.Compose(own), boxes=BOXES)
    whole = stoker.datasets.WebDataset(path, FIELDS[:3], T.Compose([own[0], own[2]]), boxes=BOXES)
    layouts = []
    batch_of = data._batch_of

    def noted(index, text, *args, **named):
        batch = batch_of(index, text, *args, **named)
        made = stoker._base.tensors.to_numpy(batch.images[0] if batch.ragged else batch.images)
        layouts.append(np.moveaxis(made, -3, -1).flags.c_contiguous)
        return batch

    data._batch_of = noted
    for k in range(8):
        torch.manual_seed(k)
        got = data[k]
        torch.manual_seed(k)
        assert all(np.array_equal(a, b) for a, b in zip(got, whole[k], strict=True))
    assert layouts == [True] * 8
