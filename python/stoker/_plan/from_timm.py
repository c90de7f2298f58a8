# SPDX-License-Identifier: Apache-2.0
"""How each transform of timm becomes one of ours.

timm is never imported here: its objects are recognised by the names of their classes.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

from .. import transforms as T
from .._base.unmodified import is_from
from .._steps.arguments import filter_word, interpolation_mode
from .._steps.base import Transform, changes_of, converters
from .._steps.blockers import TRANSFORM, Blocked, Blocker
from .._steps.engine_op import EngineOp
from .._steps.mix import batch_converters
from .._steps.timm_mix import TimmMixup
from .mixes import mix_of

_COUNT_MOST = 8  # boxes of RandomErasing
_OPS_MOST = 256  # of one pipeline
_IN_PIXELS = ("TranslateX", "TranslateY")


def _cannot(t: Any, why: str) -> NotImplementedError:
    shown = type(t).__name__ if hasattr(t, "ops") else repr(t)  # those with ops have long texts
    return NotImplementedError(f"{shown} cannot be compiled: {why}")


def _for_filters(t: Any, make: Callable[[Any], Transform]) -> Transform:
    """Return the step that `make` returns for an interpolation, or one of them drawn at random."""
    if not isinstance(t.interpolation, (tuple, list)):
        return make(t.interpolation)
    return T.RandomChoice([make(interpolation) for interpolation in t.interpolation])


# ---- sizes ----


def _resized_crop(t: Any) -> Transform:
    return _for_filters(t, lambda filter_: T.RandomResizedCrop(t.size, t.scale, t.ratio, filter_))


def _keep_ratio(t: Any) -> Transform:
    return _for_filters(
        t,
        lambda filter_: EngineOp(
            "resize_keep_ratio",
            size=t.size,
            longest=t.longest,
            interpolation=filter_word(interpolation_mode(filter_)),
            scale_p=t.random_scale_prob,
            scale=t.random_scale_range,
            scale_area=bool(t.random_scale_area),
            aspect_p=t.random_aspect_prob,
            aspect=t.random_aspect_range,
        ),
    )


def _border(t: Any) -> dict[str, Any]:
    return {"size": t.size, "fill": 0 if t.fill is None else t.fill, "padding_mode": t.padding_mode}


def _trim(t: Any) -> Transform:
    if not isinstance(t.border_size, int) or t.border_size < 0:
        raise _cannot(t, "border_size must be an integer from 0 on")
    return T.Pad(-t.border_size)


# ---- tensors ----


def _to_tensor(t: Any) -> Transform:
    return converters["torchvision"]["ToTensor"](t)


def _erasing(t: Any) -> Transform:
    """Several boxes share the area, and how many there are is drawn for each image."""
    value = {"const": 0, "": 0, "rand": "random_color", "pixel": "random"}.get(t.mode)
    if value is None or str(t.device) != "cpu":
        raise _cannot(t, "mode must be const, rand or pixel, and device='cpu'")
    low, high = t.min_count, t.max_count
    if not (isinstance(low, int) and isinstance(high, int) and 1 <= low <= high <= _COUNT_MOST):
        raise _cannot(t, f"it must erase from 1 to {_COUNT_MOST} boxes")
    ratio = [math.exp(log) for log in t.log_aspect_ratio]
    rows = []
    for count in range(low, high + 1):
        scale = (t.min_area / count, t.max_area / count)
        rows.append(T.RandomApply([T.RandomErasing(1.0, scale, ratio, value) for _ in range(count)], 1.0))
    if low == high == 1:
        return T.RandomErasing(t.probability, (t.min_area, t.max_area), ratio, value)
    return T.RandomApply([T.RandomChoice(rows)], t.probability)


# ---- RandAugment and AutoAugment ----

# What the engine has: timm's functions for each change, and for its argument.
_CHANGES = {
    "AutoContrast": ("auto_contrast", None),
    "Equalize": ("equalize", None),
    "Invert": ("invert", None),
    "Rotate": ("rotate", "_rotate_level_to_arg"),
    "Posterize": ("posterize", "_posterize_level_to_arg"),
    "PosterizeIncreasing": ("posterize", "_posterize_increasing_level_to_arg"),
    "PosterizeOriginal": ("posterize", "_posterize_original_level_to_arg"),
    "Solarize": ("solarize", "_solarize_level_to_arg"),
    "SolarizeIncreasing": ("solarize", "_solarize_increasing_level_to_arg"),
    "SolarizeAdd": ("solarize_add", "_solarize_add_level_to_arg"),
    "Color": ("color", "_enhance_level_to_arg"),
    "ColorIncreasing": ("color", "_enhance_increasing_level_to_arg"),
    "Contrast": ("contrast", "_enhance_level_to_arg"),
    "ContrastIncreasing": ("contrast", "_enhance_increasing_level_to_arg"),
    "Brightness": ("brightness", "_enhance_level_to_arg"),
    "BrightnessIncreasing": ("brightness", "_enhance_increasing_level_to_arg"),
    "Sharpness": ("sharpness", "_enhance_level_to_arg"),
    "SharpnessIncreasing": ("sharpness", "_enhance_increasing_level_to_arg"),
    "ShearX": ("shear_x", "_shear_level_to_arg"),
    "ShearY": ("shear_y", "_shear_level_to_arg"),
    "TranslateX": ("translate_x_abs", "_translate_abs_level_to_arg"),
    "TranslateY": ("translate_y_abs", "_translate_abs_level_to_arg"),
    "TranslateXRel": ("translate_x_rel", "_translate_rel_level_to_arg"),
    "TranslateYRel": ("translate_y_rel", "_translate_rel_level_to_arg"),
    "Desaturate": ("desaturate", ("_minmax_level_to_arg", (("max_val", 1.0), ("min_val", 0.5)))),
    "GaussianBlur": ("gaussian_blur", ("_minmax_level_to_arg", (("max_val", 2.0), ("min_val", 0.1)))),
    "GaussianBlurRand": ("gaussian_blur_rand", "_minmax_level_to_arg"),
}


def _name_of(function: Any) -> Any:
    """Return the name of a function of timm, with what a partial one binds; for any other, the function."""
    if isinstance(function, functools.partial) and not function.args:
        return _name_of(function.func), tuple(sorted(function.keywords.items()))
    return function.__name__ if function is not None and is_from("timm", function) else function


def _resample(t: Any) -> str:
    resample = t.kwargs["resample"]
    if not isinstance(resample, (tuple, list)):
        return filter_word(interpolation_mode(resample))
    words = [filter_word(interpolation_mode(one)) for one in resample]
    if sorted(words) == ["bicubic", "bilinear"]:
        return "random"
    if len(words) == 1:
        return words[0]
    raise _cannot(t, f"its interpolation is one of {words}; the engine chooses between bilinear and bicubic")


def _fill(t: Any) -> Any:
    fill = t.kwargs["fillcolor"]
    if fill is None:
        return 0
    if isinstance(fill, (tuple, list)) and len(fill) == 3:
        return fill
    raise _cannot(t, f"fillcolor={fill!r} is not one number for each of three channels")


def _augment_op(t: Any) -> Transform:
    if type(t).__module__ != "timm.data.auto_augment" or type(t).__name__ != "AugmentOp":
        raise _cannot(t, "it is not one of timm's changes")
    changes = changes_of(t)
    if changes:
        raise Blocked([Blocker(TRANSFORM, why, "", t) for why in changes])
    if _CHANGES.get(t.name) != (_name_of(t.aug_fn), _name_of(t.level_fn)):
        raise _cannot(t, f"the engine does not have timm's {t.name}")
    if t.kwargs.keys() != {"fillcolor", "resample"}:
        raise _cannot(t, f"the engine does not have all of its options: {t.kwargs}")
    spread = t.magnitude_std
    translate = t.hparams.get("translate_const") if t.name in _IN_PIXELS else t.hparams.get("translate_pct", 0.45)
    if translate is None:
        raise _cannot(t, "its hparams have no translate_const")
    return EngineOp(
        "timm_augment",
        change=t.name,
        p=t.prob,
        magnitude=t.magnitude,
        magnitude_std=-1 if spread == math.inf else max(spread, 0),
        magnitude_max=t.magnitude_max or None,
        translate=translate,
        interpolation=_resample(t),
        fill=_fill(t),
    )


def _check_version(t: Any) -> None:
    version = getattr(sys.modules.get("timm"), "__version__", "0")
    if int(version.partition(".")[0]) < 1:
        raise _cannot(t, f"its changes are those of timm {version}; the engine has those of timm 1")


def _rand_augment(t: Any) -> Transform:
    _check_version(t)
    ops = [_augment_op(one) for one in t.ops]
    if t.choice_weights is not None:
        return EngineOp("random_some", ops, n=t.num_layers, p=[float(weight) for weight in t.choice_weights])
    if not isinstance(t.num_layers, int) or not 0 <= t.num_layers * len(ops) <= _OPS_MOST:
        raise _cannot(t, f"num_layers={t.num_layers}, for which the engine has too few ops")
    return T.Compose([T.RandomChoice(ops)] * t.num_layers)


def _auto_augment(t: Any) -> Transform:
    _check_version(t)
    return T.RandomChoice([T.Compose([_augment_op(one) for one in pair]) for pair in t.policy])


def _augmix(t: Any) -> Transform:
    _check_version(t)
    style = "timm_blended" if t.blended else "timm"
    return mix_of(t, [_augment_op(one) for one in t.ops], t.width, t.depth, style)


def _mixup(t: Any) -> TimmMixup:
    changes = changes_of(t)
    if changes:
        raise TypeError(f"{changes[0]}: apply this Mixup to the batches that the loader delivers")
    return TimmMixup(t)


batch_converters["timm.data.mixup", "Mixup"] = _mixup
converters["timm"] = {
    "AugMixAugment": _augmix,
    "AutoAugment": _auto_augment,
    "CenterCropOrPad": lambda t: EngineOp("center_crop", **_border(t)),
    "MaybePILToTensor": lambda t: T.PILToTensor(),
    "MaybeToTensor": _to_tensor,
    "RandAugment": _rand_augment,
    "RandomCropOrPad": lambda t: EngineOp("random_crop", pad_if_needed=True, **_border(t)),
    "RandomErasing": _erasing,
    "RandomResizedCropAndInterpolation": _resized_crop,
    "ResizeKeepRatio": _keep_ratio,
    "ToNumpy": lambda t: T.PILToTensor(),
    "TrimBorder": _trim,
}
