# SPDX-License-Identifier: Apache-2.0
"""timm's transforms in users' own datasets: timm draws, from the generators it draws from, and the results are timm's for
every seed, whatever part of the work the engine does."""

from __future__ import annotations

import io

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
from conftest import picture
from lazy_files import IMAGES, encoded, opened, seed_all, series, values
from loading import MEAN, STD
from PIL import Image

pytest.importorskip("timm.data")
from timm.data import auto_augment, create_transform, random_erasing  # noqa: E402
from timm.data import transforms as timm_transforms  # noqa: E402
from torchvision import transforms as V  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


def training(**options):
    return create_transform(48, is_training=True, **options)


TRANSFORMS = {
    "training": training(),
    "random interpolation": training(interpolation="random", hflip=0.7, vflip=0.4),
    "rand augment": training(auto_augment="rand-m7-mstd0.5-inc1", re_prob=0.5),
    "rand augment, not increasing": training(auto_augment="rand-m8-n3-p0.8", interpolation="random"),
    "rand augment, weights": training(auto_augment="rand-m5-n3-tweights-inc1-mstd101", re_prob=0.6, re_mode="rand", re_count=3),
    "rand augment, 3aw": training(auto_augment="rand-m5-n3-t3aw-inc1"),
    "auto augment": training(auto_augment="original"),
    "auto augment, noise": training(auto_augment="original-mstd0.5", re_prob=0.4, re_mode="pixel"),
    "v0": training(auto_augment="v0r"),
    "augmix": training(auto_augment="augmix-m4-w2-d2"),
    "augmix, blended": training(auto_augment="augmix-m4-b1"),
    "three augment": training(auto_augment="3a", color_jitter=0.3),
    "SimCLR": training(color_jitter=(0.4, 0.4, 0.4, 0.1), color_jitter_prob=0.8, grayscale_prob=0.2, gaussian_blur_prob=0.5),
    "keep ratio": training(train_crop_mode="rkrc", interpolation="random"),
    "keep ratio, random crop": training(train_crop_mode="rkrr"),
    "bytes": training(use_prefetcher=True, auto_augment="rand-m5-inc1"),
    "array": V.Compose([timm_transforms.RandomResizedCropAndInterpolation(32), timm_transforms.ToNumpy()]),
    "eval": create_transform(40, interpolation="bicubic", crop_pct=0.9),
    "eval, squash": create_transform(40, crop_mode="squash"),
    "eval, border": create_transform(160, crop_mode="border", crop_border_pixels=3),
    "eval, not square": create_transform((3, 40, 60), normalize=False),
    "no augmentation": create_transform(40, is_training=True, no_aug=True),
    "one by one": V.Compose([timm_transforms.RandomCropOrPad(130, 5), auto_augment.AugmentOp("Rotate"), timm_transforms.MaybeToTensor()]),
    "mixed": V.Compose([V.RandomRotation(10), timm_transforms.ResizeKeepRatio(50), V.ToTensor(), V.Normalize(MEAN, STD),
                        random_erasing.RandomErasing(device="cpu")]),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS, ids=lambda name: name.replace(" ", "-").replace(",", ""))
def test_results_and_generators_are_timms_for_every_seed(name):
    transform = TRANSFORMS[name]
    for seed in range(6):
        plain = caught(transform, seed)
        with stoker.lazy_images():
            ours = caught(transform, seed)
        assert ours == plain, seed


def caught(transform, seed):
    """Pillow 13 has an error for magnitudes that leave no bits to posterize."""
    try:
        return series(transform_of_arrays(transform), seed)
    except ValueError as error:
        return str(error)


def transform_of_arrays(transform):
    def run(image):
        out = transform(image)
        return torch.from_numpy(out.copy()) if isinstance(out, np.ndarray) else out

    return run


@pytest.mark.parametrize("name", ["training", "eval", "eval, squash", "eval, not square", "no augmentation", "keep ratio, random crop"])
def test_the_engine_makes_the_whole_sample(name, engine_runs):
    """One call for each image: also the first and the last step, and means that are tensors."""
    for kind in ("jpeg", "png"):
        with stoker.lazy_images():
            TRANSFORMS[name](opened(IMAGES[kind]))  # the functions that change values are compared once
            engine_runs.clear()
            seed_all(1)
            TRANSFORMS[name](opened(IMAGES[kind]))
        assert len(engine_runs) == 1, kind


def test_augmix_decodes_once(engine_runs):
    with stoker.lazy_images():
        TRANSFORMS["augmix"](opened(IMAGES["jpeg"]))
    assert engine_runs == [2, 0]  # the crop and the resize, and the tensor


def test_means_that_change_are_seen():
    normalize = V.Normalize(torch.tensor(MEAN), torch.tensor(STD))
    transform = V.Compose([timm_transforms.MaybeToTensor(), normalize])
    with stoker.lazy_images():
        first = transform(opened(IMAGES["jpeg"]))
        normalize.mean += 0.25
        second = transform(opened(IMAGES["jpeg"]))
    assert torch.equal(second, transform(opened(IMAGES["jpeg"]))) and not torch.equal(first, second)


class Shouts(timm_transforms.MaybeToTensor):
    def __call__(self, pic):
        return super().__call__(pic) * 2


class Draws:
    """A change of one's own in timm's RandAugment, which looks at the pixels and changes them in place."""

    def __call__(self, image):
        image.paste((255, 0, 0), (0, 0, 5, 5))
        return image


@pytest.mark.parametrize("transform", [
    V.Compose([V.Resize(40), Shouts()]),
    V.Compose([auto_augment.RandAugment([Draws()]), V.Resize(40), timm_transforms.MaybeToTensor()]),
    V.Compose([auto_augment.AutoAugment([[Draws()], [auto_augment.AugmentOp("Invert")]]), timm_transforms.MaybeToTensor()]),
])  # fmt: skip
def test_own_classes_run_as_written(transform):
    for data in IMAGES.values():
        seed_all(2)
        plain = values(transform(opened(data)))
        with stoker.lazy_images():
            seed_all(2)
            assert values(transform(opened(data))) == plain


def test_the_users_image_is_not_changed():
    changes = V.Compose([auto_augment.RandAugment([Draws()]), timm_transforms.MaybeToTensor()])
    plain = opened(IMAGES["png"])
    with stoker.lazy_images():
        image = opened(IMAGES["png"])
        TRANSFORMS["rand augment"](image)
    assert image.tobytes() == plain.tobytes()
    with stoker.lazy_images():
        image = opened(IMAGES["png"])
        changes(image)
    changes(plain)
    assert image.tobytes() == plain.tobytes()


def test_nothing_is_left_behind():
    before = timm_transforms.MaybeToTensor.__call__, auto_augment.AugMixAugment.__call__, F.to_tensor
    with stoker.lazy_images():
        TRANSFORMS["augmix"](opened(IMAGES["jpeg"]))
        assert timm_transforms.MaybeToTensor.__call__ is not before[0]
    assert (timm_transforms.MaybeToTensor.__call__, auto_augment.AugMixAugment.__call__, F.to_tensor) == before


# ---- loaders ----


class Photographs(tud.Dataset):
    """As users write it."""

    def __init__(self, transform):
        self.files = [encoded(picture(seed, 90 + seed, 70)) for seed in range(12)]
        self.transform = transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = Image.open(io.BytesIO(self.files[index])).convert("RGB")
        return self.transform(image), index


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["rand augment", "three augment", "array", "bytes"])
def test_own_datasets_give_timms_batches(name, workers):
    data = Photographs(TRANSFORMS[name])

    def batches(kind):
        seed_all(11)
        return [(images.clone(), labels.tolist()) for images, labels in kind(data, 4, shuffle=True, num_workers=workers)]

    ours, theirs = batches(stoker.DataLoader), batches(tud.DataLoader)
    assert all(a.dtype == b.dtype and torch.equal(a, b) and c == d for (a, c), (b, d) in zip(ours, theirs, strict=True))
