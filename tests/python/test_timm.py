# SPDX-License-Identifier: Apache-2.0
"""timm's transforms in datasets that the engine runs: equal bytes where nothing is drawn, and where something is, outcomes
that timm can draw, as often. (In users' own datasets timm draws: test_lazy_timm.py.)"""

from __future__ import annotations

import collections
import math
import platform
import random

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
from conftest import picture
from PIL import Image, ImageOps
from stoker import _ext
from stoker import transforms as T
from stoker._steps.single import as_pnm
from test_transform_draws import same_distribution
from transform_parity import PILLOW, apply, chw, coordinates, pictures

timm_data = pytest.importorskip("timm.data")
from timm.data import auto_augment, create_transform, random_erasing  # noqa: E402
from timm.data import transforms as timm_transforms  # noqa: E402
from torchvision import transforms as V  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

MANY = 100_000
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
HPARAMS = {"translate_const": 20, "img_mean": (124, 116, 104)}
blends_twice = pytest.mark.skipif(
    platform.machine() in ("aarch64", "arm64"), reason="Pillow's aarch64 build rounds blends once, pipelines twice"
)


def draws(transform, image, count: int = MANY, seed: int = 5) -> np.ndarray:
    """What the engine makes of as many copies of an image."""
    loader = _ext.Loader(
        _ext.Dataset.from_memory([as_pnm(image)] * count),
        _ext.Pipeline(T.pipeline_text(transform)),
        batch_size=1000,
        workers=0,
        seed=seed,
        pillow=PILLOW,
    )
    loader.start(0)
    made = []
    while (batch := loader.next()) is not None:
        images = batch.images
        made += [stoker.to_numpy(one).copy() for one in (images if isinstance(images, list) else [images])]
    return made if images is None or isinstance(images, list) else np.concatenate(made)


def timms(transform, image, count: int, seed: int = 3) -> list:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    return [transform(image) for _ in range(count)]


def same_shares(ours: collections.Counter, theirs: collections.Counter) -> None:
    """Outcomes are as frequent in two samples, within 5 standard deviations; those that are rare are taken together."""
    a, b = sum(ours.values()), sum(theirs.values())
    rare = {outcome for outcome in ours | theirs if (ours[outcome] + theirs[outcome]) / (a + b) * min(a, b) < 20}
    groups = [rare, *({outcome} for outcome in (ours | theirs).keys() - rare)]
    for group in groups:
        mine, other = (sum(one[outcome] for outcome in group) for one in (ours, theirs))
        p = (mine + other) / (a + b)
        assert abs(mine / a - other / b) <= 5 * math.sqrt(p * (1 - p) * (1 / a + 1 / b)), (p, len(group))


@pytest.fixture
def posterize_to_black(monkeypatch):
    """timm asks for no bits at all where a magnitude is full, which is black in Pillow 12 and an error in Pillow 13. The
    engine makes black of it."""
    original = ImageOps.posterize

    def posterize(image, bits):
        return original(image, bits) if bits > 0 else Image.new(image.mode, image.size)

    monkeypatch.setattr(ImageOps, "posterize", posterize)


# ---- nothing is drawn ----

EVAL = {
    "default": {},
    "bicubic": {"interpolation": "bicubic", "crop_pct": 0.95, "input_size": 48},
    "lanczos": {"interpolation": "lanczos", "input_size": (3, 40, 40)},
    "squash": {"crop_mode": "squash", "input_size": (3, 40, 56), "interpolation": "bicubic"},
    "border": {"crop_mode": "border", "input_size": 60, "crop_pct": 1.0},
    "border, smaller": {"crop_mode": "border", "input_size": (3, 50, 70), "crop_pct": 0.9, "interpolation": "bicubic"},
    "not square": {"input_size": (3, 30, 70), "crop_pct": 0.8},
    "trimmed": {"input_size": 20, "crop_border_pixels": 4},
    "bytes": {"input_size": 33, "normalize": False},
    "prefetcher": {"input_size": 33, "use_prefetcher": True},
    "no augmentation": {"is_training": True, "no_aug": True, "input_size": 40, "interpolation": "random"},
}


def result_of(run):
    try:
        return run()
    except Exception:
        return None


@pytest.mark.parametrize("name", EVAL)
def test_nothing_is_drawn(name):
    transform = create_transform(**EVAL[name])
    for image in pictures(24, 4, 150):
        theirs = result_of(lambda image=image: transform(Image.fromarray(image)).numpy())
        ours = result_of(lambda image=image: apply(transform, image))
        assert (ours is None) == (theirs is None), image.shape
        if theirs is not None:
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs), image.shape


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("size", [9, (40, 70)])
def test_center_crop_or_pad(size, mode):
    transform = timm_transforms.CenterCropOrPad(size, fill=(5, 60, 200) if mode == "constant" else 0, padding_mode=mode)
    for image in pictures(20, 7, 90):
        theirs = result_of(lambda image=image: chw(transform(Image.fromarray(image))))
        if theirs is not None:
            assert np.array_equal(apply(transform, image), theirs), image.shape


def test_to_numpy():
    transform = V.Compose([timm_transforms.ResizeKeepRatio((20, 31), longest=0.3), timm_transforms.ToNumpy()])
    image = picture(1, 50, 40)
    assert np.array_equal(apply(transform, np.asarray(image)), transform(image))


@pytest.mark.parametrize("config", [{}, {"auto_augment": "rand-m9-mstd0.5-inc1", "re_prob": 0.25}, {"auto_augment": "3a"}, {"train_crop_mode": "rkrr"}])
def test_datasets_of_torchvision_compile(tree, config):
    """Also with several copies of the transform's own objects, which nothing changes."""
    transform = create_transform(32, is_training=True, **config)
    before = repr(transform)
    loader = stoker.DataLoader(ImageFolder(tree, transform), 5, seed=1)
    assert all(row.where.startswith("engine") for row in loader.explain().rows if row.stage in ("read", "decode", "collate"))
    images, _ = next(iter(loader))
    assert images.shape == (5, 3, 32, 32) and images.dtype == torch.float32
    assert repr(transform) == before


def test_eval_of_a_model_in_a_loader(tree):
    config = timm_data.resolve_data_config({}, pretrained_cfg={"input_size": (3, 48, 48), "crop_pct": 0.9, "interpolation": "bicubic"})
    data = ImageFolder(tree, create_transform(**config))
    ours = [images.clone() for images, _ in stoker.DataLoader(data, 4)]
    theirs = [images for images, _ in tud.DataLoader(data, 4)]
    assert len(ours) == len(theirs) and all(map(torch.equal, ours, theirs))


# ---- the changes of RandAugment and AutoAugment ----

NAMES = [name for name in auto_augment.NAME_TO_OP if name != "GaussianBlurRand"]  # draws a radius: below


@blends_twice
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("magnitude", "options"), [
    (9, {"interpolation": FILTERS["bicubic"]}),
    (0, {}),
    (3.7, {"interpolation": FILTERS["bilinear"], "translate_pct": 0.3, "img_mean": (0, 1, 255)}),
    (10, {"interpolation": Image.Resampling.NEAREST}),
    (17, {"magnitude_max": 20}),
])  # fmt: skip
def test_a_change_is_timms(posterize_to_black, name, magnitude, options):
    image = picture(3, 37, 28)
    op = auto_augment.AugmentOp(name, prob=0.7, magnitude=magnitude, hparams=HPARAMS | options)
    theirs = collections.Counter(chw(one).tobytes() for one in timms(op, image, 600))
    ours = collections.Counter(one.tobytes() for one in draws(one_op(op), np.asarray(image), 600))
    assert ours.keys() == theirs.keys()
    same_shares(ours, theirs)


def one_op(op):
    return auto_augment.AutoAugment([[op]])


@blends_twice
@pytest.mark.parametrize("options", [{"magnitude_std": 0.5}, {"magnitude_std": math.inf}, {"magnitude_std": 4, "magnitude_max": 12}])
def test_distribution_of_magnitudes(options):
    """The values of a pixel show the factor."""
    pixel = Image.new("RGB", (1, 1), (100, 100, 100))
    op = auto_augment.AugmentOp("Brightness", prob=0.8, magnitude=9, hparams=HPARAMS | options)
    ours = draws(one_op(op), np.asarray(pixel))[:, 0, 0, 0]
    theirs = [one.getpixel((0, 0))[0] for one in timms(op, pixel, MANY // 2)]
    assert len(ours) == MANY
    same_distribution(ours, theirs, "brightness")


def test_distribution_of_blurs():
    """The values show the radius; and for each radius they are Pillow's."""
    point = Image.new("RGB", (9, 9))
    point.putpixel((4, 4), (255, 255, 255))
    op = auto_augment.AugmentOp("GaussianBlurRand", prob=0.9, magnitude=8, hparams=HPARAMS | {"magnitude_std": 3})
    ours = draws(one_op(op), np.asarray(point))
    theirs = [chw(one) for one in timms(op, point, MANY // 4)]
    for y, x in ((4, 4), (4, 5), (3, 5), (4, 6)):
        same_distribution([one[0, y, x] for one in ours], [one[0, y, x] for one in theirs], (y, x))
    known = {one.tobytes() for one in theirs}
    assert np.mean([one.tobytes() in known for one in ours]) > 0.999


@blends_twice
@pytest.mark.parametrize("config", [
    "rand-m9-n2", "rand-m9-n3-inc1-p0.8", "rand-m6-n2-tweights-p1", "rand-m6-n4-tweights-inc1", "rand-m3-n1-mmax20", "rand-m5-n2-t3aw-inc1", "rand-m5-n2-t3a"
])  # fmt: skip
def test_distribution_of_rand_augment(posterize_to_black, config):
    """Which changes are chosen, and in which order: every outcome on an image of a few pixels."""
    image = picture(8, 5, 4)
    transform = auto_augment.rand_augment_transform(config, dict(HPARAMS, interpolation=FILTERS["bilinear"]))
    ours = collections.Counter(one.tobytes() for one in draws(transform, np.asarray(image)))
    theirs = collections.Counter(chw(one).tobytes() for one in timms(transform, image, MANY // 10))
    same_shares(ours, theirs)


@blends_twice
@pytest.mark.parametrize("policy", ["v0", "v0r", "original", "originalr", "original-mstd0.5"])
def test_distribution_of_auto_augment(posterize_to_black, policy):
    image = picture(9, 5, 4)
    transform = auto_augment.auto_augment_transform(policy, dict(HPARAMS))
    ours = collections.Counter(one.tobytes() for one in draws(transform, np.asarray(image)))
    theirs = collections.Counter(chw(one).tobytes() for one in timms(transform, image, MANY // 10))
    same_shares(ours, theirs)


# ---- sizes and boxes ----


def windows(images) -> list[tuple[int, ...]]:
    """Where in `coordinates` an image of nearest pixels comes from: left, top, right, bottom."""
    return [(*one[:2, 0, 0].astype(int), *one[:2, -1, -1].astype(int)) for one in images]


def same_windows(ours, theirs) -> None:
    for k, side in enumerate(("left", "top", "right", "bottom")):
        same_distribution([one[k] for one in ours], [one[k] for one in theirs], side)
    same_distribution([(r - l) * (b - t) for l, t, r, b in ours], [(r - l) * (b - t) for l, t, r, b in theirs], "area")


@pytest.mark.parametrize(("scale", "ratio"), [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.5, 0.9), (0.4, 3.0))])
def test_distribution_of_resized_crops(scale, ratio):
    image = coordinates(90, 70)
    transform = timm_transforms.RandomResizedCropAndInterpolation(40, scale, ratio, "nearest")
    theirs = windows(map(chw, timms(transform, Image.fromarray(image), 5000)))
    same_windows(windows(draws(transform, image)), theirs)


def test_random_interpolation_is_one_of_two():
    image = picture(3, 40, 30)
    random_one = timm_transforms.RandomResizedCropAndInterpolation(24, (1, 1), (4 / 3, 4 / 3), "random")
    made = {name: chw(image.resize((24, 24), filter_)).tobytes() for name, filter_ in FILTERS.items()}
    ours = collections.Counter(one.tobytes() for one in draws(random_one, np.asarray(image), 10_000))
    assert set(ours) == set(made.values())
    same_shares(ours, collections.Counter(dict.fromkeys(made.values(), 5000)))


@pytest.mark.parametrize("area", [True, False])
def test_distribution_of_resize_keep_ratio(area):
    image = coordinates(60, 45)
    options = {"random_scale_prob": 0.6, "random_scale_range": (0.8, 1.1), "random_aspect_prob": 0.4}
    transform = timm_transforms.ResizeKeepRatio((50, 70), 0.3, "nearest", random_scale_area=area, **options)
    ours = [one.shape[1:] for one in draws(transform, image)]
    theirs = [one.size[::-1] for one in timms(transform, Image.fromarray(image), 20_000)]
    for k in range(2):
        same_distribution([size[k] for size in ours], [size[k] for size in theirs], k)
    same_distribution([h / w for h, w in ours], [h / w for h, w in theirs], "shape")


@pytest.mark.parametrize("mode", ["constant", "reflect"])
@pytest.mark.parametrize("size", [(4, 5), (12, 14), (4, 14)])
def test_distribution_of_random_crop_or_pad(size, mode):
    image = coordinates(10, 8)
    transform = timm_transforms.RandomCropOrPad(size, 0, mode)
    ours = collections.Counter(one.tobytes() for one in draws(transform, image))
    theirs = collections.Counter(chw(one).tobytes() for one in timms(transform, Image.fromarray(image), 10_000))
    assert ours.keys() == theirs.keys()
    same_shares(ours, theirs)


def erased(tensor: np.ndarray) -> tuple[int, ...]:
    """How many values were changed, in how many rows and columns, and the first of these."""
    changed = (tensor != 0.5).any(0)
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    return (changed.sum(), len(rows), len(columns), rows[0], columns[0]) if len(rows) else (0, 0, 0, -1, -1)


class Half:
    """Makes a tensor of halves, as the engine's Normalize does of zeros."""

    def __call__(self, image):
        return torch.full((3, image.height, image.width), 0.5)


@pytest.mark.parametrize("options", [
    {"probability": 0.25}, {"max_count": 3, "probability": 0.9, "max_area": 0.6}, {"min_count": 2, "mode": "rand"},
    {"mode": "pixel", "probability": 1.0, "min_aspect": 0.5, "max_aspect": 3.0},
])  # fmt: skip
def test_distribution_of_random_erasing(options):
    erasing = random_erasing.RandomErasing(device="cpu", **options)
    image = np.zeros((22, 30, 3), np.uint8)
    compiled = V.Compose([V.ToTensor(), V.Normalize([-0.5] * 3, [1.0] * 3), erasing])
    ours = draws(compiled, image, 40_000)
    theirs = [one.numpy() for one in timms(V.Compose([Half(), erasing]), Image.fromarray(image), 10_000)]
    boxes, other_boxes = [erased(one) for one in ours], [erased(one) for one in theirs]
    for k, what in enumerate(("area", "rows", "columns", "top", "left")):
        same_distribution([box[k] for box in boxes], [box[k] for box in other_boxes], what)
    values = [one[one != 0.5] for one in ours[:4000]], [one[one != 0.5] for one in theirs[:4000]]
    distinct, other_distinct = ([len(np.unique(one)) for one in all_] for all_ in values)
    same_distribution(distinct, other_distinct, "distinct values")
    firsts, other_firsts = ([one[0] for one in all_ if len(one)] for all_ in values)
    same_distribution(firsts, other_firsts, "values")


# ---- what the engine does not have ----


class MyCrop(timm_transforms.RandomResizedCropAndInterpolation):
    pass


def changed(transform, attribute, value):
    setattr(transform, attribute, value)
    return transform


def my_contrast(image, factor, **_):
    return image


BLOCKED = {
    "augmix": (lambda: auto_augment.augment_and_mix_transform("augmix-m5-w17"), "it has 17 chains"),
    "a class of one's own": (lambda: MyCrop(24), "MyCrop"),
    "a method of one's own": (
        lambda: changed(timm_transforms.MaybePILToTensor(), "__call__", my_contrast), "was set on this MaybePILToTensor"
    ),
    "a function of one's own": (
        lambda: one_op(changed(auto_augment.AugmentOp("Contrast"), "aug_fn", my_contrast)), "does not have timm's Contrast"
    ),
    "something else": (lambda: auto_augment.RandAugment([len]), "is not one of timm's changes"),
    "no translation": (
        lambda: one_op(changed(auto_augment.AugmentOp("TranslateX"), "hparams", {})), "no translate_const"
    ),
    "many layers": (lambda: auto_augment.rand_augment_transform("rand-n100000000"), "too few ops"),
    "two filters": (
        lambda: one_op(auto_augment.AugmentOp("Rotate", hparams={"interpolation": (0, 2)})), "bilinear and bicubic"
    ),
    "erasing for a GPU": (lambda: V.Compose([V.ToTensor(), random_erasing.RandomErasing()]), "device='cpu'"),
    "many boxes": (
        lambda: V.Compose([V.ToTensor(), random_erasing.RandomErasing(device="cpu", max_count=100)]), "from 1 to 8"
    ),
    "behind a tensor": (
        lambda: V.Compose([V.ToTensor(), timm_transforms.ResizeKeepRatio(30)]), "comes after ToTensor"
    ),
    "noise in bytes": (
        lambda: V.Compose([V.PILToTensor(), random_erasing.RandomErasing(device="cpu", mode="rand")]), "comes after PILToTensor"
    ),
    "floats of bytes": (
        lambda: V.Compose([V.PILToTensor(), timm_transforms.MaybeToTensor()]), "comes after PILToTensor"
    ),
    "an array, then more": (
        lambda: V.Compose([timm_transforms.ToNumpy(), V.Normalize([0.5] * 3, [0.5] * 3)]), "comes after ToNumpy"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKED)
def test_what_cannot_be_compiled_says_so(name):
    make, why = BLOCKED[name]
    with pytest.raises(NotImplementedError, match=why):
        T.pipeline_text(make())


@pytest.mark.parametrize("config", [{"auto_augment": "augmix-m5-w17-d1"}, {"re_prob": 0.5, "re_count": 20}])
def test_in_python_the_results_are_timms(tree, config):
    """With the reason in the plan; the rest of the steps still run in the engine."""
    data = ImageFolder(tree, create_transform(32, is_training=True, **config))
    loader = stoker.DataLoader(data, 4)
    assert any("cannot be compiled" in row.why for row in loader.explain().rows)

    def batches(kind):
        random.seed(1), np.random.seed(2), torch.manual_seed(3)
        return [images.clone() for images, _ in kind(data, 4)]

    assert all(map(torch.equal, batches(stoker.DataLoader), batches(tud.DataLoader)))
