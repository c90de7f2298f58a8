# SPDX-License-Identifier: Apache-2.0
"""Albumentations' changes of values: colours, tables, blurs and noise.

The engine's arithmetic is that of Albumentations 2.0.8 and OpenCV 5. Other versions, and OpenCV on other CPUs, may calculate
in another way, so each step is compared with the libraries that are installed before it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import transforms as T
from .._steps import single
from .._steps.base import Transform
from .._steps.engine_op import EngineOp
from .from_albumentations import cannot, checked, integer, is_on, number, register, several
from .from_albumentations_compared import Pair as _Pair
from .from_albumentations_compared import compare as _compare
from .from_albumentations_compared import judge as _judge

# ---- parameters ----


def _range(t: Any, name: str, least: float = -math.inf, most: float = math.inf) -> list[float]:
    """Return an attribute that is two numbers in ascending order."""
    low, high = several(t, name, 2, least, most)
    if low > high:
        raise cannot(t, f"{name}={getattr(t, name)!r} is not in ascending order")
    return [low, high]


def _whole_range(t: Any, name: str, least: int, most: int) -> list[int]:
    low, high = _range(t, name, least, most)
    if low != int(low) or high != int(high):
        raise cannot(t, f"{name}={getattr(t, name)!r} are not integers")
    return [int(low), int(high)]


def _odd_range(t: Any, name: str, most: int) -> list[int]:
    """Return the odd sides of a window: Albumentations draws from those in the range."""
    low, high = _whole_range(t, name, 3, most)
    return [low | 1, high - 1 + high % 2]


def _same(value: float) -> tuple[float, float]:
    return value, value


# ---- tables ----


def _brightness_contrast(t: Any) -> Transform:
    by_mean, safe = not is_on(t, "brightness_by_max"), is_on(t, "ensure_safe_range")
    ranges = {"brightness": _range(t, "brightness_limit", -1e6, 1e6), "contrast": _range(t, "contrast_limit", -1e6, 1e6)}

    def pairs() -> Iterable[_Pair]:
        for brightness, contrast in ((0.37, -0.211), (-0.313, 0.47), (0.05, 0.0)):
            options = {"brightness_limit": _same(brightness), "contrast_limit": _same(contrast)}
            options |= {"brightness_by_max": not by_mean, "ensure_safe_range": safe}
            fixed = {"brightness": _same(brightness), "contrast": _same(contrast)}
            yield options, EngineOp("albu_brightness_contrast", by_mean=by_mean, safe=safe, **fixed)

    _compare(t, (by_mean, safe), pairs)
    return EngineOp("albu_brightness_contrast", by_mean=by_mean, safe=safe, **ranges)


def _one_range(
    op: str, ours: str, theirs: str, values: tuple[float, ...], read: Callable[[Any, str], Any]
) -> Callable[[Any], Transform]:
    """Return a converter of what draws one number: our name of its range and Albumentations', and values to compare."""

    def convert(t: Any) -> Transform:
        limits = read(t, theirs)
        _compare(t, op, lambda: (({theirs: _same(value)}, EngineOp(op, **{ours: _same(value)})) for value in values))
        return EngineOp(op, **{ours: limits})

    return convert


def _posterize(t: Any) -> Transform:
    bits = t.num_bits
    pairs = bits if isinstance(bits, list) else [bits]
    if len(pairs) not in (1, 3):
        raise cannot(t, f"num_bits={bits!r} is not one range, or three")
    limits = []
    for pair in pairs:
        low, high = (int(checked(t, "num_bits", value, 1, 8)) for value in pair)
        limits += [low, high]
    _compare(t, "", lambda: (({"num_bits": n}, EngineOp("albu_posterize", bits=[n, n])) for n in range(1, 8)))
    return EngineOp("albu_posterize", bits=limits)


def _shift_rgb(t: Any) -> Transform:
    """Its limits are levels, or fractions of 255 if they are at most 1; noise_params has them as fractions."""
    channels = t.noise_params["ranges"]
    if (t.noise_type, t.spatial_mode, len(channels)) != ("uniform", "constant", 3):
        raise cannot(t, "its noise is not one number for each channel")
    limits = {}
    for name, (low, high) in zip("rgb", channels, strict=True):
        limits[name] = [checked(t, f"{name}_shift_limit", value, -1, 1) for value in (low, high)]

    def pairs() -> Iterable[_Pair]:
        for shifts in ((5.3, -7.6, 0.0), (-101.9, 1.7, 99.9)):
            options = {f"{name}_shift_limit": _same(by) for name, by in zip("rgb", shifts, strict=True)}
            yield options, EngineOp("albu_shift_rgb", **{name: _same(by / 255) for name, by in zip("rgb", shifts, strict=True)})

    _compare(t, "", pairs)
    return EngineOp("albu_shift_rgb", **limits)


def _invert(t: Any) -> Transform:
    _compare(t, "", lambda: [({}, T.RandomInvert(1.0))])
    return T.RandomInvert(1.0)


def _equalize(t: Any) -> Transform:
    if t.mode != "cv":
        raise cannot(t, f"mode={t.mode!r}")
    if t.mask is not None:
        raise cannot(t, "mask is given")
    luma = not is_on(t, "by_channels")
    _compare(t, luma, lambda: [({"by_channels": not luma}, EngineOp("albu_equalize", luma=luma))])
    return EngineOp("albu_equalize", luma=luma)


# ---- colours ----


def _clahe(t: Any) -> Transform:
    tiles = [integer(t, "tile_grid_size", value, 1, 256) for value in several(t, "tile_grid_size", 2, 1, 256)]

    def pairs() -> Iterable[_Pair]:
        for clip in (1.0, 1.37, 3.21, 9.0):
            yield {"clip_limit": _same(clip), "tile_grid_size": tuple(tiles)}, EngineOp("albu_clahe", clip=_same(clip), tiles=tiles)

    limits = _range(t, "clip_limit", 1, 1e6)
    _compare(t, tuple(tiles), pairs)
    return EngineOp("albu_clahe", clip=limits, tiles=tiles)


def _shift_hsv(t: Any) -> Transform:
    names = {"hue": ("hue_shift_limit", 180), "saturation": ("sat_shift_limit", 255), "value": ("val_shift_limit", 255)}
    limits = {ours: _range(t, theirs, -most, most) for ours, (theirs, most) in names.items()}

    def pairs() -> Iterable[_Pair]:
        for shifts in ((11.3, -25.6, 18.2), (-17.8, 22.9, -9.1), (3.0, 0.0, 0.0), (0.0, 4.0, 0.0), (0.0, 0.0, 0.0)):
            options = {names[ours][0]: _same(by) for ours, by in zip(names, shifts, strict=True)}
            yield options, EngineOp("albu_shift_hsv", **{ours: _same(by) for ours, by in zip(names, shifts, strict=True)})

    _compare(t, "", pairs)
    return EngineOp("albu_shift_hsv", **limits)


_NEUTRAL = {"brightness": 1.0, "contrast": 1.0, "saturation": 1.0, "hue": 0.0}


def _jitter(t: Any) -> Transform:
    limits = {name: _range(t, name, -0.5 if name == "hue" else 0, 0.5 if name == "hue" else 1e6) for name in _NEUTRAL}

    def pairs() -> Iterable[_Pair]:
        cases = [{name: value} for name in ("brightness", "contrast", "saturation") for value in (0.0, 0.31, 1.43, 1.0)]
        for case in (*cases, {"hue": 0.07}, {"hue": -0.31}, {"hue": 0.5}):
            fixed = {name: _same(value) for name, value in (_NEUTRAL | case).items()}
            yield fixed, EngineOp("albu_jitter", **fixed)

    _compare(t, "", pairs)
    return EngineOp("albu_jitter", **limits)


def _grey(t: Any) -> Transform:
    if t.method not in ("weighted_average", "from_lab", "desaturation", "average", "max") or t.num_output_channels != 3:
        raise cannot(t, f"method={t.method!r} with num_output_channels={t.num_output_channels!r}")
    step = EngineOp("albu_grey", method=t.method)
    _compare(t, t.method, lambda: [({"method": t.method}, step)])
    return step


def _shuffle(t: Any) -> Transform:
    return T.RandomChannelPermutation()


def _drop_channels(t: Any) -> Transform:
    return EngineOp("albu_drop_channels", count=_whole_range(t, "channel_drop_range", 1, 2), fill=number(t, "fill", 0, 255))


# ---- filters, noise ----


def _blur(op: str, most: int) -> Callable[[Any], Transform]:
    def convert(t: Any) -> Transform:
        sides = _odd_range(t, "blur_limit", most)
        # Sums have other types for larger windows in OpenCV.
        fixed = range(sides[0], sides[1] + 1, 2)
        _compare(t, tuple(fixed), lambda: (({"blur_limit": _same(n)}, EngineOp(op, side=[n, n])) for n in fixed))
        return EngineOp(op, side=sides)

    return convert


def _edges(op: str, ours: str, theirs: str) -> Callable[[Any], Transform]:
    def convert(t: Any) -> Transform:
        if getattr(t, "method", "kernel") != "kernel":
            raise cannot(t, f"method={t.method!r}")

        def pairs() -> Iterable[_Pair]:
            for alpha, by in ((0.37, 0.61), (0.213, 0.9), (0.0, 0.5), (1.0, 0.317)):
                yield {"alpha": _same(alpha), theirs: _same(by)}, EngineOp(op, **{"alpha": _same(alpha), ours: _same(by)})

        limits = {"alpha": _range(t, "alpha", 0, 1), ours: _range(t, theirs, 0, 1e6)}
        _compare(t, "", pairs)
        return EngineOp(op, **limits)

    return convert


def _gaussian_blur(t: Any) -> Transform:
    sigma, side = _range(t, "sigma_limit", 0, 1e6), _whole_range(t, "blur_limit", 0, _GAUSS_MOST)
    if sigma[1] == 0:
        raise cannot(t, "sigma_limit is 0")
    if side[0] == 0 and sigma[1] * 7 > _GAUSS_MOST - 1:
        raise cannot(t, f"sigma_limit={t.sigma_limit!r} requires kernels of more than {_GAUSS_MOST} pixels")

    def pairs() -> Iterable[_Pair]:
        for width, length in ((0.5, 0), (1.31, 0), (2.93, 0), (0.8, 3), (1.7, 9)):
            options = {"sigma_limit": _same(width), "blur_limit": (length, length)}
            yield options, EngineOp("albu_gaussian_blur", sigma=_same(width), side=(length, length))

    _compare(t, "", pairs)
    return EngineOp("albu_gaussian_blur", sigma=sigma, side=side)


_GAUSS_MOST = 127  # pixels of a kernel


def _motion_blur(t: Any) -> Transform:
    sides, shifted = _odd_range(t, "blur_limit", 9), is_on(t, "allow_shifted")
    limits = {"angle": _range(t, "angle_range", -1e4, 1e4), "direction": _range(t, "direction_range", -1, 1)}

    def pairs() -> Iterable[_Pair]:
        for angle, direction in ((0.0, 0.0), (31.7, -0.4), (118.0, 0.77), (301.3, 1.0), (200.1, 0.1)):
            for side in (3, 5, 7, 9):
                options = {"blur_limit": (side, side), "angle_range": _same(angle), "direction_range": _same(direction)}
                fixed = {"side": (side, side), "angle": _same(angle), "direction": _same(direction)}
                yield options | {"allow_shifted": False}, EngineOp("albu_motion_blur", **fixed)

    _compare(t, "", pairs)
    return EngineOp("albu_motion_blur", side=sides, shifted=shifted, **limits)


def _iso_alike(t: Any) -> bool:
    """Return whether as many pixels become lighter, by as much, and hues turn as far, for fixed numbers and draws of their
    own."""
    two = np.full((300, 300, 3), (255, 128, 0), np.uint8)
    two[::2] = 60
    numbers = {"color_shift": _same(1.0), "intensity": _same(0.7)}
    theirs = type(t)(**numbers, p=1.0)
    theirs.set_random_seed(1)
    step = EngineOp("albu_iso_noise", **numbers)
    ours = single.run(step._spec(), two, 0, seed=1, dtype=None, memory_format=None, pillow=13).transpose(1, 2, 0)
    found = []
    for made in (theirs(image=two.copy())["image"], ours):
        grey, coloured = made[::2, :, 0], made[1::2]
        green = coloured[coloured[..., 2] == 0][:, 1]
        values, counts = np.unique(grey, return_counts=True)
        found.append(((values * 1.0).tolist(), (counts / grey.size).tolist(), float(green.mean()), float(green.std())))
    (values, shares, mean, deviation), (values2, shares2, mean2, deviation2) = found
    return bool(
        values == values2
        and np.allclose(shares, shares2, atol=0.006)
        and abs(mean - mean2) < 0.1
        and abs(deviation / deviation2 - 1) < 0.03
    )


def _iso_noise(t: Any) -> Transform:
    limits = {"color_shift": _range(t, "color_shift", 0, 1), "intensity": _range(t, "intensity", 0, 1e6)}
    still = {"color_shift": _same(0.0), "intensity": _same(0.0)}
    _compare(t, "", lambda: [(still, EngineOp("albu_iso_noise", **still))])
    _judge(t, "noise", lambda: _iso_alike(t))
    return EngineOp("albu_iso_noise", **limits)


def _noise(t: Any) -> Transform:
    if number(t, "noise_scale_factor") != 1:
        raise cannot(t, f"noise_scale_factor={t.noise_scale_factor!r} is not 1")
    limits = {"std": _range(t, "std_range", 0, 1), "mean": _range(t, "mean_range", -1, 1)}

    def pairs() -> Iterable[_Pair]:
        for mean in (0.1, -0.1, 0.0, 0.73, -0.281):
            yield {"std_range": _same(0.0), "mean_range": _same(mean)}, EngineOp("albu_noise", std=_same(0.0), mean=_same(mean))

    _compare(t, "", pairs)
    return EngineOp("albu_noise", grey=not is_on(t, "per_channel"), **limits)


_FILTERS = {0: "cv_nearest", 1: "cv_linear", 3: "cv_area"}  # by OpenCV's numbers


def _downscale(t: Any) -> Transform:
    pair = t.interpolation_pair
    down, up = _FILTERS.get(pair["downscale"]), _FILTERS.get(pair["upscale"])
    if down is None or up is None:
        raise cannot(t, f"interpolation_pair={pair!r} has others than cv2.INTER_NEAREST, INTER_LINEAR and INTER_AREA")

    def pairs() -> Iterable[_Pair]:
        for scale in (0.25, 0.5, 0.2, 0.31, 0.613, 0.77, 0.953):
            yield {"scale_range": _same(scale), "interpolation_pair": pair}, EngineOp(
                "albu_downscale", scale=_same(scale), down=down, up=up
            )

    limits = _range(t, "scale_range", 1e-4, 1)
    _compare(t, (down, up), pairs)
    return EngineOp("albu_downscale", scale=limits, down=down, up=up)


def _compression(t: Any) -> Transform:
    """Albumentations gives OpenCV, whose first channel is blue, arrays whose first channel is red."""
    if t.compression_type != "jpeg":
        raise cannot(t, f"compression_type={t.compression_type!r}: the engine has the loss of JPEGs alone")
    limits = _whole_range(t, "quality_range", 1, 100)
    fixed = (*range(1, 100, 7), 49, 51, 100)

    def pairs() -> Iterable[_Pair]:
        return (({"quality_range": (n, n)}, EngineOp("jpeg", quality=[n, n], swapped=True)) for n in fixed)

    _compare(t, "", pairs)
    return EngineOp("jpeg", quality=limits, swapped=True)


register("Blur", _blur("albu_box_blur", 255))
register("CLAHE", _clahe)
register("ChannelDropout", _drop_channels)
register("ChannelShuffle", _shuffle)
register("ColorJitter", _jitter)
register("Downscale", _downscale)
register("Emboss", _edges("albu_emboss", "strength", "strength"))
register("Equalize", _equalize)
register("GaussNoise", _noise)
register("GaussianBlur", _gaussian_blur)
register("HueSaturationValue", _shift_hsv)
register("ISONoise", _iso_noise)
register("ImageCompression", _compression)
register("InvertImg", _invert)
register("MedianBlur", _blur("albu_median_blur", 15))
register("MotionBlur", _motion_blur)
register("Posterize", _posterize)
register("RGBShift", _shift_rgb)
register("RandomBrightnessContrast", _brightness_contrast)
register(
    "RandomGamma",
    _one_range("albu_gamma", "gamma", "gamma_limit", (37.0, 80.0, 100.0, 131.7, 200.0), lambda t, name: _range(t, name, 1e-3, 1e6)),
)
register("Sharpen", _edges("albu_sharpen", "lightness", "lightness"))
register(
    "Solarize",
    _one_range(
        "albu_solarize", "threshold", "threshold_range", (0.0, 0.25, 0.5, 0.77, 1.0), lambda t, name: _range(t, name, 0, 1)
    ),
)
register("ToGray", _grey)
