# SPDX-License-Identifier: Apache-2.0
"""The base classes of transforms: how they combine, become the text of a pipeline, and run on one image."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from .._base.remember import remembered
from .._base.suggest import SuggestsKeywords
from .._base.tensors import next_epoch, torch_if_installed
from .._base.unmodified import as_of_library, changes_of_step
from . import single
from .arguments import op
from .blockers import TRANSFORM, Blocked, Blocker
from .late_crops import refuse_late_crops
from .mix import is_of_batches

_calls = itertools.count()


class Transform(SuggestsKeywords):
    """Base class of all transforms in stoker.transforms and stoker.audio.

    A transform is a description; the engine does the work. Calling one with a single image runs it in the
    calling thread, for inspection and tests. Its random draws differ from call to call and follow from
    `torch.manual_seed` where torch is in use.

    >>> import numpy as np
    >>> T.CenterCrop(8)(np.zeros((32, 48, 3), np.uint8)).shape
    (8, 8, 3)
    """

    _makes_tensor = False  # the result is a tensor, channels first
    _wants_tensor = False  # the input must be a tensor
    _makes_array = False  # the result is an array, channels last, and no step follows
    _deferred = False  # makes a tensor, but only when a later op needs one (v2's ToImage)
    _wants_image = False  # fails on tensors in torchvision
    _triples = False  # makes three channels of a tensor that has one
    _makes_views = False  # the result is a list of images

    def _spec(self) -> str:
        """Return this transform as part of a pipeline's text."""
        raise NotImplementedError

    def _spec_of_grey(self) -> str:
        """Return the same for an image with one channel."""
        return self._spec()

    def _of_v2(self, v2: Any) -> Any:
        """Return the transform of torchvision's v2 that does the same, if it does not have this one's name."""
        return None

    def __call__(self, img: Any) -> Any:
        """Run the transform on one image.

        Args:
            img: A PIL image, or a uint8 array of shape height x width x 3 or height x width.

        Returns:
            A uint8 array of shape height x width x channels, or, once a transform has made a tensor, a
            tensor of shape channels x height x width (torch's where torch is installed, else NumPy's). If it has a step
            that the engine does not have, Python runs all of it, with torchvision's steps, and the result is the last
            step's.

        Raises:
            TypeError: `img` is not an image.
        """
        try:
            text = pipeline_text(self)
        except Blocked:
            if not in_python:
                raise
            return in_python[0](self, img)
        out = single.run(
            text, img, next_epoch(_calls), seed=0, dtype=None, memory_format=None, pillow=13
        )
        if gives_array(text):
            return out
        if not self._makes_tensor:
            return np.ascontiguousarray(out.transpose(1, 2, 0))
        torch = torch_if_installed()
        return torch.from_numpy(out) if torch else out

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class WithProbability(Transform):
    """Base class of transforms that do something with probability `p`."""

    _name = ""

    def __init__(self, p: float) -> None:
        if not (isinstance(p, numbers.Real) or hasattr(p, "item")) or not 0 <= p <= 1:
            raise ValueError(f"p={p!r} is not a probability: it must be from 0 to 1")
        self.p = p

    def _spec(self) -> str:
        return op(self._name, p=self.p)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class Compose(Transform):
    """Apply several transforms in order.

    Args:
        transforms: Transforms of this module or of torchvision (v1 or v2), also mixed.

    >>> T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor()])
    Compose(
        Resize(size=256, interpolation=bilinear, max_size=None, antialias=True)
        CenterCrop(size=(224, 224))
        ToTensor()
    )
    """

    def __init__(self, transforms: Sequence[Any]) -> None:
        self.transforms = transforms

    @property
    def _makes_tensor(self) -> bool:  # type: ignore[override]
        return any(t._makes_tensor for t in flat(self.transforms))

    def _spec(self) -> str:
        return "; ".join(self._parts(grey=False))

    def _spec_of_grey(self) -> str:
        return "; ".join(self._parts(grey=True))

    def _parts(self, grey: bool) -> list[str]:
        parts: list[str] = []
        deferred = is_tensor = is_array = False
        _refuse_other_arithmetic(self.transforms)
        refuse_late_crops(self.transforms)
        steps = list(flat(self.transforms))
        if len(steps) > 1 and any(step._makes_views for step in steps):
            raise Blocked([Blocker(TRANSFORM, "a step that makes several views has others beside it", "let it call them")])
        for transform in steps:
            if is_array:
                why = "a step comes after a pipeline of Albumentations that gives an array"
                raise Blocked([Blocker(TRANSFORM, why, "end the pipeline with ToTensorV2()")])
            is_array = transform._makes_array
            if transform._wants_image and is_tensor:
                why = "a function that takes images comes after the image has become a tensor"
                raise Blocked([Blocker(TRANSFORM, why, "move it before that")])
            is_tensor = is_tensor or transform._makes_tensor
            if transform._wants_tensor and deferred:
                parts.append("pil_to_tensor")
                deferred = False
            deferred = deferred or transform._deferred
            parts.append(transform._spec_of_grey() if grey else transform._spec())
            if transform._triples:
                parts.insert(_place_of_tensor(parts), op("grayscale", num_output_channels=3))
                grey = False
            if parts[-1].startswith("grayscale"):
                grey = "num_output_channels=3" not in parts[-1]
        return list(filter(None, parts))

    def __repr__(self) -> str:
        return "\n    ".join([f"{type(self).__name__}(", *(str(t) for t in self.transforms)]) + "\n)"


_ON_VALUES = ("normalize", "arithmetic", "convert_image_dtype")


def _place_of_tensor(parts: list[str]) -> int:
    """Return where the image becomes a tensor, if what follows treats all channels alike."""
    for at in range(len(parts) - 1, -1, -1):
        if parts[at] in ("to_tensor", "pil_to_tensor"):
            return at
        if parts[at] and not parts[at].startswith(_ON_VALUES):
            break
    why = "repeat(3, 1, 1) comes after other steps than ToTensor, ConvertImageDtype, Normalize and calculations"
    raise Blocked([Blocker(TRANSFORM, why, "use Grayscale(3) before ToTensor")])


# ---- transforms of torchvision, timm and Albumentations ----

# And where their transforms are.
_LIBRARIES = {"torchvision": "torchvision.transforms", "timm": "timm.data", "albumentations": "albumentations"}
# How to make one of our transforms from one of a library's, by the name of its class. _plan/from_*.py fill it: the tables
# need the classes of transforms.py, which are built on those here. For a user's function it may be None.
converters: dict[str, dict[str, Callable[[Any], Any]]] = {}


def library_of(transform: Any) -> str:
    """Return the library that a transform's class is from, or "functions"; "" if it is none of those known here."""
    if type(transform) is FunctionType:
        return "functions"
    module = type(transform).__module__ + "."
    return next((library for library, where in _LIBRARIES.items() if module.startswith(where + ".")), "")


def changes_of(transform: Any) -> list[str]:
    """Return what was changed in a transform of one of the libraries, whose classes inherit from one another's."""
    return list(dict.fromkeys(why for library in _LIBRARIES for why in changes_of_step(transform, library)))


# What returns the steps that a user's function or object is; None if that is not known. _plan/from_own_code.py fills it.
provers: list[Callable[[Any], Any]] = []
in_python: list[Callable[[Transform, Any], Any]] = []  # what calls a transform with steps that only Python has

PRESETS = {"ImageClassification", "ObjectDetection", "SemanticSegmentation"}  # what weights.transforms() returns
# Steps that torchvision computes with other arithmetic once the image is a tensor: not with Pillow's integers.
_DIFFERS_ON_TENSORS = {
    "Resize",
    "RandomResizedCrop",
    "RandomResize",
    "RandomShortestSize",
    "ScaleJitter",
    "RandomRotation",
    "RandomAffine",
    "RandomPerspective",
    "ElasticTransform",
    "ColorJitter",
    "GaussianBlur",
    "Grayscale",
    "AutoAugment",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAutocontrast",
    "RandomEqualize",
    "TrivialAugmentWide",
    "RandomGrayscale",
    "RandomPhotometricDistort",
    "PILToTensor",
    "ToTensor",
    *PRESETS,
}
MAKES_TENSORS = {"ToImage", "PILToTensor", "ToTensor", "ToTensorV2", "MaybeToTensor", "MaybePILToTensor", "ToNumpy", *PRESETS}
_MAKES_FLOATS = {"ToTensor", "ConvertImageDtype", "ToDtype", "ToFloat", "Normalize", "MaybeToTensor", *PRESETS}


@remembered
def compile_transform(transform: Any) -> Transform:
    """Return one of our transforms for `transform`, which is ours, torchvision's (v1 or v2), timm's or
    Albumentations'.

    Raises:
        Blocked: The engine has no such transform, or somebody has changed what it does.
        TypeError: It works on whole batches, or is a subclass of Transform that the engine does not know.
    """
    plain = as_of_library(transform, "torchvision.transforms")
    if plain is not transform:
        try:
            return compile_transform(plain)
        except Blocked as reasons:
            raise Blocked(Blocker(b.stage, b.why, b.remedy, transform) for b in reasons.blockers) from None
    kind = type(transform)
    if is_of_batches(transform):
        raise TypeError(f"{transform!r} works on whole batches: pass it as DataLoader(batch_transforms=...)")
    if isinstance(transform, Transform):
        if kind._spec is Transform._spec:
            raise TypeError(f"{transform!r} is a custom subclass of Transform, which the engine cannot run")
        return transform
    convert = converters.get(library_of(transform), {}).get(kind.__name__)
    if convert is not None:
        changes = changes_of(transform)
        if changes:
            raise Blocked([Blocker(TRANSFORM, why, "", transform) for why in changes])
        step = _converted(convert, transform)
        if step is not None:
            return step
    own = proved(transform)
    if own is not None:
        return own
    raise unknown(transform)


def _converted(convert: Callable[[Any], Any], transform: Any) -> Any:
    """Return one of our transforms for a library's, which accepts more values than ours: those stay in Python."""
    try:
        step = convert(transform)
        if isinstance(step, Transform) and not hasattr(step, "transforms"):
            step._spec()
    except (TypeError, ValueError) as reason:
        raise Blocked([Blocker(TRANSFORM, str(reason), "", transform)]) from reason
    return step


@remembered
def proved(transform: Any) -> Any:
    """Return the steps that a user's function or object has been proved to be; None if it has not."""
    return next(filter(None, (prove(transform) for prove in provers)), None)


def unknown(transform: Any) -> Blocked:
    """Return what to raise for a transform that the engine does not have."""
    why = f"only Python knows the transform {_shown(transform)}"
    return Blocked([Blocker(TRANSFORM, why, "use one of stoker.transforms in its place", transform)])


def _shown(transform: Any) -> str:
    """Return how a message names a transform."""
    kind = type(transform)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if hasattr(transform, "__qualname__"):  # a function
        return f"{transform.__module__}.{transform.__qualname__}"
    return name if kind.__repr__ is object.__repr__ else f"{transform!r} ({name})"


def _refuse_other_arithmetic(transforms: Any) -> None:
    """Raise Blocked if a library would work on a tensor where the engine works on the image, with another result."""
    maker, is_float = "", False
    blockers = []
    for step in steps_of_libraries(transforms):
        name = type(step).__name__
        if maker and (maker == "ToNumpy" or _differs_on_tensors(step, name, is_float)):
            why = f"{name} comes after {maker}: {library_of(step)} treats tensors there differently from images"
            blockers.append(Blocker(TRANSFORM, why, f"move {name} before {maker}", step))
        maker = maker or (name if name in MAKES_TENSORS else "")
        is_float = is_float or name in _MAKES_FLOATS
    if blockers:
        raise Blocked(blockers)


def _differs_on_tensors(step: Any, name: str, is_float: bool) -> bool:
    if library_of(step) == "albumentations":  # it takes arrays
        return True
    if library_of(step) == "timm":
        return name != "RandomErasing" or not (is_float or step.mode == "const")
    if name in ("Pad", "RandomCrop") and ".v2" not in type(step).__module__ and not isinstance(step.fill, (int, float)):
        return True  # v1 accepts one value only for tensors
    if name in ("GaussianNoise", "AugMix"):
        return is_float
    if name in ("RandomInvert", "RandomPosterize", "RandomSolarize", "RandomChannelPermutation", "JPEG"):
        return is_float or getattr(step, "threshold", 0) > 255
    if name == "RandomCrop":
        return is_float and (step.padding is not None or step.pad_if_needed)
    return name in _DIFFERS_ON_TENSORS


def steps_of_libraries(transforms: Any) -> Iterator[Any]:
    """Yield those of the steps that are a library's, including those inside others."""
    for given in transforms:
        transform = as_of_library(given, "torchvision.transforms")
        own = None if isinstance(transform, Transform) else proved(getattr(transform, "lambd", transform))
        if own is not None:
            yield from steps_of_libraries(own.transforms)
        elif hasattr(transform, "transforms"):
            yield from steps_of_libraries(transform.transforms)
        elif library_of(transform):
            yield transform


def flat(transforms: Any) -> Iterator[Transform]:
    """Yield the transforms one by one, including those of nested Composes."""
    for transform in map(compile_transform, transforms):
        if isinstance(transform, Compose):
            yield from flat(transform.transforms)
        else:
            yield transform


# ---- from transforms to the engine ----


def gives_array(text: str) -> bool:
    """Return whether images are height x width x channels behind the pipeline `text`.

    >>> gives_array("pil_to_tensor"), gives_array("resize(size=9); to_array")
    (False, True)
    """
    return text.endswith("to_array")


def pipeline_text(transform: Any, *, grey: bool = False) -> str:
    """Return the text of the pipeline that the engine runs for a transform.

    Args:
        transform: A transform of this module, of torchvision, timm or Albumentations; None does nothing.
        grey: Whether the images have one channel, like Pillow's mode "L".

    Returns:
        The ops, separated by "; ", as `stoker_pipeline_open` and `stoker bench --pipeline` accept them.

    Raises:
        NotImplementedError: The engine cannot run the transform; the message lists every reason.
        TypeError: A transform works on whole batches, or an argument has the wrong type.

    >>> T.pipeline_text(T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor()]))
    'resize(size=256, interpolation=bilinear); center_crop(size=[224,224]); to_tensor'
    """
    steps = Compose([] if transform is None else [transform])
    if not grey:
        return steps._spec()
    return "; ".join(filter(None, [op("grayscale", num_output_channels=1), steps._spec_of_grey()]))


def functional_apply(
    transform: Any,
    image: Any,
    seed: int = 0,
    dtype: Any = None,
    memory_format: Any = None,
    pillow: int = 13,
) -> np.ndarray:
    """Run a transform on one image, with the result that a DataLoader would give.

    Args:
        transform: A transform of this module, of torchvision, timm or Albumentations; None only decodes.
        image: A PIL image, or a uint8 array of shape height x width x 3 or height x width.
        seed: Determines every random draw.
        dtype: The type of the result: "uint8", "float32", "float16" or "bfloat16"; by default the transform's.
        memory_format: "channels_last" changes the strides, not the shape.
        pillow: 12 or 13, the version of Pillow whose resizing to match.

    Returns:
        A NumPy array of shape channels x height x width; of pipelines of Albumentations without ToTensorV2 height x
        width x channels.

    Raises:
        TypeError: `image` is not an image.
        ValueError: An argument has a value that is not allowed, or the image is too small for the transform.

    >>> import numpy as np
    >>> image = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    >>> once, again = (T.functional_apply(T.RandomCrop(4), image, seed=7) for _ in range(2))
    >>> once.shape, bool((once == again).all())
    ((3, 4, 4), True)
    """
    return single.run(
        pipeline_text(transform),
        image,
        0,
        seed=seed,
        dtype=dtype,
        memory_format=memory_format,
        pillow=pillow,
    )
