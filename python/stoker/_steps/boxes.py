# SPDX-License-Identifier: Apache-2.0
"""Transforms of boxes alone."""

from __future__ import annotations

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
