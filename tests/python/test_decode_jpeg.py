"""JPEG: every kind, whole and in part, equals Pillow byte for byte; damaged files end as they do there."""

import io
import pathlib
import random

import numpy
import pytest
import stoker
from decode_parity import agree, check, check_refused, mutations, ours, pillow
from PIL import Image, ImageFile, ImageOps

SIZES = [(1, 1), (2, 1), (1, 3), (7, 5), (8, 8), (17, 33), (100, 75), (333, 1), (1, 333), (250, 187)]
OPTIONS = [{}, {"progressive": True}, {"optimize": True}, {"restart_marker_rows": 1}, {"restart_marker_blocks": 3}]
CORPUS = pathlib.Path(__file__).parent.parent / "fuzz" / "corpus" / "jpeg"


def picture(mode, width, height, seed=0):
    rng = numpy.random.default_rng(seed)
    channels = {"L": 1, "RGB": 3, "CMYK": 4}[mode]
    planes = [Image.fromarray(rng.integers(0, 256, (height // 6 + 2, width // 6 + 2), dtype=numpy.uint8))
              for _ in range(channels)]
    planes = [plane.resize((width, height), Image.Resampling.BICUBIC) for plane in planes]
    return planes[0] if channels == 1 else Image.merge(mode, planes)


def jpeg(mode, width, height, seed=0, **options):
    out = io.BytesIO()
    picture(mode, width, height, seed).save(out, "JPEG", **options)
    return out.getvalue()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_every_mode(mode, options):
    for width, height in SIZES:
        for sampling in [0] if mode == "L" else ["4:4:4", "4:2:2", "4:2:0", "4:1:1"]:
            for quality in 30, 95:
                data = jpeg(mode, width, height, subsampling=sampling, quality=quality, **options)
                check(data, f"{mode} {width}x{height} {sampling} {quality}", seed=width + height)


def test_rgb_without_conversion():
    for width, height in SIZES:
        check(jpeg("RGB", width, height, keep_rgb=True), f"RGB kept {width}x{height}")


# libjpeg-turbo before 3.0.1 smooths the blocks of an unfinished progressive file a little differently from the
# one that current Pillow brings along.
@pytest.mark.parametrize("name", sorted(p.name for p in CORPUS.iterdir() if not p.name.startswith("unfinished")))
def test_odd_files(name):
    data = (CORPUS / name).read_bytes()
    assert agree(pillow(data), ours(data))
    if not isinstance(pillow(data), Exception):
        check(data, name)


def test_large_file():
    data = jpeg("RGB", 900, 700, quality=97, subsampling=0)
    assert len(data) > 4 * ImageFile.MAXBLOCK
    check(data, "more than a few of Pillow's blocks")


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 4}], ids=str)
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_damaged(mode, options):
    rng = random.Random(f"{mode} {options}")
    data = jpeg(mode, 120, 90, **options)
    tries = list(mutations(rng, data, 150))
    tries += [data[:cut] for cut in range(0, len(data), 100)] + [data[:-cut] for cut in range(1, 9)]
    tries += [data + b"\0" * 100, data + data, data[:-2] + b"\0" * 50, data[:-2] + rng.randbytes(50)]
    wrong = [k for k, changed in enumerate(tries) if not agree(pillow(changed), ours(changed))]
    # Damage can leave a progressive file unfinished: see above.
    assert len(wrong) <= (3 if "progressive" in options else 0), wrong


def test_refused_by_name():
    data = bytearray(jpeg("RGB", 40, 30))
    frame = data.index(b"\xff\xc0")
    data[frame + 4] = 12
    check_refused(bytes(data), "12 bits", says="12 bits")
    data[frame + 4], data[frame + 9] = 8, 2
    check_refused(bytes(data), "two components", says="2 components")
    check_refused(jpeg("RGB", 40, 30)[:500], "cut short", says="data ends at byte 500")


def test_pixel_limit():
    data = jpeg("L", 100, 50)
    assert stoker.decode(data, pixel_limit=5000).shape == (50, 100, 3)
    with pytest.raises(Exception, match="100 x 50 pixels.*pixel_limit.*4999"):
        stoker.decode(data, pixel_limit=4999)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(orientation):
    exif = Image.Exif()
    exif[274] = orientation
    data = jpeg("RGB", 70, 40, exif=exif)
    turned = numpy.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    check(data, "EXIF is ignored unless asked")
    assert (stoker.decode(data, exif_rotate=True) == turned).all()
    part = stoker.decode(data, region=(5, 10, 30, 25), exif_rotate=True)
    assert (part == turned[10:35, 5:35]).all()
