# SPDX-License-Identifier: Apache-2.0
"""Transforms of boxes alone."""

from __future__ import annotations

from .arguments import op
from .base import Transform


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
