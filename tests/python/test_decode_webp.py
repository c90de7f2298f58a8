"""WebP: lossy, lossless, with alpha and animated equals Pillow byte for byte; damaged files end as they do there."""

import io
import random

import numpy
import pytest
import stoker
from decode_parity import agree, check, mutations, ours, pillow
from PIL import Image, ImageOps

if not any(name.lower() == "webp" and codec["present"] for name, codec in stoker.info()["codec"].items()):
    pytest.skip("this build has no WebP", allow_module_level=True)

SIZES = [(1, 1), (2, 1), (1, 3), (7, 5), (16, 16), (17, 33), (100, 75), (333, 1), (1, 333), (150, 111)]
OPTIONS = [{"quality": 50}, {"quality": 95, "method": 6}, {"quality": 1}, {"lossless": True},
           {"lossless": True, "exact": True}, {"quality": 80, "alpha_quality": 10}]


def picture(mode, width, height, seed=0):
    rng = numpy.random.default_rng(seed)
    planes = [Image.fromarray(rng.integers(0, 256, (height // 6 + 2, width // 6 + 2), dtype=numpy.uint8))
              .resize((width, height), Image.Resampling.BICUBIC) for _ in mode]
    if mode == "RGBA":  # large parts wholly transparent, whose colours must come through all the same
        planes[3] = planes[3].point(lambda a: 0 if a < 100 else a)
    return planes[0] if mode == "L" else Image.merge(mode, planes)


def webp(image, **options):
    out = io.BytesIO()
    image.save(out, "WEBP", **options)
    return out.getvalue()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_every_mode(mode, options):
    for width, height in SIZES:
        check(webp(picture(mode, width, height), **options), f"{mode} {width}x{height}", seed=width + height)


@pytest.mark.parametrize("lossless", [False, True])
def test_animation(lossless):
    rng = random.Random(lossless)
    for k in range(6):
        width, height = rng.randint(2, 120), rng.randint(2, 120)
        frames = [picture("RGBA", width, height, seed) for seed in range(3)]
        data = webp(frames[0], save_all=True, append_images=frames[1:], lossless=lossless,
                    minimize_size=k % 2 == 0, background=(10, 20, 30, 40))
        check(data, f"animation {width}x{height}")


@pytest.mark.parametrize("options", OPTIONS[::3] + [{"save_all": True}], ids=str)
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_damaged(mode, options):
    rng = random.Random(f"{mode} {options}")
    if "save_all" in options:
        options = {**options, "append_images": [picture(mode, 60, 45, 1)]}
    data = webp(picture(mode, 60, 45), **options)
    tries = list(mutations(rng, data, 150)) + [data[:cut] for cut in range(0, len(data), 50)] + [data + b"\0" * 9]
    assert [k for k, changed in enumerate(tries) if not agree(pillow(changed), ours(changed))] == []


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(orientation):
    exif = Image.Exif()
    exif[274] = orientation
    data = webp(picture("RGB", 70, 40), exif=exif, lossless=True)
    turned = numpy.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    assert (stoker.decode(data, exif_rotate=True) == turned).all()
