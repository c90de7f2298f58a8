# SPDX-License-Identifier: Apache-2.0
"""Transforms that change values: colours, greyscale, tables of values, sharpness, and the order of channels."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from .arguments import op
from .base import Transform, WithProbability

_SHARPEST = 1e6


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not (isinstance(value, numbers.Real) or hasattr(value, "item")):
        raise TypeError(f"{name}={value!r} is not a number")
    return float(value)


class ColorJitter(Transform):
    """Change brightness, contrast, saturation and hue by random factors, in random order.

    Args:
        brightness: The range of the factor: a number x means from max(0, 1 - x) to 1 + x, a pair is (min, max).
        contrast: The same for contrast.
        saturation: The same for saturation.
        hue: The range of the shift, within -0.5 to 0.5: a number x means from -x to x, a pair is (min, max).

    Raises:
        TypeError, ValueError: As torchvision's ColorJitter.

    >>> T.ColorJitter(brightness=0.4, hue=(-0.1, 0.1))
    ColorJitter(brightness=(0.6, 1.4), contrast=None, saturation=None, hue=(-0.1, 0.1))
    """

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0
    ) -> None:
        self.brightness = self._range(brightness, "brightness")
        self.contrast = self._range(contrast, "contrast")
        self.saturation = self._range(saturation, "saturation")
        self.hue = self._range(hue, "hue", center=0, bound=(-0.5, 0.5), clip=False)

    @staticmethod
    def _range(
        value: Any,
        name: str,
        center: float = 1,
        bound: tuple[float, float] = (0, float("inf")),
        clip: bool = True,
    ) -> tuple[float, float] | None:
        if isinstance(value, numbers.Number):
            if value < 0:  # type: ignore[operator]
                raise ValueError(f"If {name} is a single number, it must be non negative.")
            low, high = center - float(value), center + float(value)  # type: ignore[arg-type]
            low = max(low, 0.0) if clip else low
        elif isinstance(value, (tuple, list)) and len(value) == 2:
            low, high = float(value[0]), float(value[1])
        else:
            raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
        if not bound[0] <= low <= high <= bound[1]:
            raise ValueError(f"{name} values should be between {bound}, but got {[low, high]}.")
        return None if low == high == center else (low, high)

    def _spec(self) -> str:
        return op(
            "color_jitter",
            brightness=self.brightness,
            contrast=self.contrast,
            saturation=self.saturation,
            hue=self.hue,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast}, "
            f"saturation={self.saturation}, hue={self.hue})"
        )


class Grayscale(Transform):
    """Remove the colour.

    Args:
        num_output_channels: 1, or 3 for three equal channels.

    Raises:
        ValueError: Another number of channels.

    >>> T.functional_apply(T.Grayscale(), np.zeros((48, 64, 3), np.uint8)).shape
    (1, 48, 64)
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            raise ValueError("num_output_channels should be either 1 or 3")
        self.num_output_channels = num_output_channels

    def _spec(self) -> str:
        return op("grayscale", num_output_channels=self.num_output_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"


class RandomGrayscale(WithProbability):
    """Remove the colour with probability `p`. The number of channels stays the same.

    Args:
        p: The probability.

    Raises:
        ValueError: `p` is not from 0 to 1.

    >>> T.RandomGrayscale(p=0.2)
    RandomGrayscale(p=0.2)
    """

    _name = "random_grayscale"

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)


class RandomInvert(WithProbability):
    """Invert all values with probability `p`: 0 becomes 255, and so on.

    Args:
        p: The probability.

    Raises:
        ValueError: `p` is not from 0 to 1.

    >>> T.functional_apply(T.RandomInvert(p=1), np.arange(6, dtype=np.uint8).reshape(1, 2, 3)).tolist()
    [[[255, 252]], [[254, 251]], [[253, 250]]]
    """

    _name = "random_invert"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)


class RandomPosterize(WithProbability):
    """Keep only the highest bits of all values, with probability `p`.

    Args:
        bits: How many bits of each value are kept, 1 to 8.
        p: The probability.

    Raises:
        TypeError: `bits` is not an integer.
        ValueError: `bits` is not from 1 to 8, or `p` not from 0 to 1.

    >>> T.functional_apply(T.RandomPosterize(2, p=1), np.full((1, 1, 3), 200, np.uint8)).tolist()
    [[[192]], [[192]], [[192]]]
    """

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        if isinstance(bits, bool) or not isinstance(bits, numbers.Integral):
            raise TypeError(f"bits={bits!r} is not an integer")
        if not 1 <= bits <= 8:
            raise ValueError(f"bits={bits} must be from 1 to 8")
        self.bits = bits

    def _spec(self) -> str:
        return op("random_posterize", bits=self.bits, p=self.p)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bits={self.bits},p={self.p})"


class RandomSolarize(WithProbability):
    """Invert the values from a threshold on, with probability `p`.

    Args:
        threshold: The lowest value that is inverted.
        p: The probability.

    Raises:
        TypeError: `threshold` is not a number.
        ValueError: `p` is not from 0 to 1.

    >>> T.functional_apply(T.RandomSolarize(192.0, p=1), np.array([[[191, 192, 255]]], np.uint8)).tolist()
    [[[191]], [[63]], [[0]]]
    """

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        _number(threshold, "threshold")
        self.threshold = threshold

    def _spec(self) -> str:
        threshold = _number(self.threshold, "threshold")
        if math.isnan(threshold):  # no value is less
            threshold = 0.0
        return op("random_solarize", threshold=min(max(threshold, 0.0), 256.0), p=self.p)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(threshold={self.threshold},p={self.p})"


class RandomAdjustSharpness(WithProbability):
    """Sharpen or soften the image with probability `p`.

    Args:
        sharpness_factor: Above 1 sharpens, 1 changes nothing, 0 softens.
        p: The probability.

    Raises:
        TypeError: `sharpness_factor` is not a number.
        ValueError: `sharpness_factor` is beyond a million, or `p` is not from 0 to 1.

    >>> T.RandomAdjustSharpness(2, p=0.3)
    RandomAdjustSharpness(sharpness_factor=2,p=0.3)
    """

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        if not abs(_number(sharpness_factor, "sharpness_factor")) <= _SHARPEST:
            raise ValueError(f"sharpness_factor={sharpness_factor!r} must be from -1e6 to 1e6")
        self.sharpness_factor = sharpness_factor

    def _spec(self) -> str:
        return op("random_adjust_sharpness", sharpness_factor=self.sharpness_factor, p=self.p)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sharpness_factor={self.sharpness_factor},p={self.p})"


class RandomAutocontrast(WithProbability):
    """Spread the values of each channel from 0 to 255, with probability `p`.

    Args:
        p: The probability.

    Raises:
        ValueError: `p` is not from 0 to 1.

    >>> T.functional_apply(T.RandomAutocontrast(p=1), np.array([[[7, 7, 7], [9, 9, 9]]], np.uint8)).tolist()
    [[[0, 255]], [[0, 255]], [[0, 255]]]
    """

    _name = "random_autocontrast"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)


class RandomEqualize(WithProbability):
    """Make the values of each channel about equally frequent, with probability `p`.

    Args:
        p: The probability.

    Raises:
        ValueError: `p` is not from 0 to 1.

    >>> T.RandomEqualize()
    RandomEqualize(p=0.5)
    """

    _name = "random_equalize"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)


class RandomChannelPermutation(Transform):
    """Put the channels into random order.

    >>> T.RandomChannelPermutation()
    RandomChannelPermutation()
    """

    def _spec(self) -> str:
        return op("random_channel_permutation")


class RandomPhotometricDistort(WithProbability):
    """Change brightness, contrast, saturation and hue, and put the channels into random order; each with probability `p`.

    Args:
        brightness: The range of the factor, (min, max).
        contrast: The same for contrast, which changes second or last.
        saturation: The same for saturation.
        hue: The range of the shift, within -0.5 to 0.5.
        p: The probability of each change.

    Raises:
        ValueError: A range is not two numbers, the lower one first, or `p` is not from 0 to 1.

    >>> T.RandomPhotometricDistort(p=0.3)
    RandomPhotometricDistort(brightness=(0.875, 1.125), contrast=(0.5, 1.5), saturation=(0.5, 1.5), hue=(-0.05, 0.05), p=0.3)
    """

    def __init__(
        self,
        brightness: Sequence[float] = (0.875, 1.125),
        contrast: Sequence[float] = (0.5, 1.5),
        saturation: Sequence[float] = (0.5, 1.5),
        hue: Sequence[float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__(p)
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation
        self.hue = hue
        for name, value, least, most in (
            ("brightness", brightness, 0.0, _SHARPEST),
            ("contrast", contrast, 0.0, _SHARPEST),
            ("saturation", saturation, 0.0, _SHARPEST),
            ("hue", hue, -0.5, 0.5),
        ):
            if len(value) != 2 or not least <= value[0] <= value[1] <= most:
                raise ValueError(f"{name}={value!r} is not a range (min, max) within {least:g} to {most:g}")

    def _spec(self) -> str:
        return op(
            "random_photometric_distort",
            brightness=self.brightness,
            contrast=self.contrast,
            saturation=self.saturation,
            hue=self.hue,
            p=self.p,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast}, "
            f"saturation={self.saturation}, hue={self.hue}, p={self.p})"
        )
