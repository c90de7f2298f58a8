# SPDX-License-Identifier: Apache-2.0
"""Albumentations in users' own datasets: its results for every step and seed, and nothing left of ours afterwards."""

from __future__ import annotations

import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
import torch
from conftest import picture
from PIL import Image

cv2 = pytest.importorskip("cv2")
A = pytest.importorskip("albumentations")
import albucore.functions  # noqa: E402
from albumentations.core import transforms_interface  # noqa: E402
from albumentations.pytorch import ToTensorV2  # noqa: E402
from stoker._lazy import albumentations as ours  # noqa: E402
from stoker._workers.early_rows import copy_row  # noqa: E402

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore::UserWarning")]

STEPS = {
    "normalize": lambda: [A.Normalize()],
    "own numbers": lambda: [A.Normalize((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))],
    "equal numbers": lambda: [A.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))],
    "by the image": lambda: [A.Normalize(normalization="image")],
    "by the channel": lambda: [A.Normalize(normalization="image_per_channel")],
    "between 0 and 1": lambda: [A.Normalize(normalization="min_max")],
    "other maximum": lambda: [A.Normalize(max_pixel_value=200.0)],
    "tensor": lambda: [A.Normalize(), ToTensorV2()],
    "bytes": lambda: [ToTensorV2(transpose_mask=True)],
    "floats": lambda: [A.ToFloat()],
    "floats of 100": lambda: [A.ToFloat(max_value=100.0)],
    "normalized floats": lambda: [A.ToFloat(), A.Normalize(max_pixel_value=1.0)],
    "crop": lambda: [A.RandomCrop(48, 64)],
    "centre": lambda: [A.CenterCrop(48, 64)],
    "resized crop": lambda: [A.RandomResizedCrop((48, 64))],
    "flips": lambda: [A.HorizontalFlip(), A.VerticalFlip()],
    "transpose": lambda: [A.Transpose()],
    "right angles": lambda: [A.RandomRotate90()],
    "square": lambda: [A.D4(p=1)],
    "pad": lambda: [A.PadIfNeeded(130, 140)],
    "reflected": lambda: [A.PadIfNeeded(130, 140, border_mode=cv2.BORDER_REFLECT_101)],
    "holes": lambda: [A.CoarseDropout(p=1), A.GridDropout(p=0.5)],
    "colours": lambda: [A.RandomBrightnessContrast(), A.RandomGamma(), A.HueSaturationValue(), A.RGBShift(), A.ToGray()],
    "one of": lambda: [A.OneOf([A.RandomRotate90(p=1), A.Transpose(p=1), A.InvertImg(p=1)], p=0.9), A.Normalize()],
    "some of": lambda: [A.SomeOf([A.RandomRotate90(p=1), A.VerticalFlip(p=1), A.Posterize(p=1)], 2), A.ToFloat()],
    "segmentation": lambda: [
        A.ShiftScaleRotate(), A.PadIfNeeded(96, 96), A.RandomCrop(96, 96), A.RandomRotate90(), A.HorizontalFlip(),
        A.RandomBrightnessContrast(), A.Normalize(), ToTensorV2(),
    ],
}  # fmt: skip
TARGETS = {"bbox_params": A.BboxParams("pascal_voc", label_fields=["labels"]), "keypoint_params": A.KeypointParams("xy")}


def sample(n, shape=(110, 90)):
    image = np.array(picture(n, *shape[::-1]))
    mask = (np.arange(image.size // 3).reshape(shape) % 7).astype(np.uint8)
    return {"image": image, "mask": mask, "bboxes": [[10, 10, 60, 70]], "labels": [n], "keypoints": [(20.0, 30.0)]}


def assert_same(wanted, found):
    assert type(found) is type(wanted)
    if isinstance(wanted, dict):
        assert wanted.keys() == found.keys()
        for key, value in wanted.items():
            assert_same(value, found[key])
    elif isinstance(wanted, (list, tuple)):
        assert len(wanted) == len(found)
        for one, other in zip(wanted, found, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, torch.Tensor):
        assert wanted.dtype == found.dtype and wanted.stride() == found.stride() and torch.equal(wanted, found)
    elif isinstance(wanted, np.ndarray):
        assert wanted.dtype == found.dtype and wanted.strides == found.strides
        assert wanted.flags.owndata == found.flags.owndata and wanted.flags.writeable == found.flags.writeable
        assert wanted.tobytes() == found.tobytes() and wanted.shape == found.shape
    else:
        assert wanted == found


def results(name, seed, **options):
    pipeline = A.Compose(STEPS[name](), seed=seed, **options)
    return [pipeline(**sample(n)) for n in range(6)]


@pytest.mark.parametrize("seed", [0, 1, 77])
@pytest.mark.parametrize("name", STEPS)
def test_every_step_gives_albumentations_result(name, seed):
    wanted = results(name, seed, **TARGETS)
    with stoker.lazy_images():
        for _ in range(2):  # the first call compares, the next ones are ours
            assert_same(wanted, results(name, seed, **TARGETS))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("shape", [(70, 80), (70, 80, 1), (70, 80, 3), (70, 80, 4), (1, 1, 3), (3, 70, 80, 3), (70, 0, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.uint16])
def test_functions_give_the_same_for_any_array(shape, dtype):
    rng = np.random.default_rng(5)
    image = (rng.random(shape) * 250).astype(dtype)
    mean, factor = (rng.random(shape[-1]).astype(np.float32) for _ in range(2))
    calls = [
        ("normalize_lut", (image, mean, factor)),
        ("normalize_lut", (image, 3.5, 0.25)),
        ("normalize_lut", (image, float("nan"), np.inf)),
        ("normalize_lut", (image,)),
        ("to_float_lut", (image,)),
        ("to_float_lut", (image, 300.0)),
        ("to_float_lut", (image, 0.0)),
        ("to_float_lut", (image, -0.0)),
        ("to_float_lut", (image, "much")),
    ]
    for name, args in calls:
        wanted = outcome(name, args)
        with stoker.lazy_images():
            for _ in range(3):
                assert_same(wanted, outcome(name, args))


def outcome(name, args):
    try:
        return getattr(albucore.functions, name)(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_normalize_with_random_numbers():
    rng = np.random.default_rng(17)
    for n in range(80):  # more than are kept
        mean, std = (tuple(rng.uniform(0.05, 1, 3).round(3)) for _ in range(2))
        step = A.Normalize(mean, std, max_pixel_value=float(rng.choice([255.0, 1.0, 100.0])))
        image = sample(n)["image"]
        wanted = step(image=image)
        with stoker.lazy_images():
            assert_same(wanted, step(image=image))
            assert_same(wanted, step(image=image))


def test_the_engine_works_after_one_comparison(monkeypatch):
    looked_up, copied = [], []
    before = ours._looked_up, ours._packed
    monkeypatch.setattr(ours, "_looked_up", lambda *args: looked_up.append(1) or before[0](*args))
    monkeypatch.setattr(ours, "_packed", lambda *args: copied.append(1) or before[1](*args))
    pipeline = A.Compose([A.Transpose(p=1), A.Normalize((0.31, 0.32, 0.33), (0.41, 0.42, 0.43))])
    pipeline(image=sample(0)["image"])
    assert not looked_up and not copied
    with stoker.lazy_images():
        for n in range(4):
            pipeline(image=sample(n)["image"])
    assert len(looked_up) == 4 and len(copied) == 4


def test_a_function_that_is_no_table_is_left_alone():
    calls = []

    def smooth(image, factor):
        calls.append(image.shape)
        return (image * np.float32(factor) + image.mean(dtype=np.float32)).astype(np.float32)

    wrapped = ours._by_table(smooth, lambda: True)
    for n in range(3):
        image = sample(n)["image"]
        assert_same(smooth(image, 2.0), wrapped(image, 2.0))
    assert calls[-1] == (110, 90, 3)


def test_a_copy_that_is_none_is_left_alone():
    wrapped = ours._contiguous(lambda image: image, lambda: True)
    view = sample(0)["image"][:, ::-1]
    assert wrapped(view) is view and wrapped(view) is view


def functions():
    return {
        "imread": cv2.imread,
        "imdecode": cv2.imdecode,
        "normalize_lut": albucore.functions.normalize_lut,
        "to_float_lut": albucore.functions.to_float_lut,
        "ensure_contiguous_output": transforms_interface.ensure_contiguous_output,
    }


BEFORE = functions()


class Segmentation(torch.utils.data.Dataset):
    """As training code has it."""

    def __init__(self, root, pipeline, fails=-1):
        self.files = []
        for n in range(24):
            picture(n, 120 + n, 100 + 2 * n).save(root / f"{n}.jpg", quality=90)
            self.files.append(str(root / f"{n}.jpg"))
        self.transform = pipeline
        self.fails = fails

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = cv2.imread(self.files[index])
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB) if index % 2 else image[..., ::-1]
        if index == self.fails:
            self.transform(image=image, mask=np.zeros((3, 3), np.uint8))
        out = self.transform(image=image, mask=image[..., 0] // 40)
        return out["image"], out["mask"], str(image.flags), index


def batches(loader):
    out = [[(x, y, list(text), n) for x, y, text, n in loader] for _ in range(2)]
    assert len(out[0]) == 6
    return out


def assert_same_batches(wanted, found):
    for epoch, other in zip(wanted, found, strict=True):
        for (x, y, text, n), (x2, y2, text2, n2) in zip(epoch, other, strict=True):
            assert torch.equal(x, x2) and x.stride() == x2.stride() and torch.equal(y, y2)
            assert text == text2 and torch.equal(n, n2)


SPAWNED = {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("segmentation", {}),
        ("tensor", {"num_workers": 2}),
        ("segmentation", {"num_workers": 2}),
        ("segmentation", {"num_workers": 2, "persistent_workers": True}),
        ("tensor", SPAWNED),
    ],
)
def test_a_dataset_gives_the_same_batches_as_with_torch(tmp_path, name, options):
    steps = [A.RandomCrop(90, 90), *STEPS[name]()]
    dataset = Segmentation(tmp_path, A.Compose(steps, seed=3))
    wanted = batches(torch.utils.data.DataLoader(dataset, batch_size=4, **options))
    dataset.transform = A.Compose(steps, seed=3)
    found = batches(stoker.DataLoader(dataset, batch_size=4, **options))
    assert_same_batches(wanted, found)
    assert functions() == BEFORE


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_is_albumentations_and_leaves_nothing_replaced(tmp_path, workers):
    dataset = Segmentation(tmp_path, A.Compose([A.RandomCrop(90, 90), A.Normalize(), ToTensorV2()], seed=1), fails=9)
    loader = stoker.DataLoader(dataset, batch_size=4, num_workers=workers)
    with pytest.raises(ValueError, match=r"Height and Width of image, mask or masks should be equal"):
        list(loader)
    assert functions() == BEFORE
    with pytest.raises(ValueError, match=r"Height and Width"):
        list(loader)
    assert functions() == BEFORE


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_of_the_engine_calls_albumentations(even_tree, workers):
    steps = [A.RandomCrop(30, 40), A.HorizontalFlip(), A.Morphological(p=0), A.Normalize(), ToTensorV2()]  # one in Python
    dataset = stoker.datasets.ImageFolder(even_tree, transform=A.Compose(steps, seed=6))
    loader = stoker.DataLoader(dataset, batch_size=5, num_workers=workers)
    images = torch.cat([x for x, _ in loader])
    reference = A.Compose(steps, seed=6)
    paths = sorted(even_tree.glob("*/*"))
    wanted = {}
    for worker in range(max(workers, 1)):  # each has a copy of the generators
        reference.set_random_seed(6)
        for batch in range(worker, 4, max(workers, 1)):
            for n in range(5 * batch, 5 * batch + 5):
                pixels = np.array(Image.open(paths[n]).convert("RGB"))
                wanted[n] = reference(image=pixels)["image"]
    assert images.shape == (20, 3, 30, 40)
    assert all(torch.equal(images[n], wanted[n]) for n in range(20))
    assert functions() == BEFORE


def test_a_replay_repeats_what_was_done():
    steps = [A.RandomCrop(60, 60), A.RandomRotate90(), A.Normalize()]
    pipeline = A.ReplayCompose(steps)
    pipeline.set_random_seed(4)
    first = pipeline(image=sample(1)["image"])
    with stoker.lazy_images():
        pipeline.set_random_seed(4)
        assert_same(first["image"], pipeline(image=sample(1)["image"])["image"])
        assert_same(first["image"], A.ReplayCompose.replay(first["replay"], image=sample(1)["image"])["image"])


def test_rows_are_copied_as_torch_copies_them():
    rng = np.random.default_rng(2)
    for shape in [(1, 1), (1, 7), (9, 1), (33, 50)]:
        image = torch.from_numpy(rng.random((*shape, 3), np.float32)).permute(2, 0, 1)
        variants = [
            image, image.contiguous(), image.flip(1), image[:, ::2], image.double(), image[:2], image[0],
            (image * 255).byte(), torch._neg_view(image), torch.complex(image, image).conj().imag,
        ]  # fmt: skip
        for value in variants:
            place = torch.full((4, *value.shape), 7, dtype=value.dtype)
            copy_row(place[1], value)
            assert torch.equal(place[1], value)
            assert (place[0] == 7).all() and (place[2:] == 7).all()
