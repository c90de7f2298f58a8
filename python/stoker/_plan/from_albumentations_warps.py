# SPDX-License-Identifier: Apache-2.0
"""Albumentations' affine and perspective maps, with OpenCV's arithmetic: only where the engine gives the bytes of the installed OpenCV."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._steps import cv
from .._steps.base import Transform
from .._steps.engine_op import EngineOp
from .from_albumentations import cannot, checked, integer, is_on, register, several, whole

_BORDERS = ("constant", "replicate", "reflect", "wrap", "reflect_101")  # by OpenCV's numbers
_MOST = 1e6


def warp_options(t: Any, op: str) -> dict[str, Any]:
    """Return the parameters for the attributes that all warps have, if the engine has OpenCV's bytes for `op`."""
    if whole(t, "interpolation", 0, 16) != 1:
        raise cannot(t, f"interpolation={t.interpolation} is not cv2.INTER_LINEAR")
    if whole(t, "mask_interpolation", 0, 16) != 0:
        raise cannot(t, f"mask_interpolation={t.mask_interpolation} is not cv2.INTER_NEAREST")
    if not (cv.agrees(op) and cv.agrees(f"{op}_nearest")):
        raise cannot(t, "the installed OpenCV gives other bytes than the engine where it warps")
    options: dict[str, Any] = {"border": _BORDERS[whole(t, "border_mode", 0, 4)]}
    if options["border"] == "constant":
        if isinstance(t.fill, (tuple, list, np.ndarray)):
            several(t, "fill", 3)
            options["fill"] = [integer(t, "fill", value, 0, 255) for value in t.fill]
        else:
            options["fill"] = integer(t, "fill", t.fill, 0, 255)
        options["mask_fill"] = integer(t, "fill_mask", t.fill_mask, 0, 255) or None
    return options


def _range(t: Any, name: str, value: Any) -> list[float]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        value = (value, value)
    return [checked(t, name, end, -_MOST, _MOST) for end in value]


def _both(t: Any, name: str) -> list[list[float]]:
    """Return the ranges for both directions."""
    return [_range(t, name, getattr(t, name)[direction]) for direction in ("x", "y")]


def _check_method(t: Any) -> None:
    if t.rotate_method != "largest_box":
        raise cannot(t, f"rotate_method={t.rotate_method!r}")


def _affine(t: Any) -> Transform:
    _check_method(t)
    if is_on(t, "fit_output"):
        raise cannot(t, "fit_output=True")
    relative = t.translate_px is None and t.translate_percent is not None
    across, down = _both(t, "translate_percent" if relative else "translate_px")
    scale, shear = _both(t, "scale"), _both(t, "shear")
    return EngineOp(
        "cv_affine",
        scale_x=scale[0],
        scale_y=scale[1],
        keep_ratio=is_on(t, "keep_ratio") or None,
        balanced=is_on(t, "balanced_scale") or None,
        move_x=across,
        move_y=down,
        relative=relative or None,
        rotate=_range(t, "rotate", t.rotate),
        shear_x=shear[0],
        shear_y=shear[1],
        **warp_options(t, "warp_affine"),
    )


def _rotate(t: Any) -> Transform:
    _check_method(t)
    if is_on(t, "crop_border"):
        raise cannot(t, "crop_border=True")
    return EngineOp("cv_affine", rotate=_range(t, "limit", t.limit), **warp_options(t, "warp_affine"))


def _perspective(t: Any) -> Transform:
    if is_on(t, "fit_output"):
        raise cannot(t, "fit_output=True")
    scale = several(t, "scale", 2, 0, 1e3)
    return EngineOp("cv_perspective", scale=scale, keep_size=is_on(t, "keep_size"), **warp_options(t, "warp_perspective"))


register("Affine", _affine)
register("Perspective", _perspective)
register("Rotate", _rotate)
register("ShiftScaleRotate", _affine)
