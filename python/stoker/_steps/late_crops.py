# SPDX-License-Identifier: Apache-2.0
"""Crops of tensors that may be too small for them: what comes from outside is 0, which is no byte's value behind Normalize."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .blockers import TRANSFORM, Blocked, Blocker

_SIZES = ("CenterCrop", "RandomCrop", "RandomResizedCrop", "Resize")
_KEEP = {
    "ColorJitter", "ConvertImageDtype", "GaussianBlur", "GaussianNoise", "Grayscale", "Identity", "JPEG", "Lambda", "Normalize",
    "PILToTensor", "RGB", "RandomAdjustSharpness", "RandomAutocontrast", "RandomChannelPermutation", "RandomEqualize",
    "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip", "RandomInvert", "RandomPhotometricDistort", "RandomPosterize",
    "RandomSolarize", "RandomVerticalFlip", "ToDtype", "ToImage", "ToPureTensor", "ToTensor",
}  # fmt: skip
_MOVE_ZERO = ("Normalize", "Lambda")


def _flat(transforms: Any) -> Iterator[Any]:
    for step in transforms:
        if type(step).__name__ == "Compose":
            yield from _flat(step.transforms)
        else:
            yield step


def _sides(size: Any) -> tuple[int, int]:
    """Return height and width, or the number that stands for both."""
    if isinstance(size, (list, tuple)):
        return int(size[0]), int(size[-1])
    return (int(size), int(size)) if isinstance(size, int) else (0, 0)


def refuse_late_crops(transforms: Any) -> None:
    """Raise Blocked if one of torchvision's CenterCrops behind Normalize, or behind a function, may have to add borders.

    >>> from stoker._steps.late_crops import refuse_late_crops
    >>> refuse_late_crops([T.Resize(256), T.ToTensor(), T.Normalize([0.5], [0.5]), T.CenterCrop(224)])
    """
    least, moved = (0, 0), False
    for step in _flat(transforms):
        name = type(step).__name__
        if name in _SIZES:
            sides = _sides(step.size)
            too_small = any(side < wanted for side, wanted in zip(least, sides, strict=True))
            if name == "CenterCrop" and moved and too_small and type(step).__module__.startswith("torchvision."):
                why = "CenterCrop comes after what changes 0, and fills the border of small images with 0"
                raise Blocked([Blocker(TRANSFORM, why, "move CenterCrop before ToTensor", step)])
            least = sides if getattr(step, "max_size", None) is None else (0, 0)
        elif name not in _KEEP:
            least = (0, 0)
        moved = moved or name in _MOVE_ZERO
