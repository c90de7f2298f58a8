# SPDX-License-Identifier: Apache-2.0
"""Lazy images in long chains of edits, with errors, and what is left behind."""

from __future__ import annotations

import gc
import io
import random

import pytest
import stoker
from conftest import picture
from loading import MEAN, STD
from PIL import Image

T = pytest.importorskip("torchvision.transforms")
import torch  # noqa: E402
from lazy_files import FILE, IMAGES, encoded, generators, opened, seed_all, values  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


def test_edits_in_any_number_and_order_give_pillows_pixels():
    def edit(image, draw):
        choice = draw.randrange(9)
        width, height = image.size
        if choice == 0 and min(image.size) > 8:
            left, top = draw.randrange(width // 2), draw.randrange(height // 2)
            return image.crop((left, top, left + draw.randint(2, width // 2), top + draw.randint(2, height // 2)))
        if choice == 1:
            return image.resize((draw.randint(1, 90), draw.randint(1, 90)), draw.randrange(6))
        if choice == 2:
            return image.resize((draw.randint(1, 90), draw.randint(1, 90)))
        if choice == 3:
            return image.transpose(draw.randrange(7))
        if choice == 4:
            return image.convert(draw.choice(["RGB", "L", "RGB"]))
        if choice == 5:
            adjust = draw.choice([F.adjust_brightness, F.adjust_contrast, F.adjust_saturation])
            return adjust(image, draw.choice([0, 1, 0.5, draw.uniform(0, 3), 1e7]))
        if choice == 6:
            return F.adjust_hue(image, draw.choice([-0.5, 0.5, 0, draw.uniform(-0.5, 0.5)]))
        return F.to_grayscale(image, 3) if choice == 7 and draw.random() < 0.3 else image.copy()

    def chain(data, seed):
        draw = random.Random(seed)
        image = opened(data)
        kept = []
        for _ in range(draw.choice([3, 6, 60])):
            image = edit(image, draw)
            kept.append(image)
        return [values(one) for one in [*kept, kept[0]]]

    for seed in range(150):
        data = list(IMAGES.values())[seed % len(IMAGES)]
        plain = chain(data, seed)
        with stoker.lazy_images():
            assert chain(data, seed) == plain, seed


def test_changing_an_image_leaves_those_made_from_it_alone():
    def work():
        image = opened(FILE)
        small, turned = image.resize((30, 20)), image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        image.paste((255, 0, 0), (0, 0, 150, 110))
        part = T.RandomHorizontalFlip(0.0)(image)
        return [values(one) for one in (small, turned, image, part)], part is image

    plain = work()
    with stoker.lazy_images():
        assert work() == plain


def test_errors_come_where_torchvision_raises_them_after_the_same_draws():
    """A damaged file that is only decoded behind the first draw."""
    cut = encoded(picture(6, 150, 110), "PNG")[:-4000]
    transform = T.Compose([T.RandomResizedCrop(30), T.RandomHorizontalFlip(), T.ToTensor()])

    def work():
        seed_all(4)
        out = []
        for data in [cut, FILE, cut, FILE]:
            try:
                out.append(values(transform(Image.open(io.BytesIO(data)))))
            except OSError as error:
                out.append(str(error))
        return out, generators()

    plain = work()
    with stoker.lazy_images():
        assert work() == plain
    assert any(isinstance(one, str) for one in plain[0])


def test_an_error_of_pillow_is_raised_once_and_for_all():
    """The second load() of a damaged file succeeds in Pillow, with a part of the pixels."""
    damaged = bytearray(IMAGES["progressive"])
    for at in range(len(damaged) // 2, len(damaged) - 2, 7):
        damaged[at] = 0xFF
    cut = encoded(picture(6, 150, 110), "PNG")[:-4000]
    steps = [T.ToTensor(), v2.ToImage(), T.Compose([T.CenterCrop(24), T.ToTensor()]), T.Compose([T.ToTensor()])]

    def work():
        out = []
        for data in (bytes(damaged), cut):
            for transform in steps:
                image = Image.open(io.BytesIO(data))
                try:
                    out.append(values(transform(image)))
                except OSError as error:
                    out.append(str(error))
        return out

    plain = work()
    with stoker.lazy_images():
        assert work() == plain
    assert any(isinstance(one, str) for one in plain[-4:])


def test_hooks_of_torch_see_every_module():
    calls = []
    transform = v2.Compose([v2.Resize(30), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: calls.append(type(module)))
    try:
        with stoker.lazy_images():
            transform(opened(FILE))
    finally:
        handle.remove()
    assert calls == [v2.Resize, v2.ToImage, v2.ToDtype, v2.Normalize, v2.Compose]


def test_transforms_built_for_every_sample_leave_nothing_behind():
    from stoker._lazy import compose

    def work(count):
        for number in range(count):
            mean = [0.4 + number / 1e6, 0.5, 0.6]
            T.Compose([T.RandomCrop(20), T.ToTensor(), T.Normalize(mean, STD)])(opened(FILE))
            T.ToTensor()(opened(FILE))
        gc.collect()
        return sum(isinstance(one, (T.Compose, T.ToTensor, T.Normalize)) for one in gc.get_objects())

    with stoker.lazy_images():
        before = work(3)
        assert work(600) == before
        assert len(compose._tails) <= compose._TAILS_MOST


def test_an_image_passes_for_pillows_to_code_that_looks_at_its_type():
    with stoker.lazy_images():
        for data in IMAGES.values():
            file = Image.open(io.BytesIO(data))
            image = file.convert("RGB")
            assert type(image) == Image.Image and {Image.Image: 1}[type(image)] == 1  # noqa: E721
            assert repr(type(image)) == repr(Image.Image) and type(image).__name__ == "Image"
            assert isinstance(image, Image.Image) and image.__class__ is Image.Image
            assert type(file).__name__.endswith("ImageFile") and type(file) != Image.Image  # noqa: E721
            assert type(file) == file.__class__ and type(image) != file.__class__  # noqa: E721
            with pytest.raises(TypeError, match="Got <class 'PIL.Image.Image'>"):
                T.Normalize(MEAN, STD)(image)


def test_a_misspelt_keyword_is_torchvisions_error_on_a_lazy_image_too():
    with stoker.lazy_images():
        image = opened(FILE)
        for call in (lambda: F.adjust_brightness(image, factor=1.5), lambda: F.posterize(image, bit=3), lambda: F.rotate(image, by=90)):
            with pytest.raises(TypeError, match="unexpected keyword"):
                call()
        assert F.adjust_brightness(image, brightness_factor=1.5).tobytes() == F.adjust_brightness(image, 1.5).tobytes()
