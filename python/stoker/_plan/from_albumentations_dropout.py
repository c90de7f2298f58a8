# SPDX-License-Identifier: Apache-2.0
"""Albumentations' steps that overwrite parts of the image."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._steps.base import Transform
from .._steps.engine_op import EngineOp
from .from_albumentations import cannot, integer, register, several

_SIDE = 1 << 20  # pixels at most
_HOLES = 1 << 16
_FILLS = {"random": "random", "random_uniform": "random_color"}


def _fill(t: Any) -> Any:
    if isinstance(t.fill, str):
        if t.fill not in _FILLS:
            raise cannot(t, f"fill={t.fill!r}")
        return _FILLS[t.fill]
    if isinstance(t.fill, (tuple, list, np.ndarray)):
        several(t, "fill", 3)
        return [integer(t, "fill", value, 0, 255) for value in t.fill]
    return integer(t, "fill", t.fill, 0, 255)


def _coarse_dropout(t: Any) -> Transform:
    """Sides are fractions of the image's if the most of the height is below 1."""
    count = [integer(t, "num_holes_range", value, 1, _HOLES) for value in several(t, "num_holes_range", 2)]
    relative = several(t, "hole_height_range", 2)[1] < 1
    sides = {
        side: several(t, f"hole_{side}_range", 2, 0, 1)
        if relative
        else [integer(t, f"hole_{side}_range", value, 0, _SIDE) for value in several(t, f"hole_{side}_range", 2)]
        for side in ("height", "width")
    }
    mask = None if t.fill_mask is None else integer(t, "fill_mask", t.fill_mask, 0, 255)
    return EngineOp("drop_holes", count=count, **sides, relative=relative or None, fill=_fill(t), mask_fill=mask)


register("CoarseDropout", _coarse_dropout)
