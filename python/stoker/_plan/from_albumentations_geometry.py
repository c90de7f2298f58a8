# SPDX-License-Identifier: Apache-2.0
"""Albumentations' turns, crops and borders, and its ends of pipelines: what moves whole pixels, or makes floats of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import transforms as T
from .._steps.base import Transform
from .._steps.engine_op import EngineOp
from .from_albumentations import MakesFloats, ToTensor, cannot, integer, is_on, number, register, several, whole

_SIDE = 1 << 20  # pixels at most
_TILES = 256  # along a side
_IGNORED = 16  # numbers of masks
_BORDERS = {0: "constant", 1: "edge", 2: "symmetric", 4: "reflect"}  # OpenCV's numbers; 3 is "wrap"
_POSITIONS = ("center", "top_left", "top_right", "bottom_left", "bottom_right", "random")


def turn(*orientations: int) -> EngineOp:
    """Return the step that draws one of these: EXIF's numbers for what it makes upright."""
    return EngineOp("random_turn", of=orientations)


def border(t: Any) -> dict[str, Any]:
    """Return the parameters of a border for the attributes border_mode, fill and fill_mask."""
    mode = _BORDERS.get(whole(t, "border_mode", 0, 4))
    if mode is None:
        raise cannot(t, "border_mode=cv2.BORDER_WRAP")
    if mode != "constant":
        return {"padding_mode": mode}
    if isinstance(t.fill, (tuple, list, np.ndarray)):
        several(t, "fill", 3)
        fill: Any = [integer(t, "fill", value, 0, 255) for value in t.fill]
    else:
        fill = integer(t, "fill", t.fill, 0, 255)
    return {"fill": fill, "mask_fill": integer(t, "fill_mask", t.fill_mask, 0, 255) or None}


# ---- crops and borders ----


def _position(t: Any, name: str) -> str:
    position = str(getattr(t, name))
    if position not in _POSITIONS:
        raise cannot(t, f"{name}={position!r}")
    return position


def _padded(t: Any, step: Transform) -> Transform:
    """Return a crop, behind the border that pad_if_needed adds."""
    if not is_on(t, "pad_if_needed"):
        return step
    size = {"min_height": whole(t, "height", 1, _SIDE), "min_width": whole(t, "width", 1, _SIDE)}
    return T.Compose([EngineOp("pad_if_needed", **size, position=_position(t, "pad_position"), **border(t)), step])


def _random_crop(t: Any) -> Transform:
    return _padded(t, T.RandomCrop((whole(t, "height", 1, _SIDE), whole(t, "width", 1, _SIDE))))


def _center_crop(t: Any) -> Transform:
    return _padded(t, EngineOp("crop", width=whole(t, "width", 1, _SIDE), height=whole(t, "height", 1, _SIDE)))


def _crop(t: Any) -> Transform:
    if is_on(t, "pad_if_needed"):
        raise cannot(t, "pad_if_needed=True")
    x, y, right, bottom = (whole(t, name, 0, _SIDE) for name in ("x_min", "y_min", "x_max", "y_max"))
    if right <= x or bottom <= y:
        raise cannot(t, "it leaves no pixels")
    return EngineOp("crop", x=x, y=y, width=right - x, height=bottom - y)


def _crop_to_mask(t: Any) -> Transform:
    """`ignore_channels` is about masks of several channels, which there are not."""
    if t.ignore_channels:
        raise cannot(t, f"ignore_channels={t.ignore_channels!r}")
    ignored = list(t.ignore_values or [])
    if len(ignored) > _IGNORED:
        raise cannot(t, f"ignore_values has more than {_IGNORED} numbers")
    size = [whole(t, name, 1, _SIDE) for name in ("height", "width")]
    ignore = [integer(t, "ignore_values", value, 0, 65535) for value in ignored]
    return EngineOp("crop_to_mask", size=size, ignore=ignore or None)


def crop_around_boxes(t: Any) -> Transform:
    """Return the step for the attribute erosion_rate."""
    return EngineOp("crop_around_boxes", erosion=number(t, "erosion_rate", 0, 1) or None)


def _pad_if_needed(t: Any) -> Transform:
    given = {
        "min_height": t.min_height,
        "min_width": t.min_width,
        "height_divisor": t.pad_height_divisor,
        "width_divisor": t.pad_width_divisor,
    }
    sizes = {name: None if value is None else integer(t, name, value, 1, _SIDE) for name, value in given.items()}
    return EngineOp("pad_if_needed", **sizes, position=_position(t, "position"), **border(t))


def _crop_borders(t: Any) -> Transform:
    return EngineOp("crop_borders", **{side: number(t, f"crop_{side}", 0, 1) for side in ("left", "top", "right", "bottom")})


def _shuffle_tiles(t: Any) -> Transform:
    if "bboxes" in (getattr(t, "processors", None) or {}):
        raise cannot(t, "boxes would be cut apart")
    rows, columns = (integer(t, "grid", value, 1, _TILES) for value in several(t, "grid", 2))
    return EngineOp("shuffle_tiles", rows=rows, columns=columns)


def _pad(t: Any) -> Transform:
    """One number, one for each axis, or left, top, right and bottom."""
    given = t.padding if isinstance(t.padding, (tuple, list)) else [t.padding]
    if len(given) not in (1, 2, 4):
        raise cannot(t, f"padding={t.padding!r} is not 1, 2 or 4 numbers")
    return EngineOp("pad", padding=[integer(t, "padding", value, 0, _SIDE) for value in given], **border(t))


# ---- floats, and the end ----


def _levels() -> Any:
    return np.ascontiguousarray(np.broadcast_to(np.arange(256, dtype=np.uint8)[:, None, None], (256, 1, 3)))


def _is_table(made: Any, wanted: Any) -> bool:
    """Return whether Albumentations' result for all bytes is this, to the bit."""
    same = isinstance(made, np.ndarray) and made.dtype == np.float32 and made.shape == wanted.shape
    return same and made.tobytes() == np.ascontiguousarray(wanted).tobytes()


def _normalize(t: Any) -> Transform:
    """Its arithmetic is not assumed: what it makes of all bytes is compared."""
    if t.normalization != "standard":
        raise cannot(t, f"normalization={t.normalization!r} depends on the image")
    mean, factor = (np.asarray(getattr(t, name), np.float32).reshape(-1) for name in ("mean_np", "denominator"))
    for name, values in (("mean", mean), ("std", factor)):
        if len(values) not in (1, 3) or not np.isfinite(values).all():
            raise cannot(t, f"{name} is not one finite number, or three")
    levels = _levels()
    if not _is_table(t.apply(levels), (levels.astype(np.float32) - mean) * factor):
        raise cannot(t, "this release calculates in another way than the engine")
    return MakesFloats(EngineOp("normalize_bytes", mean=mean.tolist(), factor=factor.tolist()))


def _to_float(t: Any) -> Transform:
    if t.max_value is not None and number(t, "max_value") != 255:
        raise cannot(t, f"max_value={t.max_value!r} is not 255")
    levels = _levels()
    if not _is_table(t.apply(levels), levels.astype(np.float32) / np.float32(255)):
        raise cannot(t, "this release calculates in another way than the engine")
    return MakesFloats(EngineOp("to_tensor"))


def _to_tensor(t: Any) -> Transform:
    is_on(t, "transpose_mask")  # of no effect: masks have no channels
    return ToTensor()


register("BBoxSafeRandomCrop", crop_around_boxes)
register("CenterCrop", _center_crop)
register("Crop", _crop)
register("CropNonEmptyMaskIfExists", _crop_to_mask)
register("D4", lambda t: turn(*range(1, 9)))
register("HorizontalFlip", lambda t: T.RandomHorizontalFlip(1.0))
register("Normalize", _normalize)
register("Pad", _pad)
register("PadIfNeeded", _pad_if_needed)
register("RandomCrop", _random_crop)
register("RandomCropFromBorders", _crop_borders)
register("RandomGridShuffle", _shuffle_tiles)
register("RandomRotate90", lambda t: turn(1, 8, 3, 6))
register("SquareSymmetry", lambda t: turn(*range(1, 9)))
register("ToFloat", _to_float)
register("ToTensorV2", _to_tensor)
register("Transpose", lambda t: turn(5))
register("VerticalFlip", lambda t: T.RandomVerticalFlip(1.0))
