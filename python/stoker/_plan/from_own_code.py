# SPDX-License-Identifier: Apache-2.0
"""How users' own classes and functions become steps: what they call of Pillow, torchvision, random, NumPy and torch.

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
from .._steps.base import Compose, Transform, compile_transform, converters, library_of, provers
from .._steps.blockers import Blocked
from .._steps.functions import Nothing, ToRGB
from .._steps.traced import (
    Fork,
    Kind,
    Run,
    Stand,
    Tracer,
    Unproved,
    entry_of,
    explored,
    finite,
    looks_up_plainly,
    range_of,
)

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
_CANNOT = (Blocked, NotImplementedError, TypeError, ValueError)


class Proved(Compose):
    """The steps that a user's code has been proved to be."""

    def __repr__(self) -> str:
        return ", then ".join(map(_shown, self.transforms)) or "a step that changes nothing"


def _shown(step: Any) -> str:
    """Return the text of a step, in one line."""
    if isinstance(step, (T.RandomApply, T.RandomChoice)):
        return f"{type(step).__name__}([{', '.join(map(_shown, step.transforms))}], p={step.p})"
    return " ".join(repr(step).split())


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


class _Picture(Stand):
    """An image, and the steps that were made. It never changes: each step returns another one."""

    def __init__(self, steps: tuple[Any, ...] = (), is_tensor: bool = False) -> None:
        self._stoker = steps, is_tensor

    def convert(self, mode: Any) -> _Picture:
        return _then(self, {"RGB": ToRGB, "L": T.Grayscale}[mode]())

    def copy(self) -> _Picture:
        return _then(self, Nothing())

    def filter(self, filter: Any) -> _Picture:
        if type(filter) is not _Blur:
            raise Unproved
        return _then(self, _PillowBlur(*range_of(filter._stoker)))

    def resize(self, size: Any, resample: Any = 3) -> _Picture:
        width, height = size
        return _then(self, T.Resize((height, width), resample))

    def rotate(
        self, angle: Any, resample: Any = 0, expand: Any = 0, center: Any = None, translate: Any = None, fillcolor: Any = None
    ) -> _Picture:
        if translate is not None:
            raise Unproved
        return _rotate(self, angle, resample, expand, center, fillcolor)

    def transpose(self, method: Any) -> _Picture:
        turns = {0: [T.RandomHorizontalFlip], 1: [T.RandomVerticalFlip], 3: [T.RandomHorizontalFlip, T.RandomVerticalFlip]}
        out = self
        for turn in turns[int(method)]:
            out = _then(out, turn(1.0))
        return out


def _then(image: Any, step: Transform) -> _Picture:
    """Return the image after a step that only images have, not tensors."""
    if type(image) is not _Picture or image._stoker[1]:
        raise Unproved
    step._wants_image = True
    return _Picture((*image._stoker[0], step))


class _Blur(Stand):
    """Pillow's filter."""

    def __init__(self, radius: Any = 2) -> None:
        self._stoker = radius


class _Enhancer(Stand):
    def __init__(self, image: Any, made: Callable[[Any], Transform]) -> None:
        self._stoker = image, made

    def enhance(self, factor: Any) -> _Picture:
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
) -> _Picture:
    return _then(image, T.RandomRotation(range_of(angle), interpolation, bool(expand), center, 0 if fill is None else fill))


def _gaussian_blur(image: Any, kernel_size: Any, sigma: Any = None) -> _Picture:
    if isinstance(sigma, tuple) and len(sigma) == 1:
        (sigma,) = sigma
    if sigma is None:
        if not isinstance(kernel_size, int):
            raise Unproved
        sigma = kernel_size * 0.15 + 0.35
    return _then(image, T.GaussianBlur(kernel_size, range_of(sigma)))


def _autocontrast(image: Any, cutoff: Any = 0, ignore: Any = None) -> _Picture:
    if cutoff != 0 or ignore is not None:
        raise Unproved
    return _then(image, T.RandomAutocontrast(1.0))


def _always(kind: Any) -> Callable[..., _Picture]:
    """Return a function of an image that does what this transform does with probability 1."""
    return lambda image, *given: _then(image, kind(*given, 1.0))


def _resized(image: Any, size: Any, interpolation: Any = 2, max_size: Any = None, antialias: Any = True) -> _Picture:
    return _then(image, T.Resize(size, interpolation, max_size, antialias))


def _padded(image: Any, padding: Any, fill: Any = 0, padding_mode: Any = "constant") -> _Picture:
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
    ("PIL.Image", "Image"): Kind(lambda thing: type(thing) is _Picture and not thing._stoker[1]),
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
        return Tracer(run, _known).stand_for(getattr(module, name))


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


def _function_for(value: Any) -> Any:
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


def _known(value: Any, run: Run) -> Any:
    """Return what stands for a thing of a library, or an object that is called with an image; None for any other."""
    if isinstance(value, ModuleType):
        is_listed = value.__name__ in _MODULES and sys.modules.get(value.__name__) is value
        return _Module(value, run) if is_listed else None
    drawing = _draws_from(value)
    if drawing is not None:
        made = _DRAWS.get(drawing)
        return None if made is None else made(run)
    function = _function_for(value)
    if function is not None:
        return function
    if isinstance(value, (type, FunctionType)) or entry_of(type(value), "__call__") is None:
        return None
    return lambda image: _with_step(image, value)


def _with_step(image: Any, step: Any) -> _Picture:
    """Return the image after a step that is an object of its own."""
    if type(image) is not _Picture:
        raise Unproved
    steps, is_tensor = image._stoker
    return _Picture((*steps, step), is_tensor or compile_transform(step)._makes_tensor)


# ---- proofs ----


def _text_of(step: Any) -> tuple[str, str]:
    """Return what a step is to the engine, for images in colour and for grey ones."""
    whole = Compose([step])
    return whole._spec(), whole._spec_of_grey()


def _row(tree: Any) -> list[Any]:
    """Return the steps that a tree of outcomes is."""
    if not isinstance(tree, Fork):
        if type(tree) is not _Picture:
            raise Unproved
        return list(tree._stoker[0])
    rows = [_row(way) for _, way in tree.ways]
    before, after = _taken(rows, 0), _taken(rows, -1)
    return [*before, *_chosen(rows, [weight for weight, _ in tree.ways]), *reversed(after)]


def _taken(rows: list[list[Any]], end: int) -> list[Any]:
    """Take the steps away that all rows begin with, or end with, and return them. Draws are independent of each other, so
    these steps are what they are without the fork."""
    taken = []
    while all(rows) and len({_text_of(row[end]) for row in rows}) == 1:
        taken.append([row.pop(end) for row in rows][0])
    return taken


def _chosen(rows: list[list[Any]], weights: list[float]) -> list[Any]:
    """Return the step that is one of several rows of steps with these probabilities, or no step."""
    likely: dict[Any, tuple[list[Any], float]] = {}
    for row, weight in zip(rows, weights, strict=True):
        key = tuple(text for text in map(_text_of, row) if any(text))
        likely[key] = row, weight + likely.get(key, ((), 0.0))[1]
    nothing = likely.pop((), ((), 0.0))[1]
    rows = [row for row, _ in likely.values()]
    weights = [weight for _, weight in likely.values()]
    if any(compile_transform(step)._makes_tensor for row in rows for step in row):
        raise Unproved
    if not rows:
        return []
    chosen: Transform
    if len(rows) > 1:
        chosen = T.RandomChoice([row[0] if len(row) == 1 else Compose(row) for row in rows], weights)
        chosen = T.RandomApply([chosen], min(sum(weights), 1.0)) if nothing else chosen
    else:
        chosen = T.RandomApply(rows[0], min(weights[0], 1.0))
    chosen._wants_image = any(getattr(step, "_wants_image", False) for row in rows for step in row)
    return [chosen]


def _called(transform: Any, run: Run) -> Any:
    """Return what the code makes of an image."""
    tracer = Tracer(run, _known)
    function = _function_for(transform)
    if function is not None:
        return function(_Picture())
    if type(transform) is FunctionType:
        return tracer.function(transform)(_Picture())
    module: Any = getattr(sys.modules.get("torch.nn"), "Module", None)
    if not looks_up_plainly(type(transform), (module,)):
        raise Unproved
    call = entry_of(type(transform), "__call__")
    if module is None or not isinstance(transform, module) or call is not vars(module)["__call__"]:
        return tracer.method(transform, "__call__")(_Picture())
    torch = sys.modules["torch"]
    if transform._forward_hooks or transform._forward_pre_hooks or torch.nn.modules.module._has_any_global_hook():
        raise Unproved
    if type(transform) is not torch.nn.Sequential:
        return tracer.attribute(transform, "forward")(_Picture())
    out = _Picture()
    for step in transform:
        out = _with_step(out, step)
    return out


def prove(transform: Any) -> Proved | None:
    """Return the steps that a user's function or object is; None if that cannot be proved."""
    if isinstance(transform, type) or library_of(transform) not in ("", "functions"):
        return None
    try:
        proved = Proved(_row(explored(lambda run: _called(transform, run))))
        proved._spec()
    except Exception:  # whatever the code raises when it gets what it does not expect
        return None
    return proved


provers.append(prove)
