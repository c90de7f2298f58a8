# SPDX-License-Identifier: Apache-2.0
"""The transforms of torchvision's v2 that give images a random size: RandomResize, RandomShortestSize, ScaleJitter,
RandomZoomOut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arguments import InterpolationMode, check_sequence, filter_word, interpolation_mode, op
from .base import Transform


class _RandomSize(Transform):
    def __init__(self, interpolation: Any, antialias: bool | None) -> None:
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias

    def _resize_spec(self, name: str, **params: Any) -> str:
        return op(name, **params, interpolation=filter_word(self.interpolation))


class RandomResize(_RandomSize):
    """Resize the image so that its shorter side has a random length.

    Args:
        min_size: The least length.
        max_size: The length stays below this.
        interpolation: As in Resize.
        antialias: No effect, as in torchvision for PIL images.

    >>> T.functional_apply(T.RandomResize(24, 25), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 24, 32)
    """

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__(interpolation, antialias)
        self.min_size = min_size
        self.max_size = max_size

    def _spec(self) -> str:
        return self._resize_spec("random_resize", min_size=self.min_size, max_size=self.max_size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(min_size={self.min_size}, max_size={self.max_size})"


class RandomShortestSize(_RandomSize):
    """Resize the image so that its shorter side has one of several lengths.

    Args:
        min_size: The lengths, up to 16, or one.
        max_size: A limit for the longer side, which takes precedence.
        interpolation: As in Resize.
        antialias: No effect, as in torchvision for PIL images.

    >>> T.functional_apply(T.RandomShortestSize([24], max_size=30), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 22, 30)
    """

    def __init__(
        self,
        min_size: int | Sequence[int],
        max_size: int | None = None,
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__(interpolation, antialias)
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size = max_size

    def _spec(self) -> str:
        return self._resize_spec("random_shortest_size", min_size=self.min_size, max_size=self.max_size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(min_size={self.min_size}, max_size={self.max_size})"


class ScaleJitter(_RandomSize):
    """Resize the image by a random factor. With a factor of 1 it fits into a given size.

    Args:
        target_size: That size.
        scale_range: The range of the factor, (min, max).
        interpolation: As in Resize.
        antialias: No effect, as in torchvision for PIL images.

    >>> T.functional_apply(T.ScaleJitter((24, 24), (2.0, 2.0)), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 36, 48)
    """

    def __init__(
        self,
        target_size: Sequence[int],
        scale_range: Sequence[float] = (0.1, 2.0),
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__(interpolation, antialias)
        self.target_size = target_size
        self.scale_range = scale_range

    def _spec(self) -> str:
        return self._resize_spec("scale_jitter", target_size=self.target_size, scale_range=self.scale_range)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(target_size={self.target_size}, scale_range={self.scale_range})"


class RandomZoomOut(Transform):
    """Put the image at a random place of a larger one with probability `p`.

    Args:
        fill: The value of the pixels around it: a number, or one for each channel.
        side_range: How many times as large the new image is, (min, max).
        p: The probability.

    Raises:
        TypeError, ValueError: As torchvision's RandomZoomOut.

    >>> T.functional_apply(T.RandomZoomOut(side_range=(2.0, 2.0), p=1.0), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 96, 128)
    """

    def __init__(self, fill: Any = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        check_sequence(side_range, "side_range", (2,))
        if not 1.0 <= side_range[0] <= side_range[1]:
            raise ValueError(f"Invalid side range provided {side_range}.")
        self.fill = 0 if fill is None else fill
        self.side_range = side_range
        self.p = p

    def _spec(self) -> str:
        return op("random_zoom_out", side_range=self.side_range, p=self.p, fill=self.fill)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p}, fill={self.fill}, side_range={self.side_range})"
