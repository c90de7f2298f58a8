# SPDX-License-Identifier: Apache-2.0
"""Albumentations' resizes, with OpenCV's arithmetic: only where the engine gives the bytes of the installed OpenCV."""

from __future__ import annotations

from typing import Any

from .. import transforms as T
from .._steps import cv
from .._steps.base import Transform
from .._steps.engine_op import EngineOp
from .from_albumentations import cannot, integer, number, register, several, whole
from .from_albumentations_geometry import crop_around_boxes

_SIDE = 1 << 20  # pixels at most
_FILTERS = {0: "nearest", 1: "linear", 3: "area"}  # by OpenCV's numbers


def _needs(t: Any, *filters: str) -> None:
    for name in filters:
        if not cv.agrees(f"resize_{name}"):
            raise cannot(t, f"the installed OpenCV gives other bytes than the engine where it resizes ({name})")


def filter_word(t: Any) -> str:
    """Return the engine's filter for the attributes interpolation, mask_interpolation and area_for_downscale."""
    name = _FILTERS.get(whole(t, "interpolation", 0, 16))
    if name is None:
        raise cannot(t, f"interpolation={t.interpolation} is none of cv2.INTER_NEAREST, INTER_LINEAR and INTER_AREA")
    if whole(t, "mask_interpolation", 0, 16) != 0:
        raise cannot(t, f"mask_interpolation={t.mask_interpolation} is not cv2.INTER_NEAREST")
    _needs(t, name, "nearest")
    by_area = getattr(t, "area_for_downscale", None)
    if by_area is None:
        return f"cv_{name}"
    if by_area != "image" or name == "nearest":
        raise cannot(t, f"area_for_downscale={by_area!r} with interpolation={t.interpolation}")
    _needs(t, "area")
    return "cv_area" if name == "area" else "cv_linear_area"


def _size(t: Any) -> tuple[int, ...]:
    several(t, "size", 2, 1, _SIDE)
    return tuple(int(side) for side in t.size)


def _resize(t: Any) -> Transform:
    return EngineOp("resize", size=(whole(t, "height", 1, _SIDE), whole(t, "width", 1, _SIDE)), interpolation=filter_word(t))


def _fit(t: Any, by: str) -> Transform:
    """A length for one side, of which there may be several, or a height, a width or both."""
    given: dict[str, Any] = {}
    if t.max_size is not None:
        sizes = t.max_size if isinstance(t.max_size, (list, tuple)) else [t.max_size]
        given["sizes"] = [integer(t, "max_size", size, 1, _SIDE) for size in sizes]
    else:
        height, width = t.max_size_hw
        given["height"] = None if height is None else integer(t, "max_size_hw", height, 1, _SIDE)
        given["width"] = None if width is None else integer(t, "max_size_hw", width, 1, _SIDE)
    return EngineOp("resize_to_fit", by=by, **given, interpolation=filter_word(t))


def _random_scale(t: Any) -> Transform:
    low, high = several(t, "scale_limit", 2, -1, 1e5)
    return EngineOp("random_scale", factor=(1 + low, 1 + high), interpolation=filter_word(t))


def _random_sized_crop(t: Any) -> Transform:
    heights = [int(height) for height in several(t, "min_max_height", 2, 1, _SIDE)]
    ratio = number(t, "w2h_ratio", 0, 1e6)
    return EngineOp("random_sized_crop", size=_size(t), heights=heights, ratio=ratio, interpolation=filter_word(t))


def _crop_around_boxes(t: Any) -> Transform:
    size = (whole(t, "height", 1, _SIDE), whole(t, "width", 1, _SIDE))
    return T.Compose([crop_around_boxes(t), EngineOp("resize", size=size, interpolation=filter_word(t))])


def _random_resized_crop(t: Any) -> Transform:
    scale, ratio = several(t, "scale", 2, 0, 1e6), several(t, "ratio", 2, 1e-6, 1e6)
    return EngineOp("random_resized_crop", size=_size(t), scale=scale, ratio=ratio, interpolation=filter_word(t))


register("LongestMaxSize", lambda t: _fit(t, "longest"))
register("RandomResizedCrop", _random_resized_crop)
register("RandomSizedBBoxSafeCrop", _crop_around_boxes)
register("RandomScale", _random_scale)
register("RandomSizedCrop", _random_sized_crop)
register("Resize", _resize)
register("SmallestMaxSize", lambda t: _fit(t, "shortest"))
