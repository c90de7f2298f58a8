# SPDX-License-Identifier: Apache-2.0
"""Transforms of torchvision that are called with a lazy image.

Consecutive steps that the engine has run there in one call. A step that it does not have runs in Python, on what
torchvision would have at that point, and the steps after it run in the engine again. This is done only if the result is
torchvision's: for its own classes, unchanged and without hooks, and only for those ops on tensors whose result is the
same on bytes. What the engine refuses runs in Python, with torchvision's errors.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from PIL import Image

from . import _ext
from ._convert import take_capsule
from ._lazy_image import LAZY, PILLOW, REFUSALS, Lazy, core_of, pixels_of
from ._steps import RandomApply, Transform, compile_transform
from ._untouched import LOOKS_FOR_LAZY, changes_of_step

_CONTAINERS = {"Compose", "Sequential"}
_GEOMETRY = {
    "CenterCrop",
    "Pad",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
}
_COLOURS = {"ColorJitter", "GaussianBlur", "Grayscale", "RandomGrayscale"}
_MAKE_TENSORS = {"ToTensor", "PILToTensor", "ToImage"}
_ON_TENSORS = {"RandomHorizontalFlip", "RandomVerticalFlip", "Normalize", "RandomErasing", "ToPureTensor"}
_TO_FLOAT = {"ConvertImageDtype", "ToDtype"}
_PRESET = "ImageClassification"
_KNOWN = (
    _GEOMETRY | _COLOURS | _MAKE_TENSORS | _ON_TENSORS | _TO_FLOAT | {"Identity", "RGB", "RandomApply", _PRESET}
)

_classes: dict[type, str] = {}  # torchvision's classes that were found unchanged, and their names here
_plans: dict[int, _Plan] = {}  # by the id of the transform that is called


# ---- what runs in the engine ----


def _draw() -> int:
    """Return the seed of one call, from torch's generator: it follows from the seed of the script or the worker, and
    with seed_by="sample" from the sample."""
    torch: Any = sys.modules["torch"]
    return int(torch.empty((), dtype=torch.int64).random_())


class _Segment:
    """Consecutive steps that run in the engine."""

    def __init__(self, text: str, end: int, kind: str, random: bool, keeps_info: bool, layout: str) -> None:
        self.end = end  # the first step after it
        self.kind = kind  # of the result: "image", "tensor", or "tv" for torchvision's tv_tensors
        self.random = random
        self.keeps_info = keeps_info
        self.last = layout == "nhwc"
        self.nothing = not text and kind == "image"
        self._single = _ext.Single(_ext.Pipeline(text), layout=layout, pillow=PILLOW)

    def run(self, image: Any) -> Any:
        """Return the result; None if the engine cannot compute it."""
        if self.nothing:
            return image
        try:
            out = self._make(image, _draw() if self.random else 0)
        except REFUSALS:
            return None
        if self.kind == "image":
            return self._picture(out, image)
        tensor = take_capsule()(out.__dlpack__())
        if self.last:
            tensor = tensor.permute(2, 0, 1)
        if self.kind == "tv":
            tensor = tensor.as_subclass(sys.modules["torchvision.tv_tensors"].Image)
        return tensor

    def _make(self, image: Any, seed: int) -> Any:
        if isinstance(image, Lazy):
            found = image.source()
            if found is not None:
                return self._single.run(found[0].data, seed, 0, 0, found[1])
        pixels, channels = pixels_of(image)
        return self._single.run(pixels, seed, 0, 0, None, (*image.size, channels))

    def _picture(self, out: Any, image: Any) -> Any:
        height, width, channels = out.shape
        new = Image.Image()._new(core_of("RGB" if channels == 3 else "L", (width, height), out))
        if self.keeps_info:
            new.info = image.info.copy()
        return new


class _Builder:
    """Builds the longest segment that begins with a step."""

    def __init__(self) -> None:
        self.kind = "image"
        self.grey = self.is_float = self.random = self.drops_info = False
        self.layout = "nchw"
        self.parts: list[str] = []

    def add(self, step: Any) -> bool:
        """Add a step, and return whether it can follow those before it."""
        name = _name_of(step)
        if name is None:
            return False
        try:
            if name == "RandomApply":
                return self._add_apply(step)
            return self._add_to_image(name, step) if self.kind == "image" else self._add_to_tensor(name, step)
        except (TypeError, ValueError, NotImplementedError, AttributeError):
            return False

    def _say(self, name: str, step: Any, kind: str | None = None) -> bool:
        self.parts.append(compile_transform(step)._spec())
        self.random = self.random or name.startswith("Random") or name in ("ColorJitter", "GaussianBlur")
        self.kind = kind or self.kind
        return True

    def _add_to_image(self, name: str, step: Any) -> bool:
        if name in _GEOMETRY:
            self.drops_info |= name == "Pad" or (name == "RandomCrop" and step.padding is not None)
            return self._say(name, step)
        if name in _COLOURS:
            fixed_blur = name == "GaussianBlur" and step.sigma[0] == step.sigma[1]  # differs by a level from torchvision
            if self.grey or fixed_blur:
                return False
            self.grey = name == "Grayscale" and step.num_output_channels == 1
            self.drops_info |= not self.grey
            return self._say(name, step)
        if name in ("Identity", "RGB"):
            return not (self.grey and name == "RGB")
        if name == _PRESET:
            self.is_float, self.layout = True, "nhwc"
            return not self.grey and self._say(name, step, "tensor")
        if name not in _MAKE_TENSORS:
            return False
        if name == "ToTensor":
            self.is_float = True
            self.parts.append("to_tensor")
        else:
            self.parts.append("pil_to_tensor")
        self.layout = "nchw" if name == "ToTensor" else "nhwc"  # the strides that torchvision's result has
        self.kind = "tv" if name == "ToImage" else "tensor"
        return True

    def _add_to_tensor(self, name: str, step: Any) -> bool:
        if self.kind == "tv" and not _is_v2(step):
            return False
        if name == "Identity":
            return True
        if name == "ToPureTensor":
            self.kind = "tensor"
            return True
        if name in _TO_FLOAT:
            torch: Any = sys.modules["torch"]
            if step.dtype is not torch.float32 or self.is_float:
                return False
            self.is_float = True
            return self._say(name, step)
        if name not in _ON_TENSORS or (name == "Normalize" and not self.is_float):
            return False
        return self._say(name, step)

    def _add_apply(self, step: Any) -> bool:
        """Add steps that run for some images only: ops on images that do not change the number of channels."""
        if self.kind != "image":
            return False
        inner = _Builder()
        inner.grey = self.grey
        if not all(inner.add(part) for part in _flat(step.transforms)):
            return False
        if inner.kind != "image" or inner.grey != self.grey:
            return False
        self.drops_info |= inner.drops_info
        self.random = True
        self.parts.append(RandomApply([_Text(part) for part in inner.parts], step.p)._spec())
        return True

    def segment(self, end: int) -> _Segment:
        text = "; ".join(filter(None, self.parts))
        layout = "nhwc" if self.kind == "image" or self.grey else self.layout  # for one channel both are the same
        return _Segment(text, end, self.kind, self.random, not self.drops_info, layout)


class _Text(Transform):
    def __init__(self, text: str) -> None:
        self._text = text

    def _spec(self) -> str:
        return self._text


# ---- which steps are torchvision's own ----


def _is_v2(step: Any) -> bool:
    return type(step).__module__.startswith("torchvision.transforms.v2")


def _is_changed(step: Any) -> bool:
    """Return whether somebody has changed what this object or its class does."""
    return bool(changes_of_step(step, type(step).__module__.partition(".")[0]))


def _name_of(step: Any) -> str | None:
    """Return the name of a step of torchvision; None for any other step."""
    name = _classes.get(type(step))
    return None if name is None or name in _CONTAINERS or _is_changed(step) else name


def _flat(steps: Any) -> Iterator[Any]:
    """Yield the steps, including those inside containers."""
    for step in steps:
        if _classes.get(type(step)) in _CONTAINERS and not _is_changed(step):
            yield from _flat(_inside(step))
        else:
            yield step


def _inside(container: Any) -> Any:
    return container._modules.values() if _classes[type(container)] == "Sequential" else container.transforms


# ---- plans ----


_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def _snapshot(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes, with copies of lists and dicts that may change in place. Private attributes, which every
    module has, are copied only if they hold the steps of a container."""
    out = dict(state)
    for key, value in state.items():
        if type(value) is list or (type(value) is dict and (key == "_modules" or not key.startswith("_"))):
            out[key] = value.copy()
    return out


class _Plan:
    """The segments of one transform, valid as long as it does not change."""

    def __init__(self, owner: Any, steps: list[Any], watched: list[Any]) -> None:
        key = id(owner)
        self.owner = weakref.ref(owner, lambda gone: _forget(key, gone))
        self.steps = steps
        self._kinds = {type(one) for one in watched}
        self._seen = [(one, _snapshot(one.__dict__)) for one in watched]
        hooks = (one.__dict__.get(name) for one in watched for name in _HOOKS)
        self._hooks = [(some, len(some)) for some in hooks if some is not None]
        self._segments: dict[int, _Segment | None] = {}

    def holds(self, owner: Any) -> bool:
        """Return whether nothing that the plan depends on has changed."""
        if self.owner() is not owner or not self._kinds <= _classes.keys():
            return False
        try:
            for one, seen in self._seen:
                if one.__dict__ != seen:
                    return False
            return all(len(some) == before for some, before in self._hooks)
        except Exception:  # values that cannot be compared, such as arrays and tensors
            return False

    def segment(self, start: int) -> _Segment | None:
        if start not in self._segments:
            self._segments[start] = self._build(start)
        return self._segments[start]

    def _build(self, start: int) -> _Segment | None:
        builder, end = _Builder(), start
        while end < len(self.steps) and builder.add(self.steps[end]):
            end += 1
        while end > start:
            again = _Builder()
            for step in self.steps[start:end]:
                again.add(step)
            try:
                return again.segment(end)
            except REFUSALS:
                end -= 1  # the engine refuses the last of them
        return None


def _watched(steps: Any) -> Iterator[Any]:
    """Yield all objects whose attributes a plan depends on."""
    for step in steps:
        name = _classes.get(type(step))
        if name is None:
            continue
        yield step
        if name in _CONTAINERS:
            yield from _watched(_inside(step))
        elif name == "RandomApply":
            yield from _watched(step.transforms)


def _plan_of(transform: Any) -> _Plan:
    plan = _plans.get(id(transform))
    if plan is None or not plan.holds(transform):
        plan = _Plan(transform, list(_flat([transform])), list(_watched([transform])))
        _plans[id(transform)] = plan
    return plan


def _forget(key: int, gone: Any) -> None:
    plan = _plans.get(key)
    if plan is not None and plan.owner is gone:
        _plans.pop(key, None)


def _default_is_float32() -> bool:
    torch: Any = sys.modules["torch"]
    return torch.get_default_dtype() is torch.float32


@functools.cache
def _asks_for_types(kind: type) -> bool:
    """Return whether it is a class of torchvision, which dispatches on the type of images, and would come back here."""
    own = any(base.__module__.startswith("torchvision.") for base in kind.__mro__)
    return kind.__module__ == "torch.nn.modules.container" or (own and kind.__name__ != "Lambda")


def run(transform: Any, image: Any) -> Any:
    """Apply the transform to a lazy image."""
    plan = _plan_of(transform)
    steps, value, at = plan.steps, image, 0
    while at < len(steps):
        segment = plan.segment(at) if isinstance(value, Image.Image) and value.mode == "RGB" else None
        out = segment.run(value) if segment is not None else None
        if out is not None:
            assert segment is not None
            value, at = out, segment.end
            continue
        if type(value) in LAZY and _asks_for_types(type(steps[at])):
            value.release()
        value = steps[at](value)
        at += 1
    return value


# ---- patches ----


def _wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        if len(inputs) == 1 and type(inputs[0]) in LAZY and not named and type(self) in _classes:
            hooked = any(self.__dict__.get(name) for name in _HOOKS)  # they would be called twice
            if not hooked and _default_is_float32():
                return run(self, inputs[0])
        return original(self, *inputs, **named)

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(forward, name, getattr(original, name))
    setattr(forward, LOOKS_FOR_LAZY, original)
    return forward


class _Patch:
    """A class of torchvision that is patched to recognize lazy images. It is created once and applied many times: in a
    process that fetches samples itself, for every batch."""

    def __init__(self, kind: Any, name: str) -> None:
        self._kind = kind
        self._name = name
        self._attribute = "forward" if hasattr(kind, "forward") else "__call__"
        self._before = getattr(kind, self._attribute)
        self._inherited = self._attribute not in kind.__dict__
        self._ours = _wrapped(self._before)

    def do(self) -> None:
        if getattr(self._kind, self._attribute) is self._before:  # otherwise somebody else has patched it
            setattr(self._kind, self._attribute, self._ours)
            _classes[self._kind] = self._name

    def undo(self) -> None:
        _classes.pop(self._kind, None)
        if self._kind.__dict__.get(self._attribute) is not self._ours:
            return
        if self._inherited:
            delattr(self._kind, self._attribute)
        else:
            setattr(self._kind, self._attribute, self._before)


@functools.cache
def _patches(module_name: str) -> list[_Patch]:
    module: Any = sys.modules[module_name]
    found = ((getattr(module, name, None), name) for name in sorted(_KNOWN | {"Compose"}))
    return [
        _Patch(kind, name)
        for kind, name in found
        if isinstance(kind, type) and kind.__module__.startswith("torchvision.transforms")
    ]


@functools.cache
def _sequential() -> _Patch:
    torch: Any = sys.modules["torch"]
    return _Patch(torch.nn.Sequential, "Sequential")


def patch(module_name: str) -> Callable[[], None]:
    """Make the transforms of this module recognize lazy images. Return a function that undoes it."""
    patches = [*_patches(module_name), _sequential()]
    for one in patches:
        one.do()

    def undo() -> None:
        for one in patches:
            one.undo()

    return undo
