# SPDX-License-Identifier: Apache-2.0
"""Albumentations' distortions, whose pixels come from points that no straight map gives, with OpenCV's arithmetic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._steps.base import Transform
from .._steps.engine_op import EngineOp
from .from_albumentations import is_on, register, several, whole
from .from_albumentations_compared import Pair, compare
from .from_albumentations_warps import warp_options

_STEPS = 100  # of a grid


def _options(t: Any) -> dict[str, Any]:
    """Return the parameters for the attributes that all distortions have. A single number is the border's first channel."""
    options = warp_options(t, "remap")
    if isinstance(options.get("fill"), int):
        options["fill"] = [options["fill"], 0, 0]
    return options


def _grid(t: Any) -> Transform:
    steps, normalized = whole(t, "num_steps", 1, _STEPS), is_on(t, "normalized")

    def pairs() -> Iterable[Pair]:
        for by in (0.31, -0.27, 0.9):
            options = {"num_steps": steps, "normalized": normalized, "distort_limit": (by, by)}
            yield options, EngineOp("cv_grid_distortion", steps=steps, normalized=normalized, limit=(by, by))

    def images() -> list[Any]:
        rng = np.random.default_rng(7)
        return [rng.integers(0, 256, (steps + height, steps + width, 3), np.uint8) for height, width in ((0, 60), (57, 31))]

    compare(t, (steps, normalized), pairs, images)
    limit = several(t, "distort_limit", 2, -1, 1)
    return EngineOp("cv_grid_distortion", steps=steps, normalized=normalized, limit=limit, **_options(t))


register("GridDistortion", _grid)
