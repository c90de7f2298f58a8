# SPDX-License-Identifier: Apache-2.0
"""timm's transforms on lazy images: which of torchvision's each of them is like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base.unmodified import in_place_of, is_from
from .images import Lazy

# By module and class: the class of torchvision that does the same to a lazy image, once its numbers are drawn.
TIMM = {
    "timm.data.transforms": {
        "CenterCropOrPad": "CenterCrop",
        "MaybePILToTensor": "PILToTensor",
        "MaybeToTensor": "ToTensor",
        "RandomCropOrPad": "RandomCrop",
        "RandomResizedCropAndInterpolation": "RandomResizedCrop",
        "ResizeKeepRatio": "Resize",
        "TrimBorder": "CenterCrop",
    },
    "timm.data.auto_augment": {"AutoAugment": "AutoAugment", "RandAugment": "RandAugment"},
}


def has_own_functions(step: Any) -> bool:
    """Return whether a RandAugment or AutoAugment of timm contains code that is not timm's."""
    rows = getattr(step, "policy", None) or [getattr(step, "ops", ())]
    return not all(
        type(one).__module__ == "timm.data.auto_augment" and is_from("timm", one.aug_fn) for row in rows for one in row
    )


def with_pixels(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that looks at an image several times: its pixels are made once, before that."""

    def __call__(self: Any, img: Any, *args: Any, **named: Any) -> Any:
        if isinstance(img, Lazy):
            img.load()
        return original(self, img, *args, **named)

    return in_place_of(original, __call__)
