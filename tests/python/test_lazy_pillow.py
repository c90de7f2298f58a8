# SPDX-License-Identifier: Apache-2.0
"""Pillow's filters, tables of values, ImageOps and ImageEnhance on lazy images: recorded, with Pillow's bytes."""

from __future__ import annotations

import copy
import io
import pickle
import random

import numpy as np
import pytest
import stoker
from conftest import picture
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from stoker._lazy.images import Lazy

SIZES = [(150, 110), (64, 65), (21, 130), (1, 1), (2, 70), (43, 3)]


def encoded(image, kind="JPEG", **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


FILES = [encoded(picture(k, *size), quality=92) for k, size in enumerate(SIZES)]
FILES += [encoded(picture(k, *size).convert("L")) for k, size in enumerate(SIZES)]
PNG = encoded(picture(4, 60, 50), "PNG")


def opened(data):
    return Image.open(io.BytesIO(data))


def values(image):
    return type(image), image.mode, image.size, image.tobytes(), image.info.get("jfif")


def a_blur(draw):
    kind = draw.choice([ImageFilter.GaussianBlur, ImageFilter.BoxBlur])
    one = draw.choice([0, 0.0, 1, 2, draw.uniform(0, 1), draw.uniform(0, 4), draw.uniform(0, 300)])
    return kind(draw.choice([one, (one, draw.uniform(0, 3)), [draw.randrange(3), one]]))


def a_table(draw):
    return [draw.choice([draw.randrange(256), draw.uniform(-90, 400)]) for _ in range(256)]


# What scripts do to an image, with numbers drawn beforehand. Most are recorded, marked True.
ACTIONS = {
    "blur": (True, lambda draw: (lambda image, blur=a_blur(draw): image.filter(blur))),
    "point by a function": (True, lambda draw: (lambda image, by=draw.uniform(-2, 3): image.point(lambda v: v * by))),
    "point by a table": (
        True,
        lambda draw: (lambda image, table=a_table(draw): image.point(table * len(image.getbands()))),
    ),
    "solarize": (True, lambda draw: (lambda image, at=draw.uniform(-9, 300): ImageOps.solarize(image, at))),
    "plain solarize": (True, lambda draw: lambda image: ImageOps.solarize(image)),
    "posterize": (True, lambda draw: (lambda image, n=draw.randint(1, 8): ImageOps.posterize(image, bits=n))),
    "invert": (True, lambda draw: ImageOps.invert),
    "autocontrast": (True, lambda draw: lambda image: ImageOps.autocontrast(image)),
    "named autocontrast": (True, lambda draw: lambda image: ImageOps.autocontrast(image=image, cutoff=0)),
    "equalize": (True, lambda draw: lambda image: ImageOps.equalize(image)),
    "mirror": (True, lambda draw: ImageOps.mirror),
    "flip": (True, lambda draw: ImageOps.flip),
    "grayscale": (True, lambda draw: ImageOps.grayscale),
    "scale": (True, lambda draw: (lambda image, by=draw.uniform(0.5, 2): ImageOps.scale(image, by))),
    "brightness": (True, lambda draw: (lambda image, f=draw.uniform(0, 3): ImageEnhance.Brightness(image).enhance(f))),
    "contrast": (True, lambda draw: (lambda image, f=draw.uniform(0, 3): ImageEnhance.Contrast(image).enhance(f))),
    "color": (True, lambda draw: (lambda image, f=draw.uniform(0, 3): ImageEnhance.Color(image).enhance(factor=f))),
    "sharpness": (True, lambda draw: (lambda image, f=draw.uniform(-1, 3): ImageEnhance.Sharpness(image).enhance(f))),
    "rotate": (True, lambda draw: (lambda image, by=draw.uniform(-40, 40): image.rotate(by, Image.BILINEAR, fillcolor=None))),
    "shear": (
        True,
        lambda draw: (
            lambda image, by=draw.uniform(-0.3, 0.3): image.transform(
                image.size, Image.AFFINE, (1, by, 0, 0, 1, 0), resample=Image.BICUBIC
            )
        ),
    ),
    "darker": (False, lambda draw: lambda image: ImageEnhance.Brightness(image).enhance(-0.5)),
    "cut autocontrast": (False, lambda draw: lambda image: ImageOps.autocontrast(image, 3)),
    "sharpen": (False, lambda draw: lambda image: image.filter(ImageFilter.SHARPEN)),
    "class of a blur": (False, lambda draw: lambda image: image.filter(ImageFilter.GaussianBlur)),
    "median": (False, lambda draw: lambda image: image.filter(ImageFilter.MedianFilter(3))),
    "function taken before": (False, lambda draw: ImageOps.equalize),
    "large numbers": (False, lambda draw: lambda image: image.point([2**40 + 7] * 256 * len(image.getbands()))),
    "fit": (False, lambda draw: lambda image: ImageOps.fit(image, (20, 30))),
    "pad": (False, lambda draw: lambda image: ImageOps.pad(image, (20, 30))),
    "expand": (True, lambda draw: lambda image: ImageOps.expand(image, 3)),
}


@pytest.mark.parametrize("name", ACTIONS, ids=lambda name: name.replace(" ", "-"))
def test_results_are_pillows(name):
    recorded, make = ACTIONS[name]
    draw = random.Random(11)
    for data in FILES * 3:
        act = make(draw)
        plain = values(act(opened(data))), values(act(opened(data).convert("RGB")))
        with stoker.lazy_images():
            lazy = act(opened(data))
            assert isinstance(lazy, Lazy) == recorded
            assert (values(lazy), values(act(opened(data).convert("RGB")))) == plain


def test_chains_are_pillows():
    names = [name for name, (recorded, _) in ACTIONS.items() if recorded]
    for seed in range(60):
        draw = random.Random(seed)
        acts = [ACTIONS[draw.choice(names)][1](draw) for _ in range(draw.choice([2, 5, 40]))]

        def run(data, acts=acts):
            image = opened(data)
            for act in acts:
                image = act(image).crop((0, 0, *image.size))
            return values(image)

        data = FILES[seed % len(FILES)]
        plain = run(data)
        with stoker.lazy_images():
            assert run(data) == plain


def test_what_pillow_refuses_is_its_error():
    def refused(act):
        with pytest.raises(Exception) as plain:
            act(opened(FILES[0]))
        with stoker.lazy_images(), pytest.raises(type(plain.value)) as ours:
            act(opened(FILES[0]))
        assert str(ours.value) == str(plain.value)

    refused(lambda image: image.point([1, 2, 3]))
    refused(lambda image: image.point([2**70] * 768))
    refused(lambda image: image.point([float("nan")] * 768))
    refused(lambda image: image.point(lambda value: 1 // 0))
    refused(lambda image: image.filter(3))
    refused(lambda image: image.filter(ImageFilter.GaussianBlur("much")))
    refused(lambda image: ImageOps.solarize(image, threshold=3, levels=4))
    refused(lambda image: ImageOps.posterize(image, 9))
    refused(lambda image: ImageEnhance.Contrast(image).enhance("much"))
    refused(lambda image: ImageEnhance.Contrast(image).strength)


def test_a_function_is_called_once_for_each_value():
    with stoker.lazy_images():
        for mode in ("", "L"):
            seen = []
            opened(FILES[-6]).point(lambda value, seen=seen: seen.append(value) or value, *([mode] if mode else []))
            assert seen == list(range(256))


def test_an_enhancer_is_of_the_image_that_it_was_made_of():
    def changed(image, kind):
        image = image.convert("RGB")
        enhancer = kind(image)
        first = enhancer.enhance(0.5)
        image.paste((255, 0, 9), (0, 0, 40, 40))
        return [values(one) for one in (first, enhancer.enhance(0.25), enhancer.degenerate, enhancer.image)]

    def replaced(image, kind):
        enhancer = kind(image.convert("RGB"))
        enhancer.degenerate = Image.new("RGB", image.size, "red")
        return [values(enhancer.enhance(0.5))]

    def copied(image, kind):
        enhancer = kind(image.convert("RGB"))
        return [values(one.enhance(0.7)) for one in (copy.copy(enhancer), copy.deepcopy(enhancer), pickle.loads(pickle.dumps(enhancer)))]

    def looked_at(image, kind):
        enhancer = kind(image)
        kept = type(enhancer) == kind, isinstance(enhancer, kind), hasattr(enhancer, "other"), sorted(vars(enhancer))
        return [kept, values(enhancer.enhance(1.5))]

    for kind in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color, ImageEnhance.Sharpness):
        for use in (changed, replaced, copied, looked_at):
            plain = use(opened(FILES[0]), kind)
            with stoker.lazy_images():
                assert use(opened(FILES[0]), kind) == plain


def test_an_enhancer_outlives_lazy_images():
    with stoker.lazy_images():
        enhancer = ImageEnhance.Contrast(opened(FILES[0]))
        image = opened(FILES[0]).filter(ImageFilter.GaussianBlur(2))
    assert values(enhancer.enhance(0.5)) == values(ImageEnhance.Contrast(opened(FILES[0])).enhance(0.5))
    assert values(image) == values(opened(FILES[0]).filter(ImageFilter.GaussianBlur(2)))


def test_a_class_derived_from_an_enhancer_is_left_alone():
    class Stronger(ImageEnhance.Contrast):
        def enhance(self, factor):
            return super().enhance(2 * factor)

    plain = values(Stronger(opened(FILES[0])).enhance(0.7))
    with stoker.lazy_images():
        enhancer = Stronger(opened(FILES[0]))
        assert type(enhancer) is Stronger
        assert values(enhancer.enhance(0.7)) == plain


def test_pillow_is_as_before_afterwards():
    def state():
        kinds = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color, ImageEnhance.Sharpness)
        return {name: id(one) for name, one in vars(ImageOps).items()}, [id(vars(kind)["__init__"]) for kind in kinds]

    before = state()
    with stoker.lazy_images():
        opened(FILES[0])
        assert state() != before
    assert state() == before


def test_files_that_pillow_decodes_are_its_own():
    plain = [values(act(opened(PNG))) for act in (ImageOps.solarize, lambda image: image.filter(ImageFilter.BoxBlur(2)))]
    with stoker.lazy_images():
        lazy = [values(act(opened(PNG))) for act in (ImageOps.solarize, lambda image: image.filter(ImageFilter.BoxBlur(2)))]
    assert lazy == plain


def test_arrays_of_blurred_images():
    with stoker.lazy_images():
        ours = np.asarray(opened(FILES[0]).filter(ImageFilter.GaussianBlur(1.5)).crop((10, 10, 50, 40)))
    plain = np.asarray(opened(FILES[0]).filter(ImageFilter.GaussianBlur(1.5)).crop((10, 10, 50, 40)))
    np.testing.assert_array_equal(ours, plain)
