# SPDX-License-Identifier: Apache-2.0
"""Albumentations' steps that overwrite parts of the image."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._steps.base import Transform
from .._steps.engine_op import EngineOp
from .from_albumentations import cannot, integer, is_on, number, register, several

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


def _targets(t: Any) -> dict[str, Any]:
    """Return the parameters about masks and boxes: dropouts themselves look at bbox_params."""
    mask = None if t.fill_mask is None else integer(t, "fill_mask", t.fill_mask, 0, 255)
    boxes = (getattr(t, "processors", None) or {}).get("bboxes")
    limits = {} if boxes is None else {name: number(boxes.params, name, 0, 1e9) for name in ("min_area", "min_visibility")}
    return {"mask_fill": mask, **{name: limit or None for name, limit in limits.items()}}


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
    return EngineOp("drop_holes", count=count, **sides, relative=relative or None, fill=_fill(t), **_targets(t))


def _grid_dropout(t: Any) -> Transform:
    """The number of cells decides, then their sizes, which are squares; without both there are ten in each direction."""
    options: dict[str, Any] = {"ratio": number(t, "ratio", 1e-9, 1)}
    for ours, theirs, least in (("cells", "holes_number_xy", 1), ("unit", "unit_size_range", 2)):
        if getattr(t, theirs) is not None:
            options[ours] = [integer(t, theirs, value, least, _SIDE) for value in several(t, theirs, 2)]
            break
    if not is_on(t, "random_offset"):
        options["shift"] = [integer(t, "shift_xy", value, 0, _SIDE) for value in several(t, "shift_xy", 2)]
    return EngineOp("drop_grid", **options, fill=_fill(t), **_targets(t))


def _stripes(t: Any) -> Transform:
    ranges = {"columns": "num_masks_x", "rows": "num_masks_y", "width": "mask_x_length", "height": "mask_y_length"}
    options = {ours: [integer(t, name, value, 0, _HOLES) for value in several(t, name, 2)] for ours, name in ranges.items()}
    return EngineOp("drop_stripes", **options, fill=_fill(t), **_targets(t))


register("CoarseDropout", _coarse_dropout)
register("GridDropout", _grid_dropout)
register("XYMasking", _stripes)
