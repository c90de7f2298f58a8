# SPDX-License-Identifier: Apache-2.0
"""Transforms of boxes, and RandomIoUCrop, which depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arguments import op
from .base import Transform

FORMATS = ("xyxy", "xywh", "cxcywh")


def format_word(given: Any) -> str:
    """Return the engine's word for a format: one of torchvision's, or its name.

    >>> format_word("CXCYWH")
    'cxcywh'
    """
    word = str(getattr(given, "value", given)).lower()
    if word not in FORMATS:
        raise ValueError(f"format={given!r} is none of XYXY, XYWH and CXCYWH")
    return word


class ClampBoundingBoxes(Transform):
    """Cut off what boxes have outside of their image, as all steps do but resizes and flips. It leaves images and masks as
    they are.

    >>> print(T.ClampBoundingBoxes())
    ClampBoundingBoxes()
    """

    def _spec(self) -> str:
        return op("clamp_bounding_boxes")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ConvertBoundingBoxFormat(Transform):
    """Deliver boxes in another format. They get it at the end, so that steps may follow.

    Args:
        format: "XYXY" (left, top, right, bottom), "XYWH" (left, top, width, height) or "CXCYWH" (centre, width, height), or
            torchvision's BoundingBoxFormat.

    Raises:
        ValueError: There is no such format, or torchvision has it for boxes that are turned.

    >>> print(T.ConvertBoundingBoxFormat("CXCYWH"))
    ConvertBoundingBoxFormat(format='CXCYWH')
    """

    def __init__(self, format: Any) -> None:
        self.format = format_word(format).upper()

    def _spec(self) -> str:
        return op("convert_bounding_box_format", format=self.format.lower())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(format={self.format!r})"


class RandomIoUCrop(Transform):
    """Crop a part of the image in which some box has at least a random part of what both cover, as for SSD. Boxes whose centres
    are outside of it get no area: SanitizeBoundingBoxes removes them. It needs boxes (`boxes=` of the dataset).

    Args:
        min_scale: The least width and height, as fractions of the image's.
        max_scale: The largest ones.
        min_aspect_ratio: The least width, divided by the height.
        max_aspect_ratio: The largest one.
        sampler_options: Up to 16 numbers of which one is drawn, the least intersection over union of some box and the crop. With
            one that is 1 or larger the image is left as it is. None is [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0].
        trials: How many crops are tried until another number is drawn.

    >>> print(T.RandomIoUCrop(trials=20))
    RandomIoUCrop(min_scale=0.3, max_scale=1.0, min_aspect_ratio=0.5, max_aspect_ratio=2.0, sampler_options=None, trials=20)
    """

    def __init__(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: Sequence[float] | None = None,
        trials: int = 40,
    ) -> None:
        self.min_scale = min_scale
        self.max_scale = max_scale
        self.min_aspect_ratio = min_aspect_ratio
        self.max_aspect_ratio = max_aspect_ratio
        self.sampler_options = sampler_options
        self.trials = trials

    def _spec(self) -> str:
        return op(
            "random_iou_crop",
            min_scale=self.min_scale,
            max_scale=self.max_scale,
            min_aspect_ratio=self.min_aspect_ratio,
            max_aspect_ratio=self.max_aspect_ratio,
            overlaps=self.sampler_options,
            trials=self.trials,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(min_scale={self.min_scale}, max_scale={self.max_scale}, "
            f"min_aspect_ratio={self.min_aspect_ratio}, max_aspect_ratio={self.max_aspect_ratio}, "
            f"sampler_options={self.sampler_options}, trials={self.trials})"
        )


class SanitizeBoundingBoxes(Transform):
    """Remove boxes that are too small or reach out of the image, and the values that belong to them. It leaves images and
    masks as they are.

    Args:
        min_size: The least width and height.
        min_area: The least area.

    Raises:
        ValueError: As torchvision's SanitizeBoundingBoxes.

    >>> print(T.SanitizeBoundingBoxes(2))
    SanitizeBoundingBoxes(min_size=2, min_area=1.0)
    """

    def __init__(self, min_size: float = 1.0, min_area: float = 1.0) -> None:
        if min_size < 1:
            raise ValueError(f"min_size must be >= 1, got {min_size}.")
        if min_area < 1:
            raise ValueError(f"min_area must be >= 1, got {min_area}.")
        self.min_size = min_size
        self.min_area = min_area

    def _spec(self) -> str:
        return op("sanitize_bounding_boxes", min_size=self.min_size, min_area=self.min_area)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(min_size={self.min_size}, min_area={self.min_area})"
