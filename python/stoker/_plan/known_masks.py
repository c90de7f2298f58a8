# SPDX-License-Identifier: Apache-2.0
"""torchvision's datasets of images with masks, in wrap_dataset_for_transforms_v2 and with transforms= of v2, which moves both.

Their masks are tensors when they are moved. So the engine takes torch's nearest pixel for them instead of Pillow's, and
what moves masks with still other arithmetic (rotations and other maps) is left to torchvision.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from typing import Any

from .._base.unmodified import is_from
from .._data.joint import OF_VALUES
from .._steps.base import Compose, Transform, compile_transform
from .._steps.blockers import READ, TRANSFORM, Blocked, Blocker

_WRAPPER = "VisionDatasetTVTensorWrapper"
# Those of torchvision that stoker.datasets has, too.
OURS = ("CocoDetection", "VOCDetection", "VOCSegmentation", "OxfordIIITPet", "Cityscapes")
MOVES = {
    "CenterCrop", "Pad", "RandomCrop", "RandomHorizontalFlip", "RandomResize", "RandomResizedCrop", "RandomShortestSize",
    "RandomVerticalFlip", "RandomZoomOut", "Resize", "ScaleJitter",
}  # fmt: skip
_VALUES = OF_VALUES - {"ConvertImageDtype"}  # which converts masks, too
_REMEDY = "use stoker.datasets, whose masks follow all steps"


def kinds() -> Any:
    """torchvision's module of tensors that say what they are."""
    return sys.modules["torchvision.tv_tensors"]


def blocked(why: str, step: Any = None, remedy: str = _REMEDY) -> Blocked:
    """Return what to raise for a step that the engine does not have."""
    return Blocked([Blocker(TRANSFORM, why, remedy, step)])


def is_v2(step: Any) -> bool:
    """Return whether it is a transform of torchvision's v2."""
    return type(step).__module__.startswith("torchvision.transforms.v2.")


def flat_v2(transform: Any) -> Iterator[Any]:
    """Yield the steps of v2's Composes, or what else the transform is."""
    if type(transform).__name__ == "Compose" and is_v2(transform):
        for step in transform.transforms:
            yield from flat_v2(step)
    else:
        yield transform


class MaskLeaf:
    """A wrapped dataset whose transforms move its masks, too."""

    grey = False
    target_transform = None
    targets = ("mask=floored", None)  # as the engine takes them

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    @property
    def transform(self) -> Any:
        return self.dataset.transforms

    def for_engine(self) -> Transform:
        """Return what the engine does to an image and its mask. Raises Blocked."""
        if not is_v2(self.transform):
            raise blocked("the dataset's transforms are not torchvision's v2, which move image and mask together",
                           remedy="pass transforms= with those of torchvision.transforms.v2")  # fmt: skip
        found: list[Blocker] = []
        steps = []
        is_plain = False
        for step in flat_v2(self.transform):
            name = type(step).__name__
            try:
                if is_plain and name in MOVES:
                    raise blocked(f"after ToPureTensor {name} moves the image alone", step, "move it before that")
                steps.append(_for_both(step))
            except Blocked as reasons:
                found += reasons.blockers
            is_plain = is_plain or name == "ToPureTensor"
        if found:
            raise Blocked(found)
        made = Compose(steps)
        if not made._makes_tensor:
            raise blocked("samples are images of Pillow", remedy="add ToImage and ToDtype(torch.float32, scale=True)")
        return made

    def shaped(self, fields: list[Any]) -> list[Any]:
        """Return a batch with masks as torchvision's: with a channel, and of the type that a ToDtype gives them."""
        images, masks = fields
        dtypes = [_dtype_of(step.dtype, "Mask") for step in flat_v2(self.transform) if type(step).__name__ == "ToDtype"]
        dtype = next((each for each in reversed(dtypes) if each is not None), None)
        shaped = [_shaped(mask, dtype, 0) for mask in masks] if isinstance(masks, list) else _shaped(masks, dtype, 1)
        return [images, shaped]


def _shaped(mask: Any, dtype: Any, axis: int) -> Any:
    mask = mask.unsqueeze(axis)
    return mask if dtype is None else mask.to(dtype)


def _for_both(step: Any) -> Any:
    """Return a step of v2 as one that the engine has, for the image and its mask."""
    name = type(step).__name__
    if not is_v2(step):
        raise blocked(f"{step!r} is not a transform of torchvision's v2", step)
    if name == "ToDtype" and isinstance(step.dtype, dict):
        return _without_dict(step)
    if name in _VALUES or name == "RandomApply" and all(type(inner).__name__ in _VALUES for inner in step.transforms):
        return step
    if name not in MOVES:
        raise blocked(f"{name} moves masks with an arithmetic that the engine does not have", step)
    if not hasattr(step, "fill"):
        return step
    number = _fill_of(step, "Mask")
    if not isinstance(number, int) or not 0 <= number <= 255:
        raise blocked(f"{name} fills masks with {number!r}", step)
    made = filled(step, "Image")
    made.mask_fill = number  # type: ignore[attr-defined]
    return made


def filled(step: Any, kind: str) -> Transform:
    """Return ours for a step of v2 that fills things of this kind."""
    plain = copy.copy(step)
    plain.fill = _fill_of(step, kind)
    return compile_transform(plain)


def _fill_of(step: Any, kind: str) -> Any:
    """Return what a step fills images or masks with."""
    given = step._fill
    keys = [kinds().Mask] if kind == "Mask" else [sys.modules["PIL.Image"].Image, kinds().Image]
    found = [given.get(key, given.get("others")) for key in keys]
    if found[0] != found[-1]:
        raise blocked(f"{type(step).__name__} fills Pillow's images and tensors with different values", step)
    return 0 if found[0] is None else found[0]


def _dtype_of(given: Any, kind: str) -> Any:
    """Return the type that ToDtype gives masks or images, or None."""
    if not isinstance(given, dict):
        return None if kind == "Mask" else given
    return given.get(getattr(kinds(), kind), given.get("others"))


def _without_dict(step: Any) -> Any:
    for kind in ("Mask", "Image"):
        if getattr(kinds(), kind) not in step.dtype and "others" not in step.dtype:
            raise blocked(f"ToDtype has no type for {kind}", step, "add it, or 'others': None")
    image = _dtype_of(step.dtype, "Image")
    return Compose([]) if image is None else type(step)(image, scale=step.scale)


# ---- datasets ----


def is_wrapped(dataset: Any) -> bool:
    """Return whether it is what torchvision's wrap_dataset_for_transforms_v2 returns."""
    return any(kind.__name__ == _WRAPPER and kind.__module__.startswith("torchvision.") for kind in type(dataset).__mro__)


def wrapper_of(wrapped: Any) -> type:
    """Return torchvision's class of a wrapped dataset."""
    return next(each for each in type(wrapped).__mro__ if each.__name__ == _WRAPPER)


def _files_of(dataset: Any, watch: Any) -> tuple[list[Any], list[Any]] | None:
    """Return the files of images and masks of a dataset that torchvision has; None for any other, or other targets."""
    name = type(dataset).__name__
    if name == "VOCSegmentation":
        return watch.take(dataset, "images"), watch.take(dataset, "targets")
    if name == "OxfordIIITPet" and watch.take(dataset, "_target_types") == ["segmentation"]:
        return watch.take(dataset, "_images"), watch.take(dataset, "_segs")
    if name == "Cityscapes" and watch.take(dataset, "target_type") == ["semantic"]:
        return watch.take(dataset, "images"), [files[0] for files in watch.take(dataset, "targets")]
    return None


def wrapped_files(wrapped: Any, watch: Any, blockers: list[Blocker]) -> tuple[list[str], list[str]] | None:
    """Return the files of images and masks of a wrapped dataset; or None, and add why the engine cannot read it."""
    inner = wrapped._dataset
    kind = type(inner)
    wrapper = wrapper_of(wrapped)
    blockers.extend(Blocker(READ, why) for why in watch.changes(wrapped, wrapper, ("_dataset", "_wrapper", "transforms")))
    watch.take(wrapped, "_dataset")
    files = None
    if kind.__module__.startswith("torchvision.datasets.") and inner.transforms is None and is_from("torchvision", wrapped._wrapper):
        blockers.extend(Blocker(READ, why) for why in watch.changes(inner, kind, ("images", "targets", "_images", "_segs")))
        watch.take(inner, "transforms")
        files = _files_of(inner, watch)
    if files is None:
        why = f"samples of {kind.__qualname__} in wrap_dataset_for_transforms_v2 cannot be compiled"
        blockers.append(Blocker(READ, why, f"use stoker.datasets.{kind.__name__}" if kind.__name__ in OURS else ""))
        return None
    mode = _mode_of(files[1][0]) if files[1] else "L"
    if mode not in ("L", "P"):
        blockers.append(Blocker(READ, f"masks are images of mode {mode}", "store the numbers of classes, as PNGs with a palette"))
        return None
    return list(map(str, files[0])), list(map(str, files[1]))


def _mode_of(path: Any) -> str:
    """Return the mode of Pillow's image, on which the type of torchvision's mask depends."""
    try:
        with sys.modules["PIL.Image"].open(path) as image:
            return str(image.mode)
    except OSError as reason:
        return f"unknown ({reason})"
