# SPDX-License-Identifier: Apache-2.0
"""Random transforms in users' own datasets: the numbers that torchvision draws, from the generators it draws them from.
So results are equal to torchvision's for every seed, and an image and a mask that are transformed with the same seed
stay a pair, whichever of them the engine makes."""

from __future__ import annotations

import io
import random
import re
import warnings

import numpy as np
import pytest
import stoker
import torch
from conftest import picture
from loading import MEAN, STD
from PIL import Image, ImageFilter

T = pytest.importorskip("torchvision.transforms")
from lazy_files import FILE, IMAGES, RAMP, both, encoded, generators, opened, seed_all, series, values  # noqa: E402
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


class MyBlur:
    """A step as users write it, which draws from Python's generator."""

    def __call__(self, image):
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))


class MyShift:
    """One that draws from NumPy's."""

    def __call__(self, image):
        return Image.fromarray(np.roll(np.asarray(image), np.random.randint(0, 30), axis=1))


RANDOM = {
    "crop": both("RandomCrop", 60),
    "padded crop": both("RandomCrop", 60, padding=8),
    "crop of small images": both("RandomCrop", 200, pad_if_needed=True, padding_mode="reflect"),
    "resized crop": both("RandomResizedCrop", 48),
    "bicubic": both("RandomResizedCrop", (40, 56), interpolation=T.InterpolationMode.BICUBIC),
    "flip": both("RandomHorizontalFlip"),
    "vertical flip": both("RandomVerticalFlip", 0.4),
    "jitter": both("ColorJitter", 0.4, 0.4, 0.4, 0.2),
    "brightness": both("ColorJitter", brightness=0.7),
    "grey": both("RandomGrayscale", 0.5),
    "blur": both("GaussianBlur", 5, sigma=(0.1, 2.0)),
    "rotation": both("RandomRotation", 30),
    "rotation and room": both("RandomRotation", 90, T.InterpolationMode.BICUBIC, expand=True, fill=7),
    "right angles": both("RandomRotation", (90, 90), expand=True),
    "affine": both("RandomAffine", 20, (0.1, 0.1), (0.8, 1.2), 5),
    "smooth affine": both("RandomAffine", 20, (0.1, 0.1), (0.8, 1.2), (-3, 4, -5, 6), T.InterpolationMode.BILINEAR, center=(9, 7)),
    "perspective": both("RandomPerspective", 0.4, 0.7),
    "rough perspective": both("RandomPerspective", 0.9, 1.0, T.InterpolationMode.NEAREST),
    "invert": both("RandomInvert"),
    "posterize": both("RandomPosterize", 3),
    "solarize": both("RandomSolarize", 100),
    "sharpness": both("RandomAdjustSharpness", 2),
    "autocontrast": both("RandomAutocontrast"),
    "equalize": both("RandomEqualize"),
    "trivial augment": both("TrivialAugmentWide"),
    "rand augment": both("RandAugment"),
    "auto augment": both("AutoAugment"),
    "augmix": both("AugMix"),
    "apply": [
        T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomHorizontalFlip()], 0.6),
        v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomHorizontalFlip()], 0.6),
    ],
    "choice": [
        T.RandomChoice([T.RandomCrop(60), T.Resize(60), T.RandomRotation(10)]),
        v2.RandomChoice([v2.RandomCrop(60), v2.Resize(60), v2.RandomRotation(10)]),
    ],
    "order": [
        T.RandomOrder([T.RandomCrop(60), T.RandomHorizontalFlip(), T.ColorJitter(0.3)]),
        v2.RandomOrder([v2.RandomCrop(60), v2.RandomHorizontalFlip(), v2.ColorJitter(0.3)]),
    ],
    "photometric": [v2.RandomPhotometricDistort(), v2.RandomChannelPermutation()],
    "zoom out": [v2.RandomZoomOut(), v2.RandomResize(40, 90), v2.ScaleJitter((80, 80)), v2.RandomShortestSize([50, 60])],
    "own steps": [T.Compose([MyBlur(), T.RandomCrop(50), MyShift(), T.RandomHorizontalFlip()])],
    "training": [
        T.Compose([T.RandomResizedCrop(48), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]),
        v2.Compose(
            [
                v2.RandomResizedCrop(48),
                v2.RandomHorizontalFlip(),
                v2.ToImage(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        ),
    ],
    "erasing": [
        T.Compose([T.RandomCrop(40), T.ToTensor(), T.RandomErasing(0.7), T.Normalize(MEAN, STD)]),
        T.Compose([T.RandomCrop(40), T.ToTensor(), T.RandomErasing(0.7, value="random")]),
        v2.Compose([v2.RandomCrop(40), v2.ToImage(), v2.RandomErasing(0.7), v2.ToDtype(torch.float32, scale=True)]),
    ],
    "behind tensors": [T.Compose([T.ToTensor(), T.RandomCrop(40), T.RandomHorizontalFlip(), T.Normalize(MEAN, STD)])],
    "SimCLR": [
        T.Compose(
            [
                T.RandomResizedCrop(40, scale=(0.08, 1.0)),
                T.RandomHorizontalFlip(),
                T.RandomApply([T.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
                T.RandomGrayscale(p=0.2),
                T.RandomApply([T.GaussianBlur(5)], p=0.5),
                T.ToTensor(),
            ]
        )
    ],
    "sequential": [torch.nn.Sequential(T.RandomResizedCrop(40), T.RandomHorizontalFlip(), v2.ToImage())],
    "nested": [T.Compose([T.Compose([T.RandomCrop(50)]), T.RandomApply([T.Compose([T.RandomCrop(30)])]), T.ToTensor()])],
}


@pytest.mark.parametrize("name", RANDOM, ids=lambda name: name.replace(" ", "-"))
def test_results_and_generators_are_torchvisions_for_every_seed(name):
    for transform in RANDOM[name]:
        for seed in range(3):
            plain = series(transform, seed)
            with stoker.lazy_images():
                ours = series(transform, seed)
            assert ours == plain


# ---- pairs ----

PALETTE = Image.fromarray(RAMP).convert("P", palette=Image.Palette.ADAPTIVE, colors=256)
MASKS = {
    "L": lambda: opened(encoded(Image.fromarray(RAMP), "PNG"), "L"),
    "P": lambda: Image.open(io.BytesIO(encoded(PALETTE, "PNG"))),
    "array": lambda: Image.fromarray(RAMP),
    "tensor": lambda: torch.from_numpy(RAMP)[None].repeat(3, 1, 1),
    "RGB": lambda: opened(encoded(Image.merge("RGB", [Image.fromarray(RAMP)] * 3), "PNG")),
}
GEOMETRY = {
    "crop": both("RandomCrop", 60),
    "flips": [T.Compose([T.RandomHorizontalFlip(), T.RandomVerticalFlip()])],
    "resized crop": both("RandomResizedCrop", 48, interpolation=T.InterpolationMode.NEAREST),
    "compose": [
        T.Compose([T.RandomCrop(90), T.RandomHorizontalFlip(), T.Resize((45, 45), T.InterpolationMode.NEAREST)]),
        v2.Compose([v2.RandomCrop(90), v2.RandomHorizontalFlip(), v2.Resize((45, 45), T.InterpolationMode.NEAREST)]),
    ],
}


def by_seed(transform, image, mask, seed):
    torch.manual_seed(seed)
    first = transform(image)
    torch.manual_seed(seed)
    return first, transform(mask)


def by_state(transform, image, mask, seed):
    torch.manual_seed(seed)
    state = torch.get_rng_state()
    first = transform(image)
    torch.set_rng_state(state)
    return first, transform(mask)


def by_fork(transform, image, mask, seed):
    torch.manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        first = transform(image)
    return first, transform(mask)


def grey(out):
    """The first channel, as an array."""
    if isinstance(out, torch.Tensor):
        return out[0].numpy().astype(int)
    return np.asarray(out.convert("L")).astype(int)


@pytest.mark.parametrize("idiom", [by_seed, by_state, by_fork])
@pytest.mark.parametrize("kind", MASKS)
def test_an_image_and_its_mask_stay_a_pair(idiom, kind):
    with stoker.lazy_images():
        for name, transforms in GEOMETRY.items():
            for transform in transforms:
                for seed in range(8):
                    image, mask = idiom(transform, opened(FILE), MASKS[kind](), seed)
                    far = np.abs(grey(image) - grey(mask)).mean()
                    assert far < 3, (name, seed, far)


def by_params(image, mask):
    """As segmentation code has it: numbers are drawn once, and functions applied to both."""
    box = T.RandomResizedCrop.get_params(image, scale=(0.2, 1.0), ratio=(0.75, 1.33))
    image = F.resized_crop(image, *box, (40, 40))
    mask = F.resized_crop(mask, *box, (40, 40), T.InterpolationMode.NEAREST)
    if random.random() < 0.5:
        image, mask = F.hflip(image), F.vflip(mask)
    top, left = T.RandomCrop.get_params(image, (32, 32))[:2]
    image, mask = F.crop(image, top, left, 32, 32), F.crop(mask, top, left, 32, 32)
    image = F.adjust_hue(F.adjust_saturation(F.adjust_contrast(F.adjust_brightness(image, 0.7), 1.3), 0.4), -0.125)
    image = F.rotate(image, 10.0) if torch.rand(1) < 0.3 else image
    return F.normalize(F.to_tensor(image), MEAN, STD), torch.as_tensor(np.array(mask))


def by_v2(image, mask):
    """Several inputs of one call."""
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(40),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(0.3, 0.3, 0.3, 0.1),
            v2.ToImage(),
            v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
        ]
    )
    boxes = tv_tensors.BoundingBoxes([[10, 12, 60, 70]], format="XYXY", canvas_size=(110, 150))
    out = transform({"image": image, "mask": tv_tensors.Mask(torch.from_numpy(np.array(mask))), "boxes": boxes, "label": 3})
    return out["image"], out["mask"], out["boxes"]


def by_calls(image, mask):
    """Objects that are built for every sample, single steps, and transforms of targets."""
    image = T.RandomHorizontalFlip()(T.Resize(60)(image))
    mask = T.Lambda(lambda one: one.resize((40, 40), Image.NEAREST))(mask)
    return T.Compose([T.RandomCrop(50), T.ToTensor(), T.Normalize(MEAN, STD)])(image), T.PILToTensor()(mask)


def by_type(image, mask):
    """Types decide what v2 fills with."""
    fill = {Image.Image: (9, 8, 7), "others": 0}
    return v2.RandomAffine(30, fill=fill)(image), v2.Pad(3, fill={Image.Image: 5, "others": 0})(mask)


@pytest.mark.parametrize("sample", [by_params, by_v2, by_calls, by_type])
def test_idioms_of_users_give_torchvisions_results(sample):
    for seed in range(12):
        for data in IMAGES.values():
            seed_all(seed)
            plain = values(sample(opened(data), MASKS["L"]())), generators()
            seed_all(seed)
            with stoker.lazy_images():
                ours = values(sample(opened(data), MASKS["L"]())), generators()
            assert ours == plain


ARRAYS = {
    "colours": np.random.default_rng(1).integers(0, 256, (60, 70, 3), np.uint8),
    "grey": np.random.default_rng(2).integers(0, 256, (60, 70), np.uint8),
    "one channel": np.random.default_rng(3).integers(0, 256, (60, 70, 1), np.uint8),
    "alpha": np.random.default_rng(4).integers(0, 256, (60, 70, 4), np.uint8),
    "16 bits": np.random.default_rng(5).integers(0, 9000, (60, 70), np.int16),
    "tensor": torch.from_numpy(np.random.default_rng(6).integers(0, 256, (3, 60, 70), np.uint8)),
    "floats": torch.rand(1, 60, 70, generator=torch.Generator().manual_seed(7)),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_images_made_of_arrays(kind, monkeypatch):
    from stoker._lazy import compose

    runs = []
    run = compose._Tail.run
    monkeypatch.setattr(compose._Tail, "run", lambda self, image: runs.append(image) or run(self, image))
    for module in (T, v2):
        steps = [module.ToPILImage(), module.RandomCrop(50), MyShift(), module.Resize(40), module.RandomHorizontalFlip()]
        for transform in (module.Compose(steps), module.Compose([*steps, module.PILToTensor()])):
            before = ARRAYS[kind].copy() if isinstance(ARRAYS[kind], np.ndarray) else ARRAYS[kind].clone()
            seed_all(4)
            plain = [values(transform(ARRAYS[kind])) for _ in range(4)], generators()
            seed_all(4)
            with stoker.lazy_images():
                ours = [values(transform(ARRAYS[kind])) for _ in range(4)], generators()
            assert ours == plain
            assert (before == ARRAYS[kind]).all()
    assert bool(runs) == (kind not in ("alpha", "16 bits"))


def test_what_cannot_become_an_image_is_torchvisions_error():
    for wrong in (np.zeros((2, 3, 4, 5)), torch.zeros(9, 3, 3), "no image", picture(1, 9, 9)):
        transform = T.Compose([T.ToPILImage(), T.ToTensor()])
        with pytest.raises((TypeError, ValueError)) as plain:
            transform(wrong)
        with stoker.lazy_images(), pytest.raises(type(plain.value), match=re.escape(str(plain.value))):
            transform(wrong)


# ---- whole epochs ----


class Pairs(torch.utils.data.Dataset):
    """A segmentation data set: the same seed for both, drawn for each sample."""

    def __init__(self, root):
        self.root = root
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.transform = T.Compose([T.RandomResizedCrop(40), T.RandomHorizontalFlip(), T.ToTensor()])

    def __len__(self):
        return 24

    def __getitem__(self, index):
        image = Image.open(self.root / f"{index}.jpg").convert("RGB")
        mask = Image.open(self.root / f"{index}.png")
        seed = int(torch.randint(2**31, ()))
        torch.manual_seed(seed)
        random.seed(seed)
        image = self.transform(image)
        torch.manual_seed(seed)
        random.seed(seed)
        return image, self.transform(mask), random.random(), np.random.rand()


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    root = tmp_path_factory.mktemp("pairs")
    for number in range(24):
        picture(number, 80 + number, 90).save(root / f"{number}.jpg", quality=95)
        picture(number, 80 + number, 90).convert("L").save(root / f"{number}.png")
    return Pairs(root)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_epochs_of_pairs_are_torchs(pairs, workers):
    def epochs(kind):
        seed_all(7)
        loader = kind(pairs, batch_size=5, shuffle=True, num_workers=workers)
        out = [[values(batch[0]), values(batch[1]), *batch[2:]] for _ in range(2) for batch in loader]
        return [[*rest, a.tolist(), b.tolist()] for *rest, a, b in out], generators()

    assert epochs(stoker.DataLoader) == epochs(torch.utils.data.DataLoader)
