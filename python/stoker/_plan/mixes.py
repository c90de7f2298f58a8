# SPDX-License-Identifier: Apache-2.0
"""AugMix, of torchvision and timm: several chains of changes, added up with drawn weights."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from .._steps.base import Transform
from .._steps.engine_op import EngineOp

_WIDTH_MOST, _DEPTH_MOST = 16, 15
_ALPHA_LEAST, _ALPHA_MOST = 1e-3, 1e6


def mix_of(t: Any, changes: Sequence[Transform], width: Any, depth: Any, style: str) -> Transform:
    """Return the engine's op for an AugMix `t` that chooses from changes. `style`: whose arithmetic adds the chains up."""
    name = type(t).__name__
    if not isinstance(width, int) or not 1 <= width <= _WIDTH_MOST:
        raise NotImplementedError(f"{name} cannot be compiled: it has {width!r} chains; the engine adds up 1 to {_WIDTH_MOST}")
    if not isinstance(depth, int) or depth > _DEPTH_MOST:
        raise NotImplementedError(f"{name} cannot be compiled: it makes {depth!r} changes; the engine makes {_DEPTH_MOST} at most")
    if not isinstance(t.alpha, numbers.Real) or not _ALPHA_LEAST <= t.alpha <= _ALPHA_MOST:
        raise NotImplementedError(f"{name} cannot be compiled: alpha={t.alpha!r} is not from {_ALPHA_LEAST} to {_ALPHA_MOST:g}")
    if not changes:
        raise NotImplementedError(f"{name} cannot be compiled: it has no changes to choose from")
    return EngineOp("augment_and_mix", changes, width=width, depth=max(depth, 0), alpha=float(t.alpha), style=style)


# ---- torchvision's changes, of tensors ----

_BINS = 10  # of which the first `severity` are drawn
_BY_SIZE = {"TranslateX": 1 / 3, "TranslateY": 1 / 3}  # their magnitudes depend on the image's sides
_SIGNED = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness")
_PLAIN = ("Posterize", "Solarize", "AutoContrast", "Equalize")


def _space(t: Any, *, v2: bool) -> dict[str, Any]:
    """Return the magnitudes of each change, as the installed torchvision has them."""
    if not v2:
        return {name: magnitudes for name, (magnitudes, _) in t._augmentation_space(_BINS, (1, 1)).items()}
    space = t._AUGMENTATION_SPACE if t.all_ops else t._PARTIAL_AUGMENTATION_SPACE
    return {name: magnitudes(_BINS, 1, 1) for name, (magnitudes, _) in space.items()}


def _magnitudes(name: str, of: Any, severity: int, *, v2: bool) -> list[float] | None:
    if name in _BY_SIZE:
        return [_BY_SIZE[name] * k / (_BINS - 1) for k in range(severity)]
    if of is None or of.ndim == 0:
        return None
    times = 255.0 if v2 and name == "Solarize" else 1
    return [times * float(magnitude) for magnitude in of[:severity]]


def torchvision_mix(t: Any, fill: Any, filter_: str, *, v2: bool) -> Transform:
    """Return the engine's op for torchvision's AugMix (v1 or v2)."""
    if filter_ != "bilinear":
        raise NotImplementedError(f"{t!r} cannot be compiled: only interpolation='bilinear' can")
    space = _space(t, v2=v2)
    if not space.keys() <= {*_SIGNED, *_PLAIN}:
        raise NotImplementedError(f"{t!r} cannot be compiled: the engine does not have all of its changes")
    changes = [
        EngineOp(
            "tensor_augment",
            change=name,
            magnitudes=_magnitudes(name, of, t.severity, v2=v2),
            either_way=name in _SIGNED or None,
            fused=v2 or None,
            fill=fill,
        )
        for name, of in space.items()
    ]
    return mix_of(t, changes, t.mixture_width, t.chain_depth, "torchvision")
