# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation: AutoAugment, RandAugment, TrivialAugmentWide."""

from __future__ import annotations

import enum
from typing import Any

from .arguments import InterpolationMode
from .warps import Warp

_OPS_MOST = 100


class AutoAugmentPolicy(enum.Enum):
    """The datasets that the policies of AutoAugment were learned on."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


def _integer(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r} is not an integer")
    if not least <= value <= most:
        raise ValueError(f"{name}={value} must be from {least} to {most}")
    return value


class AutoAugment(Warp):
    """Change the image by one of 25 pairs of changes, which were learned on a dataset.

    Args:
        policy: The dataset: an AutoAugmentPolicy (this module's or torchvision's) or its value, such as "imagenet".
        interpolation: "nearest", "bilinear" or "bicubic", of rotations, shears and translations.
        fill: The value of pixels that come from outside the image: a number, or one for each channel.

    Raises:
        TypeError, ValueError: An argument has the wrong type, or there is no such policy.

    >>> T.AutoAugment("cifar10")
    AutoAugment(policy=AutoAugmentPolicy.CIFAR10, fill=None)
    """

    def __init__(
        self,
        policy: Any = AutoAugmentPolicy.IMAGENET,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.policy = AutoAugmentPolicy(getattr(policy, "value", policy))
        self._fill = fill

    def _spec(self) -> str:
        return self._warp_spec("auto_augment", policy=self.policy.value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(policy={self.policy}, fill={self._fill})"


class RandAugment(Warp):
    """Change the image by a few changes drawn at random, all of one magnitude.

    Args:
        num_ops: How many changes are made, one after the other.
        magnitude: The magnitude, from 0 to num_magnitude_bins - 1.
        num_magnitude_bins: How many magnitudes there are.
        interpolation: As in AutoAugment.
        fill: As in AutoAugment.

    Raises:
        TypeError, ValueError: An argument has the wrong type, or is out of range.

    >>> T.RandAugment(magnitude=7)
    RandAugment(num_ops=2, magnitude=7, num_magnitude_bins=31, interpolation=InterpolationMode.NEAREST, fill=None)
    """

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_ops = _integer(num_ops, "num_ops", 0, _OPS_MOST)
        self.num_magnitude_bins = _integer(num_magnitude_bins, "num_magnitude_bins", 2, 10**6)
        self.magnitude = _integer(magnitude, "magnitude", 0, num_magnitude_bins - 1)
        self._fill = fill

    def _spec(self) -> str:
        return self._warp_spec(
            "rand_augment",
            num_ops=self.num_ops,
            magnitude=self.magnitude,
            num_magnitude_bins=self.num_magnitude_bins,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_ops={self.num_ops}, magnitude={self.magnitude}, "
            f"num_magnitude_bins={self.num_magnitude_bins}, interpolation={self.interpolation}, fill={self._fill})"
        )


class TrivialAugmentWide(Warp):
    """Change the image by one change and one magnitude, both drawn at random.

    Args:
        num_magnitude_bins: How many magnitudes there are.
        interpolation: As in AutoAugment.
        fill: As in AutoAugment.

    Raises:
        TypeError, ValueError: An argument has the wrong type, or is out of range.

    >>> T.pipeline_text(T.TrivialAugmentWide())
    'trivial_augment_wide(num_magnitude_bins=31, interpolation=nearest, fill=0)'
    """

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = _integer(num_magnitude_bins, "num_magnitude_bins", 2, 10**6)
        self._fill = fill

    def _spec(self) -> str:
        return self._warp_spec("trivial_augment_wide", num_magnitude_bins=self.num_magnitude_bins)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_magnitude_bins={self.num_magnitude_bins}, "
            f"interpolation={self.interpolation}, fill={self._fill})"
        )
