# SPDX-License-Identifier: Apache-2.0
"""torchvision's transforms on lazy images, and timm's.

Transforms run as torchvision wrote them: they draw their numbers from torch's generator, check their arguments and
raise their errors. What they do to the pixels of a lazy image is recorded in it: by the methods of Pillow that it
overrides (crop, resize, flips, maps), and by the functions here that take the place of torchvision's for colours. So an
image and a mask to which a transform is applied with the same seed stay a pair, whichever of them is lazy.

The step that makes a tensor, and those after it in which nothing is drawn, run in the engine together with what was
recorded. This is done only for torchvision's own classes, unchanged and without hooks, and only if the result is
torchvision's to the bit. What the engine refuses is left to torchvision.
"""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from PIL import Image

from .._base.tensors import take_capsule
from .._base.unmodified import in_place_of
from .._engine.batch_tensor import BatchTensor
from .._steps.base import PRESETS, changes_of, compile_transform
from . import late
from .colours import COLOURS
from .images import Lazy, deferred, is_lazy
from .patches import Patch, applied
from .pixels import REFUSALS, Decoded, Encoded, single_of, text_of_mode
from .timm_steps import TIMM, has_own_functions, with_pixels

_MAKE_TENSORS = {"ToTensor", "PILToTensor", "ToImage"} | PRESETS
_WITHOUT_STATE = {"ToTensor", "PILToTensor"}  # of v1: what they do depends on the image alone
_TO_FLOAT = {"ConvertImageDtype", "ToDtype"}
_ON_TENSORS = {"Identity", "Normalize", "ToPureTensor"} | _TO_FLOAT
_ON_IMAGES = {
    "AutoAugment",
    "CenterCrop",
    "ColorJitter",
    "Grayscale",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomCrop",
    "RandomEqualize",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShortestSize",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "ScaleJitter",
    "TrivialAugmentWide",
}
_HOLDERS = {"RandomApply", "RandomChoice", "RandomOrder"}
_MAKES_IMAGES = "ToPILImage"
_MODES = ("RGB", "L")  # of images that the engine has

_classes: dict[type, str] = {}  # classes that are patched or known here, and their names, or those of torchvision's like them


def _is_v2(kind: type) -> bool:
    return kind.__module__.startswith("torchvision.transforms.v2")


# ---- steps that make tensors ----


class _Tail:
    """A step that makes a tensor of an image, and those after it, in the engine."""

    def __init__(self, mode: str) -> None:
        self.length = 0
        self._mode = mode
        self._is_float = self._is_tv = self._makes_late = False
        self._layout = "nhwc"
        self._parts = [text_of_mode(mode)]
        self._single: Any = None

    def add(self, name: str, step: Any) -> bool:
        """Add a step, and return whether it can follow those before it."""
        try:
            added = self._add_first(name, step) if not self.length else self._add_next(name, step)
        except (TypeError, ValueError, NotImplementedError, AttributeError):
            return False
        self.length += added
        return added

    def _add_first(self, name: str, step: Any) -> bool:
        if name in PRESETS:
            self._parts.append(compile_transform(step)._spec())
            self._is_float = True
            return self._mode == "RGB"
        if name not in _MAKE_TENSORS:
            return False
        self._is_float = name == "ToTensor"
        self._is_tv = name == "ToImage"
        self._parts.append("to_tensor" if self._is_float else "pil_to_tensor")
        # The strides that torchvision's result has; with one channel both layouts are the same.
        self._layout = "nchw" if self._is_float and self._mode == "RGB" else "nhwc"
        self._makes_late = self._layout == "nchw"
        return True

    def _add_next(self, name: str, step: Any) -> bool:
        if name not in _ON_TENSORS or (self._is_tv and not _is_v2(type(step))):
            return False
        if name in _TO_FLOAT:
            if self._is_float or step.dtype is not sys.modules["torch"].float32:
                return False
            self._is_float = True
        elif name == "Normalize" and not self._is_float:
            return False
        elif name == "ToPureTensor":
            self._is_tv = False
        if name not in ("Identity", "ToPureTensor"):
            self._parts.append(compile_transform(step)._spec())
        return True

    def open(self) -> bool:
        """Return whether the engine has these steps."""
        try:
            self._single = single_of("; ".join(filter(None, self._parts)), self._layout)
        except REFUSALS:
            return False
        return True

    def run(self, image: Any, at_the_end: Sequence[Any] = ()) -> Any:
        """Return the tensor; None if the engine cannot make it. `at_the_end`: these steps, which nothing follows."""
        found = image.source() if isinstance(image, Lazy) else None
        source, edits = (Decoded(image), ()) if found is None else found
        source.check()  # Pillow's errors are no refusals
        if at_the_end and self._makes_late and late.is_wanted() and isinstance(source, Encoded):
            return BatchTensor(late.Late(source, edits, self._single, at_the_end, image.size))
        try:
            out = source.run(self._single, edits)
        except REFUSALS:
            return None
        tensor = take_capsule()(out.__dlpack__())
        if self._layout == "nhwc":
            tensor = tensor.permute(2, 0, 1)
        if self._is_tv:
            tensor = tensor.as_subclass(sys.modules["torchvision.tv_tensors"].Image)
        return tensor


_TAILS_MOST = 256
_tails: dict[Any, _Tail | None] = {}  # by what their steps are; the oldest are dropped
_NUMBERS_MOST = 16  # in a tensor of a step
_METHODS = ("__call__", "forward", "transform", "make_params")
_PLAIN = (bool, int, float, str, type(None), enum.Enum)


def _frozen(value: Any) -> Any:
    """Return an attribute of a step as part of a key; TypeError if its value may change or is not known here."""
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(one) for one in value)
    torch: Any = sys.modules["torch"]
    if isinstance(value, _PLAIN) or type(value) is torch.dtype:
        return value
    if type(value) is torch.Tensor and value.device.type == "cpu" and value.numel() <= _NUMBERS_MOST:
        return value.dtype, _frozen(value.tolist())  # means and deviations, as timm gives them
    raise TypeError(value)


def _content(step: Any) -> Any:
    """Return what the result of a step depends on: steps with equal contents do the same. TypeError if unknown."""
    kind = type(step)
    state = [(name, _frozen(value)) for name, value in vars(step).items() if not name.startswith("_")]
    return kind, tuple(getattr(kind, name, None) for name in _METHODS), tuple(state)


def _has_hooks(step: Any) -> bool:
    own = vars(step)
    return bool(own.get("_forward_hooks") or own.get("_forward_pre_hooks"))


def _tail_at(steps: Sequence[Any], at: int, mode: str) -> _Tail | None:
    """Return the longest tail that begins with the step at `at`; None if the engine has none."""
    contents = []
    for step in steps[at:]:
        name = _classes.get(type(step))
        if name not in (_ON_TENSORS if contents else _MAKE_TENSORS) or _has_hooks(step):
            break
        try:
            contents.append(_content(step))
        except TypeError:
            break
    if not contents:
        return None
    key = mode, *contents
    if key not in _tails:
        while len(_tails) >= _TAILS_MOST:
            _tails.pop(next(iter(_tails)), None)
        _tails[key] = _new_tail(steps[at : at + len(contents)], mode)
    return _tails.get(key)


def _new_tail(steps: Sequence[Any], mode: str) -> _Tail | None:
    for end in range(len(steps), 0, -1):
        tail = _Tail(mode)
        for step in steps[:end]:
            if changes_of(step) or not tail.add(_classes[type(step)], step):
                break
        if tail.length and tail.open():
            return tail
    return None


# ---- the steps of a Compose ----


def _is_known(step: Any) -> bool:
    """Return whether a step is one of torchvision's whose work on pixels is recorded, and runs no other code."""
    name = _classes.get(type(step))
    if name in _HOLDERS:
        return all(_is_known(inner) for inner in step.transforms)
    if type(step).__module__ == "timm.data.auto_augment" and has_own_functions(step):
        return False
    return name in _ON_IMAGES and not _has_hooks(step)


class _Held:
    """An image with pixels, and the lazy image that stands for it while steps of torchvision run."""

    def __init__(self) -> None:
        self._image: Any = None
        self._lazy: Any = None

    def for_engine(self, value: Any) -> Any:
        """Return a lazy image for one with pixels."""
        has_pixels = type(value) is Image.Image or (is_lazy(value) and not isinstance(value, Lazy))
        if not has_pixels or value.mode not in _MODES:
            return value
        self._image = value
        self._lazy = deferred(Decoded(value), (), value.mode, value.size, value.info)  # loading may add to info
        return self._lazy

    def for_others(self, value: Any) -> Any:
        """Return the image for code that may change it: with pixels of its own."""
        if value is self._lazy:
            return self._image
        if self._lazy is not None and isinstance(value, Lazy):
            value.load()
        return value


def _run_compose(steps: Sequence[Any], value: Any) -> Any:
    at, held = 0, _Held()
    while at < len(steps):
        if isinstance(value, Image.Image):
            tail = _tail_at(steps, at, value.mode) if value.mode in _MODES else None
            out = None
            if tail is not None:
                out = tail.run(value, steps[at:] if at + tail.length == len(steps) else ())
            if out is not None:
                assert tail is not None
                value, at = out, at + tail.length
                continue
            value = held.for_engine(value) if _is_known(steps[at]) else held.for_others(value)
        value = steps[at](value)
        at += 1
    return held.for_others(value)


def _run_one(step: Any, image: Any) -> Any:
    """Return the tensor that this step makes of an image; None if the engine cannot make it."""
    tail = _tail_at((step,), 0, image.mode) if image.mode in _MODES else None
    return None if tail is None else tail.run(image)


def _in_engines_type() -> bool:
    """Return whether torchvision makes the engine's type of float, and no hooks of torch see every module."""
    torch: Any = sys.modules["torch"]
    return torch.get_default_dtype() is torch.float32 and not torch.nn.modules.module._has_any_global_hook()


def _begins_with_image(steps: Sequence[Any], value: Any) -> bool:
    """Return whether there is an image that came from a file or that is made of an array, for the steps behind it."""
    if is_lazy(value):
        return bool(steps)
    return len(steps) > 1 and _classes.get(type(steps[0])) == _MAKES_IMAGES and not isinstance(value, Image.Image)


def _wrapped_compose(original: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        if len(inputs) == 1 and not named and type(self) in _classes:
            steps = self.transforms
            if isinstance(steps, (list, tuple)) and _begins_with_image(steps, inputs[0]) and _in_engines_type():
                return _run_compose(steps, inputs[0])
        return original(self, *inputs, **named)

    return in_place_of(original, forward)


def _wrapped_step(plain: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """`plain` stands for objects of derived classes that call the original; None if it depends on the object."""

    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        if len(inputs) == 1 and is_lazy(inputs[0]) and not named:
            step = self if type(self) in _classes else plain
            out = _run_one(step, inputs[0]) if step is not None and _in_engines_type() else None
            if out is not None:
                return out
        return original(self, *inputs, **named)

    return in_place_of(original, forward)


# ---- patches ----


class _Class:
    """A class that is known here, and patched if it has to look for lazy images."""

    def __init__(self, kind: Any, name: str) -> None:
        self._kind = kind
        self._name = name
        wrap: Callable[[Any], Any] | None = _wrapped_compose if name == "Compose" else None
        if name in _MAKE_TENSORS:
            plain = kind() if name in _WITHOUT_STATE and not _is_v2(kind) else None
            wrap = functools.partial(_wrapped_step, plain)
        attribute = "forward" if hasattr(kind, "forward") else "__call__"
        self._patch = Patch(kind, attribute, wrap) if wrap else None

    def do(self) -> None:
        if self._patch is None or self._patch.do():
            _classes[self._kind] = self._name

    def undo(self) -> None:
        _classes.pop(self._kind, None)
        if self._patch is not None:
            self._patch.undo()


def _classes_of(module: Any) -> list[_Class]:
    names = sorted(_ON_IMAGES | _MAKE_TENSORS | _ON_TENSORS | _HOLDERS | {"Compose", _MAKES_IMAGES})
    found = ((getattr(module, name, None), name) for name in names)
    return [
        _Class(kind, name)
        for kind, name in found
        if isinstance(kind, type) and kind.__module__.startswith("torchvision.transforms")
    ]


def _classes_of_timm(module: Any) -> list[_Class]:
    found = ((getattr(module, name, None), like) for name, like in TIMM[module.__name__].items())
    return [_Class(kind, like) for kind, like in found if isinstance(kind, type)]


class _Kernel:
    """A function that v2 calls for images of Pillow: it looks for one by the type of the image."""

    def __init__(self, kernels: dict[type, Any], wrap: Callable[[Any], Any]) -> None:
        self._kernels = kernels
        self._before = kernels[Image.Image]
        self._ours = wrap(self._before)

    def do(self) -> None:
        if self._kernels.get(Image.Image) is self._before:
            self._kernels[Image.Image] = self._ours

    def undo(self) -> None:
        if self._kernels.get(Image.Image) is self._ours:
            self._kernels[Image.Image] = self._before


def _kernels() -> list[_Kernel]:
    functional: Any = sys.modules.get("torchvision.transforms.v2.functional")
    registry = getattr(sys.modules.get("torchvision.transforms.v2.functional._utils"), "_KERNEL_REGISTRY", {})
    found = ((registry.get(getattr(functional, name, None), {}), one) for name, one in COLOURS.items())
    return [_Kernel(kernels, one.wrapped) for kernels, one in found if Image.Image in kernels]


@functools.cache
def _patches(module_name: str) -> list[_Class | Patch | _Kernel]:
    module: Any = sys.modules[module_name]
    if module_name in TIMM:
        mixer = getattr(module, "AugMixAugment", None)
        return [*_classes_of_timm(module), *([Patch(mixer, "__call__", with_pixels)] if mixer else [])]
    out: list[_Class | Patch | _Kernel] = [*_classes_of(module)]
    found = (getattr(module, name, None) for name in ("FiveCrop", "TenCrop"))  # not in the presets' module
    out += [Patch(kind, "forward", with_pixels) for kind in found if hasattr(kind, "forward")]
    functions: Any = sys.modules.get("torchvision.transforms._functional_pil")
    if module_name == "torchvision.transforms.transforms" and functions is not None:
        out += [Patch(functions, name, one.wrapped) for name, one in COLOURS.items() if hasattr(functions, name)]
    if module_name == "torchvision.transforms.v2":
        out += _kernels()
    return out


def patch(module_name: str) -> Callable[[], None]:
    """Make the transforms of this module recognize lazy images. Return a function that undoes it."""
    return applied(_patches(module_name))


def is_recorded(step: Any, made_tensor: bool) -> bool:
    """Return whether the engine makes the pixels of a step: of one on images, or behind the one that made a tensor."""
    name = type(step).__name__
    if name in _HOLDERS and not made_tensor:
        return all(is_recorded(inner, False) for inner in step.transforms)
    return name in (_ON_TENSORS if made_tensor else _ON_IMAGES | _MAKE_TENSORS)
