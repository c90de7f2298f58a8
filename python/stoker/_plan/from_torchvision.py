# SPDX-License-Identifier: Apache-2.0
"""How each transform of torchvision (v1 and v2), and a function where it is known what it does, becomes one of ours.

torchvision is never imported here: its objects are recognised by the names of their classes.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

from .. import transforms as T
from .._base.tensors import dtype_name
from .._steps.arguments import filter_word, interpolation_mode, op
from .._steps.base import PRESETS, Transform, converters, proved, unknown
from .._steps.engine_op import EngineOp
from .._steps.functions import Nothing, ToRGB, step_of
from .compare import gives, samples
from .mixes import torchvision_mix


class _ToImage(Nothing):
    """A tensor of bytes. Later ops of torchvision take tensors where the engine's take images, so it is deferred."""

    _makes_tensor = _deferred = True


def _is_v2(transform: Any) -> bool:
    return type(transform).__module__.startswith("torchvision.transforms.v2")


def _pad(t: Any) -> Transform:
    return T.Pad(t.padding, _fill(t.fill), t.padding_mode)


def _random_crop(t: Any) -> Transform:
    padding = t.padding
    if padding is not None and _is_v2(t):
        left, right, top, bottom = padding  # v2 keeps them in this order
        padding = [left, top, right, bottom]
    return T.RandomCrop(t.size, padding, t.pad_if_needed, _fill(t.fill), t.padding_mode)


def _fill(fill: Any) -> Any:
    if isinstance(fill, dict):
        raise NotImplementedError(f"fill={fill!r} cannot be compiled: give one value for all types")
    return 0 if fill is None else fill


class _ToDtype(T.ConvertImageDtype):
    """v2 multiplies by 1/255 where v1 divides by 255, which may differ in the last bit."""

    def _spec(self) -> str:
        return op("convert_image_dtype", dtype=dtype_name(self.dtype), product=True)


def _to_dtype(t: Any) -> Transform:
    if isinstance(t.dtype, dict) or not t.scale:
        raise NotImplementedError(f"{t!r} cannot be compiled: only ToDtype(dtype, scale=True) can")
    return _ToDtype(t.dtype)


def _erasing(t: Any) -> Transform:
    return T.RandomErasing(t.p, t.scale, t.ratio, "random" if t.value is None else t.value)


def _resize(t: Any) -> Transform:
    if t.size is None:
        raise NotImplementedError(f"{t!r} cannot be compiled: Resize needs size, not max_size alone")
    size = t.size[0] if isinstance(t.size, (list, tuple)) and len(t.size) == 1 else t.size
    return T.Resize(size, t.interpolation, t.max_size, t.antialias)


def _posterize(t: Any) -> Transform:
    if not isinstance(t.bits, int) or not 1 <= t.bits <= 8:
        raise NotImplementedError(f"{t!r} cannot be compiled: bits must be an integer from 1 to 8")
    return T.RandomPosterize(t.bits, t.p)


def _jitter(t: Any) -> Transform:
    values = [t.brightness, t.contrast, t.saturation, t.hue]
    return T.ColorJitter(*(0 if value is None else value for value in values))


def _preset(t: Any) -> Transform:
    """Convert what weights.transforms() returns: for classification, segmentation or detection."""
    steps: list[Transform] = []
    resize = getattr(t, "resize_size", None)
    if resize is not None:
        steps.append(T.Resize(resize[0] if len(resize) == 1 else resize, t.interpolation, None, t.antialias))
    if hasattr(t, "crop_size"):
        steps.append(T.CenterCrop(t.crop_size))
    steps += [T.PILToTensor(), T.ConvertImageDtype("float32")]
    if hasattr(t, "mean"):
        steps.append(T.Normalize(t.mean, t.std))
    return T.Compose(steps)


def _to_tensor(t: Any) -> Transform:
    torch: Any = sys.modules["torch"]  # torchvision has imported it
    if torch.get_default_dtype() is not torch.float32:
        raise NotImplementedError(
            f"{t!r} makes tensors of torch's default type, {torch.get_default_dtype()}; the engine makes float32"
        )
    return T.ToTensor()


def _lambda(t: Any) -> Transform:
    if getattr(t, "types", (object,)) != (object,):
        raise NotImplementedError(f"{t!r} cannot be compiled: it is for some types only")
    step = step_of(t.lambd) or proved(t.lambd)
    if step is None:
        raise unknown(t)
    return step


def _map_options(t: Any) -> dict[str, Any]:
    """Return the options that all transforms with a map have."""
    interpolation = interpolation_mode(t.interpolation)
    if filter_word(interpolation) not in ("nearest", "bilinear", "bicubic"):
        raise NotImplementedError(f"{t!r} cannot be compiled: Pillow has no map with interpolation={interpolation.value}")
    return {"interpolation": interpolation, "fill": _fill(t.fill)}


def _rotation(t: Any) -> Transform:
    return T.RandomRotation(t.degrees, expand=t.expand, center=t.center, **_map_options(t))


def _affine(t: Any) -> Transform:
    return T.RandomAffine(t.degrees, t.translate, t.scale, t.shear, center=t.center, **_map_options(t))


def _auto_augment(t: Any) -> Transform:
    policies = t._policies if _is_v2(t) else t.policies
    if policies != t._get_policies(t.policy):
        raise NotImplementedError(f"{t!r} cannot be compiled: its policies were changed")
    return T.AutoAugment(t.policy, **_map_options(t))


def _bins(t: Any) -> int:
    bins = t.num_magnitude_bins
    if not isinstance(bins, int) or bins < 2 or not 0 <= getattr(t, "magnitude", 0) < bins:
        raise NotImplementedError(f"{t!r} cannot be compiled: magnitude must be from 0 to num_magnitude_bins - 1")
    return bins


def _rand_augment(t: Any) -> Transform:
    return T.RandAugment(t.num_ops, t.magnitude, _bins(t), **_map_options(t))


def _elastic(t: Any) -> Transform:
    if t.fill is None:
        raise NotImplementedError(f"{t!r} cannot be compiled: give fill=0")
    if filter_word(interpolation_mode(t.interpolation)) not in ("nearest", "bilinear"):
        raise NotImplementedError(f"{t!r} cannot be compiled: only interpolation='nearest' and 'bilinear' can")
    return T.ElasticTransform(t.alpha, t.sigma, **_map_options(t))


def _noise(t: Any) -> Transform:
    if t.clip is not True:
        raise NotImplementedError(f"{t!r} cannot be compiled: only clip=True can")
    if not (0 <= t.sigma <= 1 and -1 <= t.mean <= 1):
        raise NotImplementedError(f"{t!r} cannot be compiled: sigma must be from 0 to 1, and mean from -1 to 1")
    return EngineOp("albu_noise", std=[t.sigma] * 2, mean=[t.mean] * 2)  # Albumentations, too, leaves fractions out


def _iou_crop(t: Any) -> Transform:
    if not all(0 <= scale <= 1 for scale in (t.min_scale, t.max_scale)):
        raise NotImplementedError(f"{t!r} cannot be compiled: scales must be from 0 to 1")
    if not 1 <= len(t.options) <= 16 or not all(0 <= option for option in t.options):
        raise NotImplementedError(f"{t!r} cannot be compiled: there must be 1 to 16 options, none below 0")
    if not 1 <= t.trials <= 10000:
        raise NotImplementedError(f"{t!r} cannot be compiled: trials must be from 1 to 10000")
    return T.RandomIoUCrop(
        t.min_scale, t.max_scale, t.min_aspect_ratio, t.max_aspect_ratio, [min(option, 1.0) for option in t.options], t.trials
    )


@functools.cache
def _writes_jpegs_alike() -> bool:
    """Return whether what the installed torchvision makes of JPEGs, with the libjpeg that it has, is what the engine makes."""
    torch, functional = sys.modules["torch"], sys.modules["torchvision.transforms.v2.functional"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is deprecated
        try:
            for image in samples():
                planes = torch.as_tensor(image).permute(2, 0, 1).contiguous()
                for quality in (*range(1, 100, 7), 49, 51, 100):
                    if not gives(T.JPEG(quality), image, functional.jpeg(planes, quality).permute(1, 2, 0).numpy()):
                        return False
        except Exception:  # built without libjpeg, or with other arguments
            return False
    return True


def _jpeg(t: Any) -> Transform:
    step = T.JPEG(t.quality)
    if not _writes_jpegs_alike():
        raise NotImplementedError(f"{t!r} cannot be compiled: the installed torchvision's JPEGs differ from the engine's")
    return step


def _mix(t: Any) -> Transform:
    if isinstance(t.fill, dict):
        _fill(t.fill)
    return torchvision_mix(t, t.fill, filter_word(interpolation_mode(t.interpolation)), v2=_is_v2(t))


_CONVERTERS: dict[str, Callable[[Any], Transform]] = {
    "AugMix": _mix,
    "AutoAugment": _auto_augment,
    "CenterCrop": lambda t: T.CenterCrop(t.size),
    "ColorJitter": _jitter,
    "ClampBoundingBoxes": lambda t: Nothing() if t.clamping_mode is None else T.ClampBoundingBoxes(),
    "Compose": lambda t: T.Compose(list(t.transforms)),
    "ConvertBoundingBoxFormat": lambda t: T.ConvertBoundingBoxFormat(t.format),
    "ConvertImageDtype": lambda t: (_ToDtype if _is_v2(t) else T.ConvertImageDtype)(t.dtype),
    "ElasticTransform": _elastic,
    "GaussianBlur": lambda t: T.GaussianBlur(t.kernel_size, t.sigma),
    "GaussianNoise": _noise,
    "Grayscale": lambda t: T.Grayscale(t.num_output_channels),
    "Identity": lambda t: Nothing(),
    "JPEG": _jpeg,
    "Lambda": _lambda,
    "Normalize": lambda t: T.Normalize(t.mean, t.std),
    "PILToTensor": lambda t: _ToImage(),
    "Pad": _pad,
    "RGB": lambda t: ToRGB(),
    "SanitizeBoundingBoxes": lambda t: T.SanitizeBoundingBoxes(t.min_size, t.min_area),
    "RandAugment": _rand_augment,
    "RandomAdjustSharpness": lambda t: T.RandomAdjustSharpness(t.sharpness_factor, t.p),
    "RandomAffine": _affine,
    "RandomApply": lambda t: T.RandomApply(list(t.transforms), t.p),
    "RandomAutocontrast": lambda t: T.RandomAutocontrast(t.p),
    "RandomChannelPermutation": lambda t: T.RandomChannelPermutation(),
    "RandomChoice": lambda t: T.RandomChoice(list(t.transforms), t.p),
    "RandomCrop": _random_crop,
    "RandomEqualize": lambda t: T.RandomEqualize(t.p),
    "RandomErasing": _erasing,
    "RandomGrayscale": lambda t: T.RandomGrayscale(t.p),
    "RandomHorizontalFlip": lambda t: T.RandomHorizontalFlip(t.p),
    "RandomIoUCrop": _iou_crop,
    "RandomInvert": lambda t: T.RandomInvert(t.p),
    "RandomOrder": lambda t: T.RandomOrder(list(t.transforms)),
    "RandomPhotometricDistort": lambda t: T.RandomPhotometricDistort(
        t.brightness, t.contrast, t.saturation, t.hue, t.p
    ),
    "RandomPosterize": _posterize,
    "RandomPerspective": lambda t: T.RandomPerspective(t.distortion_scale, t.p, **_map_options(t)),
    "RandomResize": lambda t: T.RandomResize(t.min_size, t.max_size, t.interpolation, t.antialias),
    "RandomResizedCrop": lambda t: T.RandomResizedCrop(
        t.size, t.scale, t.ratio, t.interpolation, t.antialias
    ),
    "RandomSolarize": lambda t: T.RandomSolarize(t.threshold, t.p),
    "RandomRotation": _rotation,
    "RandomShortestSize": lambda t: T.RandomShortestSize(t.min_size, t.max_size, t.interpolation, t.antialias),
    "RandomVerticalFlip": lambda t: T.RandomVerticalFlip(t.p),
    "RandomZoomOut": lambda t: T.RandomZoomOut(_fill(t.fill), t.side_range, t.p),
    "Resize": _resize,
    "ScaleJitter": lambda t: T.ScaleJitter(t.target_size, t.scale_range, t.interpolation, t.antialias),
    "ToDtype": _to_dtype,
    "ToImage": lambda t: _ToImage(),
    "ToPureTensor": lambda t: _ToImage(),
    "ToTensor": _to_tensor,
    "TrivialAugmentWide": lambda t: T.TrivialAugmentWide(_bins(t), **_map_options(t)),
}
converters["torchvision"] = _CONVERTERS | dict.fromkeys(PRESETS, _preset)
converters["functions"] = {"function": step_of}
