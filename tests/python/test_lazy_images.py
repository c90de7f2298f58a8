# SPDX-License-Identifier: Apache-2.0
"""Lazy images: whatever a script does with what Image.open gives, it gets what Pillow alone gives."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import os
import pickle
import re
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import stoker
from conftest import picture
from PIL import ExifTags, Image, ImageEnhance, ImageFile, ImageFilter, ImageOps, ImageStat, JpegImagePlugin

PLAIN_OPEN = Image.open


def exif(orientation):
    out = Image.Exif()
    out[ExifTags.Base.Orientation] = orientation
    out[ExifTags.Base.Make] = "Stoker"
    return out


def encoded(image, kind="JPEG", **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def files():
    rgb, small = picture(1, 97, 61), picture(2, 17, 8)
    noise = Image.fromarray(np.random.default_rng(3).integers(0, 256, (150, 67, 3), np.uint8))
    grey = rgb.convert("L")
    alpha = rgb.convert("RGBA")
    alpha.putalpha(grey)
    out = {f"jpeg-{q}-{s}": encoded(rgb, quality=q, subsampling=s) for q in (30, 95) for s in (0, 1, 2)}
    out |= {
        "jpeg-small": encoded(small),
        "jpeg-noise": encoded(noise, quality=100, subsampling=0),
        "jpeg-optimised": encoded(noise, quality=70, optimize=True),
        "jpeg-restarts": encoded(noise, restart_marker_rows=1),  # more than the eight markers
        "jpeg-progressive": encoded(rgb, progressive=True),
        "jpeg-grey": encoded(grey),
        "jpeg-cmyk": encoded(rgb.convert("CMYK")),
        "jpeg-rgb": encoded(rgb, keep_rgb=True),
        "jpeg-comment": encoded(rgb, comment=b"hello", dpi=(300, 200), icc_profile=b"no profile" * 9000),
        "jpeg-tail": encoded(rgb) + b"and more behind the end" * 9,
        "jpeg-twice": encoded(rgb) + encoded(small),
        "jpeg-one": encoded(Image.new("RGB", (1, 1), "red")),
        "mpo": encoded(rgb, "MPO", save_all=True, append_images=[small]),
        "png-rgb": encoded(rgb, "PNG"),
        "png-rgba": encoded(alpha, "PNG"),
        "png-grey": encoded(grey, "PNG"),
        "png-la": encoded(alpha.convert("LA"), "PNG"),
        "png-1": encoded(grey.convert("1"), "PNG"),
        "png-16": encoded(Image.fromarray(np.arange(900, dtype=np.uint16).reshape(30, 30)), "PNG"),
        "png-p": encoded(rgb.convert("P"), "PNG"),
        "png-p-clear": encoded(rgb.convert("P"), "PNG", transparency=3),
        "gif": encoded(rgb, "GIF", save_all=True, append_images=[rgb.rotate(90)]),
        "bmp": encoded(rgb, "BMP"),
        "tiff": encoded(rgb, "TIFF"),
        "webp": encoded(rgb, "WEBP", lossless=True),
    }
    for orientation in (1, 3, 6, 8):
        out[f"jpeg-turned-{orientation}"] = encoded(rgb, exif=exif(orientation))
    return out


FILES = files()


def saved(image, kind, **options):
    return hash(encoded(image, kind, **options))


def pasted(image):
    image = image.convert("RGB")
    image.paste((1, 2, 3), (2, 2, 9, 7))
    return image


def pixels_set(image):
    access = image.load()
    access[3, 4] = access[0, 0]
    return image


def thumbnail(image):
    image.thumbnail((40, 40))
    return image


def drafted(image):
    return image.draft("L", (20, 20)), image.size, image.mode, image.convert("RGB").tobytes()


def drafted_late(image):
    first = image.convert("RGB")
    return image.draft("L", (20, 20)), image.size, image.mode, image.tobytes(), first


def twice(image):
    return image.convert("RGB"), image, image.copy(), image.resize((7, 9))


def with_block(image):
    with image as same:
        inside = same.convert("RGB")
    return inside, same.size


def loaded_after_with(image):
    with image as same:
        pass
    return same.convert("RGB")


def loaded_after_close(image):
    image.close()
    return image.convert("RGB")


def closed_after_convert(image):
    converted = image.convert("RGB")
    image.close()
    return converted


def verified(image):
    image.verify()
    return image.size, image.convert("RGB")


def frames(image):
    return image.tell(), getattr(image, "n_frames", 1), image.seek(0), image.seek(1)


def attributes(image):
    names = ("format", "format_description", "mode", "size", "width", "height", "readonly")
    names += ("is_animated", "n_frames", "layers", "quantization", "app", "applist", "bits", "filename", "custom_mimetype")
    return [getattr(image, name, "none") for name in names], image.get_format_mimetype()


def reported(image):
    names = [re.sub(r" at 0x\w+", "", repr(one)) for one in (image, image.convert("RGB"), image.copy())]
    return names, image.__class__, image.convert("RGB").__class__, isinstance(image, Image.Image)


def file_state(image):
    before = image.fp is None, image.tile, image._exclusive_fp
    image.convert("RGB")
    return before, image.fp is None, image.tile, image.readonly


ACTIONS = {
    "nothing": lambda image: image,
    "attributes": attributes,
    "repr": reported,
    "file state": file_state,
    "load": lambda image: (image.load(), image)[1],
    "convert RGB": lambda image: image.convert("RGB"),
    "convert twice": lambda image: image.convert("RGB").convert("RGB"),
    "convert none": lambda image: image.convert(),
    "convert L": lambda image: image.convert("L"),
    "convert RGB L": lambda image: image.convert("RGB").convert("L"),
    "convert RGBA": lambda image: image.convert("RGBA"),
    "convert P": lambda image: image.convert("P", palette=Image.Palette.ADAPTIVE, colors=9),
    "convert matrix": lambda image: image.convert("RGB").convert("L", (0.5, 0.25, 0.25, 0)),
    "convert named": lambda image: image.convert(mode="RGB", dither=None),
    "convert to nothing": lambda image: image.convert("nonsense"),
    "copy": lambda image: image.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "copy of copy": lambda image: copy.deepcopy(image.convert("RGB")),
    "crop": lambda image: image.crop((3, 2, 11, 7)),
    "crop of crop": lambda image: image.convert("RGB").crop((1, 1, 16, 8)).crop((2, 1, 9, 5)),
    "crop converted": lambda image: image.crop((3, 2, 11, 7)).convert("RGB"),
    "crop fractions": lambda image: image.crop((0.6, 1.5, 9.5, 6.4)),
    "crop none": lambda image: image.crop(),
    "crop all": lambda image: image.crop((0, 0, *image.size)),
    "crop outside": lambda image: image.crop((-3, -2, 11, 700)),
    "crop empty": lambda image: image.crop((3, 3, 3, 7)),
    "crop inverted": lambda image: image.crop((9, 3, 3, 7)),
    "crop nonsense": lambda image: image.crop((1, 2, 3)),
    "crop strings": lambda image: image.crop("abcd"),
    "tobytes": lambda image: image.convert("RGB").tobytes(),
    "tobytes own": lambda image: image.tobytes(),
    "tobytes raw": lambda image: image.convert("RGB").tobytes("raw", "BGR"),
    "asarray": lambda image: np.asarray(image).tolist(),
    "array": lambda image: np.array(image.convert("RGB")).tolist(),
    "array twice": lambda image: (np.array(image).sum(), np.array(image).sum(), image),
    "pixel": lambda image: (image.getpixel((2, 3)), image.convert("RGB").getpixel((0, 0))),
    "data": lambda image: list(image.convert("RGB").getdata())[:50],
    "histogram": lambda image: image.histogram(),
    "statistics": lambda image: ImageStat.Stat(image.convert("RGB")).mean,
    "extrema": lambda image: (image.getextrema(), image.convert("RGB").getbbox(), image.getbands()),
    "colours": lambda image: image.convert("RGB").getcolors(1 << 20),
    "split": lambda image: image.convert("RGB").split()[1],
    "channel": lambda image: image.convert("RGB").getchannel("G"),
    "resize": lambda image: image.convert("RGB").resize((31, 20)),
    "resize nearest": lambda image: image.resize((31, 20), Image.Resampling.NEAREST),
    "resize box": lambda image: image.convert("RGB").resize((9, 9), box=(1, 1, 12, 7), reducing_gap=2.0),
    "reduce": lambda image: image.convert("RGB").reduce(2),
    "rotate": lambda image: image.convert("RGB").rotate(30, expand=True),
    "transpose": lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "filter": lambda image: image.convert("RGB").filter(ImageFilter.BoxBlur(1)),
    "enhance": lambda image: ImageEnhance.Color(image.convert("RGB")).enhance(0.3),
    "point": lambda image: image.convert("RGB").point(lambda v: 255 - v),
    "paste": pasted,
    "set pixels": pixels_set,
    "thumbnail": thumbnail,
    "thumbnail converted": lambda image: thumbnail(image.convert("RGB")),
    "draft": drafted,
    "draft late": drafted_late,
    "save png": lambda image: saved(image, "PNG"),
    "save jpeg": lambda image: saved(image.convert("RGB"), "JPEG"),
    "save keep": lambda image: saved(image, "JPEG", quality="keep"),
    "exif": lambda image: (dict(image.getexif()), dict(image.convert("RGB").getexif())),
    "exif transpose": ImageOps.exif_transpose,
    "exif transpose converted": lambda image: ImageOps.exif_transpose(image.convert("RGB")),
    "fit": lambda image: ImageOps.fit(image.convert("RGB"), (20, 20)),
    "pickle": lambda image: pickle.loads(pickle.dumps(image)),
    "pickle converted": lambda image: pickle.loads(pickle.dumps(image.convert("RGB"))),
    "equal": lambda image: (image == image.copy(), image.convert("RGB") == image.convert("RGB")),
    "blend": lambda image: Image.blend(image.convert("RGB"), Image.new("RGB", image.size, "blue"), 0.4),
    "twice": twice,
    "with": with_block,
    "load after with": loaded_after_with,
    "load after close": loaded_after_close,
    "close after convert": closed_after_convert,
    "verify": verified,
    "frames": frames,
    "core": lambda image: (image.convert("RGB").im.size, image.convert("RGB").getim() is not None),
    "info kept apart": lambda image: (image.convert("RGB").info.update(a=1), dict(image.info))[1],
}


def told(value):
    """A result so that two of them can be compared."""
    if isinstance(value, Image.Image):
        info = {key: one for key, one in value.info.items() if key != "mpoffset"}
        content = value.mode, value.size, info, value.format, value.tobytes()
        return (value.__class__.__name__, value.readonly, *content)
    if isinstance(value, (tuple, list)):
        return [told(one) for one in value]
    return value


def outcome(action, opened):
    """What an action gives, or the exception that it ends in."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result = told(action(opened()))
        except Exception as error:
            result = type(error), re.sub(r" at 0x\w+", "", str(error))
    return result, sorted(str(one.message) for one in heard)


def compare(action, data):
    plain = outcome(action, lambda: Image.open(io.BytesIO(data)))
    with stoker.lazy_images():
        lazy = outcome(action, lambda: Image.open(io.BytesIO(data)))
    assert lazy == plain


@pytest.mark.parametrize("action", ACTIONS, ids=lambda name: name.replace(" ", "-"))
def test_every_action_gives_what_pillow_gives(action):
    for data in FILES.values():
        compare(ACTIONS[action], data)


def test_regular_jpegs_are_put_off_and_others_are_not():
    lazy = set()
    with stoker.lazy_images():
        for name, data in FILES.items():
            image = Image.open(io.BytesIO(data)).convert("RGB")
            if "_stoker" in vars(image):
                lazy.add(name)
    regular = {name for name in FILES if name.startswith("jpeg-")} - {"jpeg-progressive", "jpeg-cmyk"}
    assert lazy == regular


def test_an_image_whose_pixels_were_touched_is_pillows_alone():
    with stoker.lazy_images():
        opened = Image.open(io.BytesIO(FILES["jpeg-95-2"]))
        converted = opened.convert("RGB")
    assert isinstance(opened, JpegImagePlugin.JpegImageFile) and type(opened) is not JpegImagePlugin.JpegImageFile
    opened.load()
    converted.load()
    assert type(opened) is JpegImagePlugin.JpegImageFile
    assert type(converted) is Image.Image
    assert set(vars(converted)) == set(vars(Image.new("RGB", (1, 1))))


def test_what_can_be_opened_and_what_cannot(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(FILES["jpeg-95-2"])
    (tmp_path / "text.jpg").write_bytes(b"no image at all")
    (tmp_path / "empty.jpg").write_bytes(b"")

    class NoSeek(io.RawIOBase):
        def __init__(self):
            self.inner = io.BytesIO(FILES["jpeg-95-2"])

        def read(self, size=-1):
            return self.inner.read(size)

        def seek(self, *where):
            raise io.UnsupportedOperation

    ways = [
        lambda: Image.open(str(path)),
        lambda: Image.open(path),
        lambda: Image.open(os.fsencode(path)),
        lambda: Image.open(fp=path, mode="r"),
        lambda: Image.open(path, "r", ["JPEG"]),
        lambda: Image.open(path, formats=("PNG", "JPEG")),
        lambda: Image.open(path, formats=["PNG"]),
        lambda: Image.open(path, formats="JPEG"),
        lambda: Image.open(path, "w"),
        lambda: Image.open(NoSeek()),
        lambda: Image.open(io.StringIO("x")),
        lambda: Image.open(tmp_path / "none.jpg"),
        lambda: Image.open(tmp_path / "text.jpg"),
        lambda: Image.open(tmp_path / "empty.jpg"),
        lambda: Image.open(tmp_path),
        lambda: Image.open(None),
        lambda: Image.open(),
    ]
    for way in ways:
        for action in ("convert RGB", "attributes", "file state", "asarray"):
            plain = outcome(ACTIONS[action], way)
            with stoker.lazy_images():
                assert outcome(ACTIONS[action], way) == plain


def damaged(data, seed):
    rng = np.random.default_rng(seed)
    out = bytearray(data)
    kind = seed % 4
    if kind == 0:
        return bytes(out[: rng.integers(2, len(out))])
    if kind == 1:
        for _ in range(3):
            out[rng.integers(0, len(out))] = rng.integers(0, 256)
    elif kind == 2:
        at = rng.integers(0, len(out))
        out[at:at] = bytes([255, rng.integers(0xC0, 0xFF)])
    else:
        at = rng.integers(0, len(out) - 40)
        del out[at : at + rng.integers(1, 40)]
    return bytes(out)


@pytest.mark.parametrize("name", ["jpeg-95-2", "jpeg-restarts", "jpeg-grey", "jpeg-progressive", "png-rgb"])
def test_damaged_files_end_as_pillows(name):
    """At convert(), where scripts catch it, not later."""
    for seed in range(80):
        data = damaged(FILES[name], seed)
        for action in ("convert RGB", "asarray"):
            compare(ACTIONS[action], data)
        with stoker.lazy_images(), contextlib.suppress(Exception):
            image = Image.open(io.BytesIO(data)).convert("RGB")
            image.load()  # what convert() let pass can be loaded


def test_truncated_files_that_pillow_is_told_to_load(monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    for cut in (100, 700, 1500, 5000):
        compare(ACTIONS["convert RGB"], FILES["jpeg-95-2"][:-cut])
    compare(ACTIONS["convert RGB"], FILES["jpeg-95-2"])


def test_bombs_are_found_by_pillow(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    for action in ("convert RGB", "crop", "resize"):
        compare(ACTIONS[action], FILES["jpeg-95-2"])


def test_files_are_closed_when_pillow_closes_them(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(FILES["jpeg-95-2"])
    with stoker.lazy_images(), warnings.catch_warnings():
        warnings.simplefilter("error")
        before = len(os.listdir("/proc/self/fd"))
        images = [Image.open(path) for _ in range(5)]
        converted = [image.convert("RGB") for image in images]
        assert len(os.listdir("/proc/self/fd")) == before
        with open(path, "rb") as file:
            kept = Image.open(file).convert("RGB")
            assert not file.closed
        path.unlink()
        assert kept == converted[0]


def test_images_leave_no_cycles():
    gc.collect()
    gc.disable()
    try:
        with stoker.lazy_images():
            image = Image.open(io.BytesIO(FILES["jpeg-95-2"]))
            seen = [weakref.ref(image), weakref.ref(image.convert("RGB")), weakref.ref(image.crop((1, 1, 5, 5)))]
            image.convert("RGB").load()
            assert seen[1]() is None and seen[2]() is None
            del image
            assert seen[0]() is None
    finally:
        gc.enable()


def test_the_context_is_of_one_thread_and_ends():
    data = FILES["jpeg-95-2"]

    def kind():
        return "Pillow's" if type(Image.open(io.BytesIO(data))) is JpegImagePlugin.JpegImageFile else "lazy"

    def elsewhere():
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(kind).result()

    assert kind() == "Pillow's" and Image.open is PLAIN_OPEN
    with stoker.lazy_images():
        assert kind() == "lazy" and elsewhere() == "Pillow's"
        with stoker.lazy_images():
            assert kind() == "lazy"
        assert kind() == "lazy"
        kept = Image.open(io.BytesIO(data)).convert("RGB")
    assert kind() == "Pillow's" and Image.open is PLAIN_OPEN
    assert kept == Image.open(io.BytesIO(data)).convert("RGB")
    with pytest.raises(KeyError), stoker.lazy_images():
        raise KeyError
    assert Image.open is PLAIN_OPEN


def test_contexts_of_many_threads_at_once():
    data = FILES["jpeg-noise"]
    want = Image.open(io.BytesIO(data)).convert("RGB").tobytes()
    start = threading.Barrier(8)

    def work(number):
        start.wait()
        good = 0
        for _ in range(30):
            with stoker.lazy_images():
                image = Image.open(io.BytesIO(data)).convert("RGB")
                good += (image.tobytes() if number % 2 else np.asarray(image).tobytes()) == want
        return good

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [30] * 8
    assert Image.open is PLAIN_OPEN


def test_one_image_touched_by_many_threads_at_once():
    data = FILES["jpeg-noise"]
    want = Image.open(io.BytesIO(data)).convert("RGB")
    start = threading.Barrier(8)

    def work(image):
        start.wait()
        return image.getpixel((50, 100)), image.crop((5, 5, 60, 60)).tobytes(), image.im

    for _ in range(20):
        with stoker.lazy_images():
            image = Image.open(io.BytesIO(data)).convert("RGB")
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(work, [image] * 8))
        assert {result[0] for result in results} == {want.getpixel((50, 100))}
        assert {result[1] for result in results} == {want.crop((5, 5, 60, 60)).tobytes()}
        assert len({id(result[2]) for result in results}) == 1
