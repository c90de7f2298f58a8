# SPDX-License-Identifier: Apache-2.0
"""What users' own steps call, and what stands for it: images, and functions of Pillow, torchvision, random, NumPy and torch.

Neither Pillow nor torchvision is imported here: their functions are recognised by the modules that they are in.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

from .. import transforms as T
from .._base.unmodified import is_from, original_of
from .._steps.arguments import op
from .._steps.base import Transform, compile_transform
from .._steps.functions import Nothing, ToRGB
from .._steps.traced import Kind, Run, Stand, Tracer, Unproved, entry_of, finite, range_of

_SIGMA_MOST = 1e4  # of the engine's op
_MODULES = {
    "PIL",
    "PIL.Image",
    "PIL.ImageEnhance",
    "PIL.ImageFilter",
    "PIL.ImageOps",
    "numpy",
    "numpy.random",
    "random",
    "torch",
    "torchvision",
    "torchvision.transforms",
    "torchvision.transforms.functional",
    "torchvision.transforms.v2",
    "torchvision.transforms.v2.functional",
}


class _PillowBlur(Transform):
    """Pillow's GaussianBlur, of a sigma from this range."""

    def __init__(self, low: float, high: float) -> None:
        if not 0 <= low <= high <= _SIGMA_MOST:
            raise Unproved
        self._sigma = low, high

    def _spec(self) -> str:
        return op("pillow_blur", sigma=self._sigma)

    def _of_v2(self, v2: Any) -> Any:
        from PIL import Image, ImageFilter

        return v2.Lambda(lambda image: image.filter(ImageFilter.GaussianBlur(random.uniform(*self._sigma))), Image.Image)

    def __repr__(self) -> str:
        return f"GaussianBlur(sigma={self._sigma})"


# ---- images ----


class Picture(Stand):
    """An image, and the steps that were made. It never changes: each step returns another one."""

    def __init__(self, steps: tuple[Any, ...] = (), is_tensor: bool = False, before: Picture | None = None) -> None:
        self._stoker = steps, is_tensor
        self._stoker_line: tuple[Any, ...] = () if before is None else (*before._stoker_line, self)  # what it was made of

    def convert(self, mode: Any) -> Picture:
        return _then(self, {"RGB": ToRGB, "L": T.Grayscale}[mode]())

    def copy(self) -> Picture:
        return _then(self, Nothing())

    def filter(self, filter: Any) -> Picture:
        if type(filter) is not _Blur:
            raise Unproved
        return _then(self, _PillowBlur(*range_of(filter._stoker)))

    def resize(self, size: Any, resample: Any = 3) -> Picture:
        width, height = size
        return _then(self, T.Resize((height, width), resample))

    def rotate(
        self, angle: Any, resample: Any = 0, expand: Any = 0, center: Any = None, translate: Any = None, fillcolor: Any = None
    ) -> Picture:
        if translate is not None:
            raise Unproved
        return _rotate(self, angle, resample, expand, center, fillcolor)

    def transpose(self, method: Any) -> Picture:
        turns = {0: [T.RandomHorizontalFlip], 1: [T.RandomVerticalFlip], 3: [T.RandomHorizontalFlip, T.RandomVerticalFlip]}
        out = self
        for turn in turns[int(method)]:
            out = _then(out, turn(1.0))
        return out


def _then(image: Any, step: Transform) -> Picture:
    """Return the image after a step that only images have, not tensors."""
    if type(image) is not Picture or image._stoker[1]:
        raise Unproved
    step._wants_image = True
    return Picture((*image._stoker[0], step), before=image)


class _Blur(Stand):
    """Pillow's filter."""

    def __init__(self, radius: Any = 2) -> None:
        self._stoker = radius


class _Enhancer(Stand):
    def __init__(self, image: Any, made: Callable[[Any], Transform]) -> None:
        self._stoker = image, made

    def enhance(self, factor: Any) -> Picture:
        image, made = self._stoker
        return _then(image, made(factor))


def _uniform(run: Run) -> Callable[..., Any]:
    return lambda low=0.0, high=1.0: run.drawn(low, high)


def _jitter(name: str) -> Callable[[Any], Transform]:
    return lambda factor: T.ColorJitter(**{name: range_of(factor)})


def _sharpness(factor: Any) -> Transform:
    return T.RandomAdjustSharpness(finite(factor), 1.0)


def _rotate(
    image: Any, angle: Any, interpolation: Any = 0, expand: Any = False, center: Any = None, fill: Any = None
) -> Picture:
    return _then(image, T.RandomRotation(range_of(angle), interpolation, bool(expand), center, 0 if fill is None else fill))


def _gaussian_blur(image: Any, kernel_size: Any, sigma: Any = None) -> Picture:
    if isinstance(sigma, tuple) and len(sigma) == 1:
        (sigma,) = sigma
    if sigma is None:
        if not isinstance(kernel_size, int):
            raise Unproved
        sigma = kernel_size * 0.15 + 0.35
    return _then(image, T.GaussianBlur(kernel_size, range_of(sigma)))


def _autocontrast(image: Any, cutoff: Any = 0, ignore: Any = None) -> Picture:
    if cutoff != 0 or ignore is not None:
        raise Unproved
    return _then(image, T.RandomAutocontrast(1.0))


def _always(kind: Any) -> Callable[..., Picture]:
    """Return a function of an image that does what this transform does with probability 1."""
    return lambda image, *given: _then(image, kind(*given, 1.0))


def _resized(image: Any, size: Any, interpolation: Any = 2, max_size: Any = None, antialias: Any = True) -> Picture:
    return _then(image, T.Resize(size, interpolation, max_size, antialias))


def _padded(image: Any, padding: Any, fill: Any = 0, padding_mode: Any = "constant") -> Picture:
    return _then(image, T.Pad(padding, 0 if fill is None else fill, padding_mode))


# ---- what is drawn ----


class _Whole(Stand):
    """A tensor of one whole number."""

    def __init__(self, value: int) -> None:
        self._stoker = value

    def item(self) -> int:
        return self._stoker


class _Empty(Stand):
    """A tensor of one number that is not set yet."""

    def __init__(self, run: Run) -> None:
        self._stoker = run

    def uniform_(self, low: Any = 0.0, high: Any = 1.0) -> Any:
        return self._stoker.drawn(low, high, is_tensor=True)


def _one(*size: Any) -> None:
    """Refuse sizes of tensors but those of one number."""
    if size not in ((1,), ((1,),), ((),)):
        raise Unproved


def _rand(run: Run) -> Callable[..., Any]:
    def rand(*size: Any) -> Any:
        _one(*size)
        return run.drawn(0.0, 1.0, is_tensor=True)

    return rand


def _empty(run: Run) -> Callable[..., Any]:
    def empty(*size: Any) -> Any:
        _one(*size)
        return _Empty(run)

    return empty


def _torchs_integer(run: Run) -> Callable[..., Any]:
    def randint(*given: Any) -> Any:
        *bounds, size = given
        _one(size)
        return _Whole(run.one_of(range(*bounds)))

    return randint


# What stands for a function, made for a run.
_DRAWS: dict[tuple[str, str], Callable[[Run], Callable[..., Any]]] = {
    ("random", "choice"): lambda run: run.one_of,
    ("random", "randint"): lambda run: lambda low, high: run.one_of(range(low, high + 1)),
    ("random", "random"): lambda run: lambda: run.drawn(0.0, 1.0),
    ("random", "randrange"): lambda run: lambda *bounds: run.one_of(range(*bounds)),
    ("random", "uniform"): lambda run: lambda a, b: run.drawn(a, b),
    ("numpy.random", "choice"): lambda run: run.one_of,
    ("numpy.random", "rand"): lambda run: lambda: run.drawn(0.0, 1.0),
    ("numpy.random", "randint"): lambda run: lambda *bounds: run.one_of(range(*bounds)),
    ("numpy.random", "random"): lambda run: lambda: run.drawn(0.0, 1.0),
    ("numpy.random", "random_sample"): lambda run: lambda: run.drawn(0.0, 1.0),
    ("numpy.random", "uniform"): _uniform,
    ("torch", "empty"): _empty,
    ("torch", "rand"): _rand,
    ("torch", "randint"): _torchs_integer,
}
_PILLOW: dict[tuple[str, str], Any] = {
    ("PIL.Image", "Image"): Kind(lambda thing: type(thing) is Picture and not thing._stoker[1]),
    ("PIL.ImageEnhance", "Brightness"): lambda image: _Enhancer(image, _jitter("brightness")),
    ("PIL.ImageEnhance", "Color"): lambda image: _Enhancer(image, _jitter("saturation")),
    ("PIL.ImageEnhance", "Contrast"): lambda image: _Enhancer(image, _jitter("contrast")),
    ("PIL.ImageEnhance", "Sharpness"): lambda image: _Enhancer(image, _sharpness),
    ("PIL.ImageFilter", "GaussianBlur"): _Blur,
    ("PIL.ImageOps", "autocontrast"): _autocontrast,
    ("PIL.ImageOps", "equalize"): _always(T.RandomEqualize),
    ("PIL.ImageOps", "flip"): _always(T.RandomVerticalFlip),
    ("PIL.ImageOps", "grayscale"): lambda image: image.convert("L"),
    ("PIL.ImageOps", "invert"): _always(T.RandomInvert),
    ("PIL.ImageOps", "mirror"): _always(T.RandomHorizontalFlip),
    ("PIL.ImageOps", "posterize"): lambda image, bits: _always(T.RandomPosterize)(image, bits),
    ("PIL.ImageOps", "solarize"): lambda image, threshold=128: _always(T.RandomSolarize)(image, threshold),
}
_TORCHVISION: dict[str, Callable[..., Any]] = {
    "adjust_brightness": lambda image, brightness_factor: _then(image, _jitter("brightness")(brightness_factor)),
    "adjust_contrast": lambda image, contrast_factor: _then(image, _jitter("contrast")(contrast_factor)),
    "adjust_hue": lambda image, hue_factor: _then(image, _jitter("hue")(hue_factor)),
    "adjust_saturation": lambda image, saturation_factor: _then(image, _jitter("saturation")(saturation_factor)),
    "adjust_sharpness": lambda image, sharpness_factor: _then(image, _sharpness(sharpness_factor)),
    "autocontrast": _always(T.RandomAutocontrast),
    "center_crop": lambda image, output_size: _then(image, T.CenterCrop(output_size)),
    "equalize": _always(T.RandomEqualize),
    "gaussian_blur": _gaussian_blur,
    "hflip": _always(T.RandomHorizontalFlip),
    "horizontal_flip": _always(T.RandomHorizontalFlip),
    "invert": _always(T.RandomInvert),
    "pad": _padded,
    "posterize": lambda image, bits: _always(T.RandomPosterize)(image, bits),
    "resize": _resized,
    "rgb_to_grayscale": lambda image, num_output_channels=1: _then(image, T.Grayscale(num_output_channels)),
    "rotate": _rotate,
    "solarize": lambda image, threshold: _always(T.RandomSolarize)(image, threshold),
    "to_grayscale": lambda image, num_output_channels=1: _then(image, T.Grayscale(num_output_channels)),
    "vertical_flip": _always(T.RandomVerticalFlip),
    "vflip": _always(T.RandomVerticalFlip),
}


# ---- what code reaches ----


class _Module(Stand):
    def __init__(self, module: Any, run: Run) -> None:
        self._stoker = module, run

    def __getattr__(self, name: str) -> Any:
        module, run = self._stoker
        return Tracer(run, known).stand_for(getattr(module, name))


def _draws_from(value: Any) -> tuple[str, str] | None:
    """Return the module and the name of a function that draws from a library's own generator."""
    if not isinstance(value, (BuiltinMethodType, MethodType)):
        return None
    name = value.__name__
    if value.__self__ is random._inst:  # type: ignore[attr-defined]
        return "random", name
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None and value.__self__ is numpy.mtrand._rand:
        return "numpy.random", name
    torch = sys.modules.get("torch")
    return ("torch", name) if torch is not None and value is vars(torch).get(name) else None


def function_for(value: Any) -> Any:
    """Return what stands for a function or class of Pillow, or a function of torchvision."""
    if not isinstance(value, (FunctionType, type)):
        return None
    original: Any = original_of(value)
    module, name = original.__module__, original.__qualname__
    package = module.partition(".")[0]
    if package not in ("PIL", "torchvision") or not is_from(package, original):
        return None
    if isinstance(original, type) and vars(sys.modules[module]).get(name) is not original:
        return None
    if module.startswith(("torchvision.transforms.functional", "torchvision.transforms.v2.functional")):
        return _TORCHVISION.get(name)
    return _PILLOW.get((module, name))


def known(value: Any, run: Run) -> Any:
    """Return what stands for a thing of a library, or an object that is called with an image; None for any other."""
    if isinstance(value, ModuleType):
        is_listed = value.__name__ in _MODULES and sys.modules.get(value.__name__) is value
        return _Module(value, run) if is_listed else None
    drawing = _draws_from(value)
    if drawing is not None:
        made = _DRAWS.get(drawing)
        return None if made is None else made(run)
    function = function_for(value)
    if function is not None:
        return function
    if isinstance(value, (type, FunctionType)) or entry_of(type(value), "__call__") is None:
        return None
    return lambda image: with_step(image, value)


def with_step(image: Any, step: Any) -> Picture:
    """Return the image after a step that is an object of its own."""
    if type(image) is not Picture:
        raise Unproved
    steps, is_tensor = image._stoker
    return Picture((*steps, step), is_tensor or compile_transform(step)._makes_tensor, image)


# Steps in which nothing is drawn, so that several views may have them in common.
_SAME_FOR_ALL = (Nothing, ToRGB, T.CenterCrop, T.Grayscale, T.Pad, T.Resize)


def are_independent(views: Sequence[Picture]) -> bool:
    """Return whether no two images were made of one in which something was drawn."""
    seen: set[int] = set()
    for view in views:
        line = view._stoker_line
        ids = set(map(id, line))
        for image in line:
            step = compile_transform(image._stoker[0][-1])
            if id(image) in seen and not isinstance(step, _SAME_FOR_ALL):
                return False
        seen |= ids
    return True
