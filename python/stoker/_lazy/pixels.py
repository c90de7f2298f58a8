# SPDX-License-Identifier: Apache-2.0
"""The pixels of lazy images: what they are made from, and how the engine makes them, or Pillow where the engine cannot."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageEnhance, ImageFilter, ImageOps, JpegImagePlugin

from .. import _ext

Edits = tuple[tuple[Any, ...], ...]  # as _ext.Single takes them


def _fuses() -> bool:
    """Return whether this build of Pillow rounds a blend once, as on aarch64: 100 - float32(0.73) * 100 is 26.9999…"""
    return Image.blend(Image.new("L", (1, 1), 100), Image.new("L", (1, 1), 0), 0.73).getpixel((0, 0)) == 26


# Whether Pillow's internals are as expected; with any other version nothing is deferred.
KNOWN_PILLOW = "_im" in vars(Image.Image()) and isinstance(vars(Image.Image).get("im"), property)
PILLOW = 12 if int(Image.__version__.split(".")[0]) < 13 else 13  # the version whose resizing to match
REFUSALS = (_ext.StokerError, ValueError, MemoryError, OSError)  # what the engine raises when it cannot do something
_FUSED = _fuses()
FILTERS = {
    Image.Resampling.NEAREST: 0,
    Image.Resampling.BOX: 1,
    Image.Resampling.BILINEAR: 2,
    Image.Resampling.HAMMING: 3,
    Image.Resampling.BICUBIC: 4,
    Image.Resampling.LANCZOS: 5,
}


def single_of(text: str, layout: str) -> _ext.Single:
    """Return what runs this pipeline with the arithmetic of the Pillow that is installed."""
    return _ext.Single(_ext.Pipeline(text), layout=layout, pillow=PILLOW, fused=_FUSED)


@functools.cache
def _decoder(mode: str) -> _ext.Single:
    """Return what decodes an image to this mode."""
    return single_of(text_of_mode(mode), "nhwc")


def text_of_mode(mode: str) -> str:
    """Return the step that ends in this mode: edits are made in RGB, where grey images have three equal channels."""
    return "grayscale(num_output_channels=1)" if mode == "L" else ""


def _exports(core: Any) -> bool:
    """Return whether Pillow (11.2 or newer) exports the memory of an internal image, and its rows have no gaps."""
    return hasattr(core, "__arrow_c_array__") and Image.core.get_alignment() == 1


def core_of(mode: str, size: tuple[int, int], pixels: Any) -> Any:
    """Return Pillow's internal image with these pixels."""
    if mode == "RGB":
        core = Image.core.new(mode, size)
        with contextlib.suppress(ValueError, MemoryError):  # large images are not in one piece
            if _exports(core):
                _ext.pillow_write(core.__arrow_c_array__(), pixels)
                return core
    return Image.frombytes(mode, size, pixels).im


def pixels_of(image: Image.Image) -> tuple[bytes, int]:
    """Return the bytes of an RGB or L image, and how many there are for each pixel: what tobytes() returns, but faster."""
    if image.mode == "L":
        return image.tobytes(), 1
    if type(image).tobytes is Image.Image.tobytes:
        image.load()
        with contextlib.suppress(ValueError, MemoryError):
            if _exports(image.im):
                return _ext.pillow_read(image.im.__arrow_c_array__()), 3
    return image.tobytes("raw", "RGBX"), 4


class Encoded:
    """A JPEG that was read but not decoded."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def check(self) -> None:
        """Nothing can fail: the file is regular."""

    def run(self, single: _ext.Single, edits: Edits) -> Any:
        """Return what the engine makes of it."""
        return single.run(self._data, edits)

    def run_into(self, memory: memoryview, single: _ext.Single, edits: Edits) -> None:
        """Let the engine make it in this memory."""
        single.run_into(memory, self._data, edits)

    def picture(self) -> Image.Image:
        """Return it as Pillow decodes it."""
        return JpegImagePlugin.JpegImageFile(io.BytesIO(self._data))


class Decoded:
    """An RGB or L image with pixels, which nobody changes while a lazy image refers to it."""

    __slots__ = ("_image",)

    def __init__(self, image: Image.Image) -> None:
        self._image = image

    def check(self) -> None:
        """Decode it now if that has not happened: so errors are raised where Pillow raises them."""
        self._image.load()

    def run(self, single: _ext.Single, edits: Edits) -> Any:
        pixels, channels = pixels_of(self._image)
        return single.run(pixels, edits, (*self._image.size, channels))

    def picture(self) -> Image.Image:
        return self._image


Source = Encoded | Decoded


def made_pixels(source: Source, edits: Edits, mode: str) -> Any:
    """Return the bytes of the edited image; None if the engine cannot make them."""
    source.check()  # Pillow's errors are no refusals
    try:
        return source.run(_decoder(mode), edits)
    except REFUSALS:
        return None


def _shift_hue(image: Image.Image, shift: float) -> Image.Image:
    from torchvision.transforms import functional

    return functional.adjust_hue(image, shift)


def _transformed(method: Image.Transform) -> Callable[..., Image.Image]:
    def transform(image: Image.Image, width: int, height: int, number: int, *rest: Any) -> Image.Image:
        return image.transform((width, height), method, rest[3:], _resample(number), fillcolor=rest[:3])

    return transform


def _resample(number: int) -> Image.Resampling:
    return next(resample for resample, own in FILTERS.items() if own == number)


# Each edit as Pillow makes it.
_BY_PILLOW: dict[int, Callable[..., Image.Image]] = {
    _ext.EDIT_CROP: lambda image, x, y, width, height: image.crop((x, y, x + width, y + height)),
    _ext.EDIT_RESIZE: lambda image, width, height, number: image.resize((width, height), _resample(number)),
    _ext.EDIT_MIRROR: lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    _ext.EDIT_FLIP: lambda image: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
    _ext.EDIT_BRIGHTNESS: lambda image, factor: ImageEnhance.Brightness(image).enhance(factor),
    _ext.EDIT_CONTRAST: lambda image, factor: ImageEnhance.Contrast(image).enhance(factor),
    _ext.EDIT_SATURATION: lambda image, factor: ImageEnhance.Color(image).enhance(factor),
    _ext.EDIT_HUE: _shift_hue,
    _ext.EDIT_GREY: lambda image: image.convert("L").convert("RGB"),
    _ext.EDIT_SHARPNESS: lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor),
    _ext.EDIT_SOLARIZE: lambda image, threshold: ImageOps.solarize(image, threshold),
    _ext.EDIT_POSTERIZE: lambda image, bits: ImageOps.posterize(image, int(bits)),
    _ext.EDIT_AUTOCONTRAST: lambda image: ImageOps.autocontrast(image),
    _ext.EDIT_PERMUTE: lambda image, *order: Image.merge("RGB", [image.getchannel(int(k)) for k in order]),
    _ext.EDIT_EQUALIZE: lambda image: ImageOps.equalize(image),
    _ext.EDIT_AFFINE: _transformed(Image.Transform.AFFINE),
    _ext.EDIT_PERSPECTIVE: _transformed(Image.Transform.PERSPECTIVE),
    _ext.EDIT_BOX_BLUR: lambda image, *radii: image.filter(ImageFilter.BoxBlur(radii)),
    _ext.EDIT_GAUSSIAN_BLUR: lambda image, *sigmas: image.filter(ImageFilter.GaussianBlur(sigmas)),
    _ext.EDIT_POINT: lambda image, table: image.point(list(table)),
}


def made_core(source: Source, edits: Edits, mode: str, size: tuple[int, int]) -> Any:
    """Return Pillow's internal image of the edited image."""
    pixels = made_pixels(source, edits, mode)
    if pixels is not None:
        return core_of(mode, size, pixels)
    image = source.picture().convert("RGB")
    for kind, *numbers in edits:
        image = _BY_PILLOW[int(kind)](image, *numbers)
    return image.convert(mode).im
