# SPDX-License-Identifier: Apache-2.0
"""Albumentations' noise of single pixels, and random curves of tones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import transforms as T
from .._steps.base import Transform
from .._steps.engine_op import EngineOp
from .from_albumentations import cannot, integer, is_on, number, register, several
from .from_albumentations_compared import Pair, compare


def _range(t: Any, name: str, most: float) -> list[float]:
    low, high = several(t, name, 2, 0, most)
    if low > high:
        raise cannot(t, f"{name}={getattr(t, name)!r} is not in ascending order")
    return [low, high]


def _multiply(t: Any) -> Transform:
    how = {"per_channel": is_on(t, "per_channel"), "elementwise": is_on(t, "elementwise")}
    ours = {"per_channel": how["per_channel"] or None, "each": how["elementwise"] or None}

    def pairs() -> Iterable[Pair]:
        for by in (0.9, 1.1, 0.313, 1.0, 0.0, 2.77):
            yield {"multiplier": (by, by)} | how, EngineOp("albu_multiply", by=(by, by), **ours)

    limits = _range(t, "multiplier", 1e6)
    compare(t, tuple(how.values()), pairs)
    return EngineOp("albu_multiply", by=limits, **ours)


def _tone_curve(t: Any) -> Transform:
    each = is_on(t, "per_channel")
    scale = number(t, "scale", 0, 1)
    straight = {"scale": 0.0, "per_channel": each}
    compare(t, each, lambda: [(straight, EngineOp("albu_tone_curve", **straight))])
    return EngineOp("albu_tone_curve", scale=scale, per_channel=each)


def _salt_and_pepper(t: Any) -> Transform:
    def pairs() -> Iterable[Pair]:
        for amount, salt in ((0.0, 1.0), (1.0, 1.0), (1.0, 0.0)):
            fixed = {"amount": (amount, amount), "salt_vs_pepper": (salt, salt)}
            yield fixed, EngineOp("albu_salt_and_pepper", amount=(amount, amount), salt=(salt, salt))

    limits = {"amount": _range(t, "amount", 1), "salt": _range(t, "salt_vs_pepper", 1)}
    compare(t, "", pairs)
    return EngineOp("albu_salt_and_pepper", **limits)


def _fill(t: Any) -> Any:
    """The value of dropped pixels: None is a random one."""
    if t.drop_value is None:
        return "random"
    if isinstance(t.drop_value, (tuple, list, np.ndarray)):
        several(t, "drop_value", 3)
        return [integer(t, "drop_value", value, 0, 255) for value in t.drop_value]
    return integer(t, "drop_value", t.drop_value, 0, 255)


def _pixel_dropout(t: Any) -> Transform:
    each = is_on(t, "per_channel")
    if t.mask_drop_value is not None:
        raise cannot(t, "mask_drop_value is given")
    if "bboxes" in (getattr(t, "processors", None) or {}) and not each:
        raise cannot(t, "dropped pixels hide boxes, which the engine does not")
    share = number(t, "dropout_prob", 0, 1)

    def pairs() -> Iterable[Pair]:
        for p, fill in ((1.0, 7), (1.0, (1, 2, 3)), (0.0, 0)):
            options = {"dropout_prob": p, "drop_value": fill, "per_channel": each}
            yield options, EngineOp("albu_drop_pixels", share=p, fill=fill, per_channel=each)

    compare(t, each, pairs)
    return EngineOp("albu_drop_pixels", share=share, fill=_fill(t), per_channel=each)


def _to_rgb(t: Any) -> Transform:
    """Images have three channels already."""
    if integer(t, "num_output_channels", t.num_output_channels, 1, 255) != 3:
        raise cannot(t, f"num_output_channels={t.num_output_channels!r} is not 3")
    return T.Compose([])


register("MultiplicativeNoise", _multiply)
register("PixelDropout", _pixel_dropout)
register("RandomToneCurve", _tone_curve)
register("SaltAndPepper", _salt_and_pepper)
register("ToRGB", _to_rgb)
