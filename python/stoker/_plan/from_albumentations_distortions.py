# SPDX-License-Identifier: Apache-2.0
"""Albumentations' distortions, whose pixels come from points that no straight map gives, with OpenCV's arithmetic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._steps.base import Transform
from .._steps.engine_op import EngineOp
from .from_albumentations import cannot, is_on, number, register, several, whole
from .from_albumentations_compared import Pair, compare
from .from_albumentations_warps import warp_options

_STEPS = 100  # of a grid
_SIGMA = 1000


def _options(t: Any) -> dict[str, Any]:
    """Return the parameters for the attributes that all distortions have. A single number is the border's first channel."""
    options = warp_options(t, "remap")
    if isinstance(options.get("fill"), int):
        options["fill"] = [options["fill"], 0, 0]
    return options | {"points": t.keypoint_remapping_method == "direct" or None}


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


def _optical(t: Any) -> Transform:
    if t.mode != "camera":
        raise cannot(t, f"mode={t.mode!r} depends on the last digits of sines")

    def pairs() -> Iterable[Pair]:
        for by in (0.05, -0.043, 0.31, -1.7):
            yield {"distort_limit": (by, by)}, EngineOp("cv_optical_distortion", limit=(by, by))

    compare(t, "", pairs)
    limit = several(t, "distort_limit", 2, -1e3, 1e3)
    return EngineOp("cv_optical_distortion", limit=limit, **_options(t))


def _elastic(t: Any) -> Transform:
    """Distances are drawn, so that nothing can be compared but how OpenCV looks up pixels."""
    if t.noise_distribution not in ("gaussian", "uniform"):
        raise cannot(t, f"noise_distribution={t.noise_distribution!r}")
    return EngineOp(
        "cv_elastic",
        alpha=number(t, "alpha", 0, 1e6),
        sigma=number(t, "sigma", 1, _SIGMA),
        approximate=is_on(t, "approximate") or None,
        same=is_on(t, "same_dxdy") or None,
        noise=t.noise_distribution,
        **_options(t),
    )


register("ElasticTransform", _elastic)
register("GridDistortion", _grid)
register("OpticalDistortion", _optical)
