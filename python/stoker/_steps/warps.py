# SPDX-License-Identifier: Apache-2.0
"""The transforms that move pixels: RandomRotation, RandomAffine, RandomPerspective, ElasticTransform."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from .arguments import InterpolationMode, check_sequence, filter_word, interpolation_mode, op
from .base import Transform


def _angles(value: Any, name: str, lengths: Sequence[int] = (2,)) -> list[float]:
    """Return low and high, or both for two directions."""
    if isinstance(value, numbers.Number):
        if value < 0:  # type: ignore[operator]
            raise ValueError(f"If {name} is a single number, it must be positive.")
        value = [-value, value]  # type: ignore[operator]
    else:
        check_sequence(value, name, lengths)
    return [float(angle) for angle in value]


class Warp(Transform):
    """Base class of transforms that move pixels by a map."""

    def __init__(self, interpolation: Any, fill: Any, mask_fill: int = 0) -> None:
        self.interpolation = interpolation_mode(interpolation)
        if fill is not None and not isinstance(fill, (Sequence, numbers.Number)):
            raise TypeError("Fill should be either a sequence or a number.")
        self.fill = 0 if fill is None else fill
        self.mask_fill = mask_fill

    def _warp_spec(self, name: str, **params: Any) -> str:
        return op(
            name,
            **params,
            interpolation=filter_word(self.interpolation),
            fill=self.fill,
            mask_fill=self.mask_fill or None,
        )


class RandomRotation(Warp):
    """Turn the image by a random angle. The result is equal to Pillow's, byte for byte.

    Args:
        degrees: The range of the angle, counter-clockwise: a number x means from -x to x, a pair is (min, max).
        interpolation: "nearest", "bilinear" or "bicubic", also as an InterpolationMode or Pillow's number.
        expand: Make the result as large as the turned image. Otherwise it has the size of the image.
        center: The point (x, y) that stays where it is, from the upper left corner; None is the middle.
        fill: The value of pixels that come from outside the image: a number, or one for each channel.
        mask_fill: The number that masks have there (stoker.datasets.ImageMaskFolder).

    Raises:
        TypeError, ValueError: As torchvision's RandomRotation.

    >>> T.functional_apply(T.RandomRotation((90, 90), expand=True), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 64, 48)
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Any = InterpolationMode.NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Any = 0,
        *,
        mask_fill: int = 0,
    ) -> None:
        self.degrees = _angles(degrees, "degrees")
        if center is not None:
            check_sequence(center, "center", (2,))
        super().__init__(interpolation, fill, mask_fill)
        self.center = center
        self.expand = expand

    def _spec(self) -> str:
        return self._warp_spec(
            "random_rotation", degrees=self.degrees, expand=bool(self.expand), center=self.center
        )

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        return (
            f"{type(self).__name__}(degrees={self.degrees}, interpolation={self.interpolation.value}, "
            f"expand={self.expand}{center}, fill={self.fill})"
        )


class RandomAffine(Warp):
    """Turn, move, scale and shear the image by random amounts. The middle stays where it is, unless it is moved.

    Args:
        degrees: The range of the angle, clockwise: a number x means from -x to x, a pair is (min, max).
        translate: The largest moves to either side, as fractions of the width and of the height; None does not move.
        scale: The range of the factor, (min, max); None does not scale.
        shear: The range of the angle along x: a number x means from -x to x, a pair is (min, max); with four numbers,
            the last two are the range along y. None does not shear.
        interpolation: As in RandomRotation.
        fill, mask_fill: As in RandomRotation.
        center: As in RandomRotation.

    Raises:
        TypeError, ValueError: As torchvision's RandomAffine.

    >>> T.functional_apply(T.RandomAffine(10, translate=(0.1, 0.1)), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 48, 64)
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = 0,
        center: Sequence[float] | None = None,
        *,
        mask_fill: int = 0,
    ) -> None:
        self.degrees = _angles(degrees, "degrees")
        if translate is not None:
            check_sequence(translate, "translate", (2,))
            if not all(0.0 <= part <= 1.0 for part in translate):
                raise ValueError("translation values should be between 0 and 1")
        if scale is not None:
            check_sequence(scale, "scale", (2,))
            if not all(factor > 0 for factor in scale):
                raise ValueError("scale values should be positive")
        self.shear = None if shear is None else _angles(shear, "shear", (2, 4))
        super().__init__(interpolation, fill, mask_fill)
        if center is not None:
            check_sequence(center, "center", (2,))
        self.translate = translate
        self.scale = scale
        self.center = center

    def _spec(self) -> str:
        return self._warp_spec(
            "random_affine",
            degrees=self.degrees,
            translate=self.translate,
            scale=self.scale,
            shear=self.shear,
            center=self.center,
        )

    def __repr__(self) -> str:
        given = {"translate": self.translate, "scale": self.scale, "shear": self.shear}
        parts = [f"degrees={self.degrees}", *(f"{name}={value}" for name, value in given.items() if value is not None)]
        if self.interpolation is not InterpolationMode.NEAREST:
            parts.append(f"interpolation={self.interpolation.value}")
        if self.fill != 0:
            parts.append(f"fill={self.fill}")
        if self.center is not None:
            parts.append(f"center={self.center}")
        return f"{type(self).__name__}({', '.join(parts)})"


class RandomPerspective(Warp):
    """Move the image's corners inwards by random amounts with probability `p`, as if it were seen from aside.

    Args:
        distortion_scale: How far corners move at most, as a fraction of half of the image, from 0 to 1.
        p: The probability.
        interpolation: As in RandomRotation.
        fill, mask_fill: As in RandomRotation.

    Raises:
        TypeError, ValueError: As torchvision's RandomPerspective; also if `p` is not from 0 to 1.

    >>> T.functional_apply(T.RandomPerspective(p=1), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 48, 64)
    """

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = 0,
        *,
        mask_fill: int = 0,
    ) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"p={p!r} is not a probability: it must be from 0 to 1")
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        super().__init__(interpolation, fill, mask_fill)
        self.distortion_scale = distortion_scale
        self.p = p

    def _spec(self) -> str:
        return self._warp_spec("random_perspective", distortion_scale=self.distortion_scale, p=self.p)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


def _two(value: Any, name: str) -> list[float]:
    """Return the numbers for both directions."""
    if not isinstance(value, (int, float, Sequence)):
        raise TypeError(f"{name} should be a number or a sequence of numbers. Got {type(value)}")
    if not isinstance(value, Sequence):
        return [float(value)] * 2
    if len(value) not in (1, 2):
        raise ValueError(f"If {name} is a sequence its length should be 1 or 2. Got {len(value)}")
    for one in value:
        if not isinstance(one, (int, float)):
            raise ValueError(f"{name} should be a sequence of numbers. Got {type(one)}")
    return [float(value[0]), float(value[-1])]


class ElasticTransform(Warp):
    """Move pixels by random distances that vary smoothly. The result is within one level of torchvision's.

    Args:
        alpha: How strongly: one number, or across and down.
        sigma: How smoothly, likewise: the blur of the noise has a sigma of so many pixels. The image must be larger than
            four times that.
        interpolation: "bilinear" or "nearest", also as an InterpolationMode or Pillow's number.
        fill, mask_fill: As in RandomRotation. Pixels near the border blend into `fill`.

    Raises:
        TypeError, ValueError: As torchvision's ElasticTransform (v2).

    >>> T.functional_apply(T.ElasticTransform(30.0), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 48, 64)
    """

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = 0,
        *,
        mask_fill: int = 0,
    ) -> None:
        self.alpha = _two(alpha, "alpha")
        self.sigma = _two(sigma, "sigma")
        super().__init__(interpolation, fill, mask_fill)

    def _spec(self) -> str:
        return self._warp_spec("elastic_transform", alpha=self.alpha, sigma=self.sigma)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(alpha={self.alpha}, sigma={self.sigma}, "
            f"interpolation={self.interpolation.value}, fill={self.fill})"
        )
