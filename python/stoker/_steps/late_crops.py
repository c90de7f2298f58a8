# SPDX-License-Identifier: Apache-2.0
"""Crops of tensors that may be too small for them: what comes from outside is 0, which is no byte's value behind Normalize."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .blockers import TRANSFORM, Blocked, Blocker, held_by

_SIZES = ("CenterCrop", "RandomCrop", "RandomResizedCrop", "Resize")
_KEEP = {
    "ColorJitter", "ConvertImageDtype", "GaussianBlur", "GaussianNoise", "Grayscale", "Identity", "JPEG", "Lambda", "Normalize",
    "PILToTensor", "RGB", "RandomAdjustSharpness", "RandomAutocontrast", "RandomChannelPermutation", "RandomEqualize",
    "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip", "RandomInvert", "RandomPhotometricDistort", "RandomPosterize",
    "RandomSolarize", "RandomVerticalFlip", "ToDtype", "ToImage", "ToPureTensor", "ToTensor",
}  # fmt: skip
_KNOWN = ("stoker", "torch", "torchvision")  # whose classes of these names do what is expected
_MAKE_FLOATS = ("ConvertImageDtype", "ToDtype", "ToTensor")


def _flat(steps: Iterable[Any], sure: bool = True) -> Iterator[tuple[Any, bool]]:
    """Yield the steps, and whether each is run in any case."""
    for step in steps:
        held = held_by(step)
        if held:
            yield from _flat(held, sure and type(step).__name__ == "Compose")
        else:
            yield step, sure


def _sides(size: Any) -> tuple[int, int]:
    """Return height and width, or the number that stands for both; 0 if they are not known."""
    if isinstance(size, (list, tuple)):
        return int(size[0]), int(size[-1])
    return (int(size), int(size)) if isinstance(size, int) else (0, 0)


def refuse_late_crops(transforms: Any) -> None:
    """Raise Blocked if a step of torchvision's behind Normalize, or behind a function, may have to add borders.

    >>> from stoker._steps.late_crops import refuse_late_crops
    >>> refuse_late_crops([T.Resize(256), T.ToTensor(), T.Normalize([0.5], [0.5]), T.CenterCrop(224)])
    """
    least, is_float, moved = (0, 0), False, False
    for step, sure in _flat(transforms):
        name, library = type(step).__name__, type(step).__module__.partition(".")[0]
        theirs = library == "torchvision"
        sides = _sides(getattr(step, "size", None)) if library in _KNOWN and name in _SIZES else (0, 0)
        if not sure:
            least = (0, 0)
        fits = all(side >= wanted for side, wanted in zip(least, sides, strict=True))
        if moved and theirs and (name == "RandomZoomOut" or name == "CenterCrop" and not fits):
            why = f"{name} comes after what changes 0, and fills borders with values that bytes do not become"
            raise Blocked([Blocker(TRANSFORM, why, f"move {name} before ToTensor", step)])
        if any(sides):
            least = sides if sure and getattr(step, "max_size", None) is None else (0, 0)
        elif library not in _KNOWN or name not in _KEEP:
            least = (0, 0)
        moved = moved or name == "Normalize" or is_float and (name == "Lambda" or not theirs)
        is_float = is_float or name in _MAKE_FLOATS
