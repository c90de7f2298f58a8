# SPDX-License-Identifier: Apache-2.0
"""The transforms that make tensors or work on them: ToTensor, PILToTensor, ConvertImageDtype, Normalize, RandomErasing."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from .._base.tensors import dtype_name
from .arguments import check_ranges, op
from .base import Transform


class ToTensor(Transform):
    """Convert the image to a float32 tensor in [0, 1], channels first.

    >>> image = np.full((2, 2, 3), 255, np.uint8)
    >>> float(T.functional_apply(T.ToTensor(), image).max())
    1.0
    """

    _makes_tensor = True

    def _spec(self) -> str:
        return "to_tensor"


class PILToTensor(Transform):
    """Convert the image to a uint8 tensor, channels first.

    >>> T.functional_apply(T.PILToTensor(), np.zeros((48, 64, 3), np.uint8)).dtype
    dtype('uint8')
    """

    _makes_tensor = True

    def _spec(self) -> str:
        return "pil_to_tensor"


class ConvertImageDtype(Transform):
    """Convert a tensor to another type. uint8 becomes floats in [0, 1]. It must come after ToTensor or PILToTensor.

    Args:
        dtype: "uint8", "float32", "float16" or "bfloat16", also as torch's or NumPy's type.

    Raises:
        ValueError: Another type.

    >>> half = T.Compose([T.PILToTensor(), T.ConvertImageDtype("float16")])
    >>> T.functional_apply(half, np.zeros((48, 64, 3), np.uint8)).dtype
    dtype('float16')
    """

    _makes_tensor = _wants_tensor = True

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        dtype_name(dtype)

    def _spec(self) -> str:
        return op("convert_image_dtype", dtype=dtype_name(self.dtype))


class Normalize(Transform):
    """Compute (value - mean) / std for each channel. It must come after ToTensor or ConvertImageDtype.

    Args:
        mean: A number for each channel.
        std: A number for each channel.
        inplace: No effect.

    >>> floats = T.Compose([T.ToTensor(), T.Normalize([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])])
    >>> float(T.functional_apply(floats, np.zeros((48, 64, 3), np.uint8)).min())
    -1.0
    """

    _makes_tensor = _wants_tensor = True

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def _spec(self) -> str:
        return op("normalize", mean=self.mean, std=self.std)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class RandomErasing(Transform):
    """Overwrite a random rectangle with probability `p`. It must come after ToTensor.

    Args:
        p: The probability.
        scale: The range of the rectangle's area, as a fraction of the image's.
        ratio: The range of the rectangle's aspect ratio.
        value: What to write: a number, one for each channel, "random" for noise, or "random_color" for one random number
            for each channel.
        inplace: No effect.

    Raises:
        TypeError, ValueError: As torchvision's RandomErasing.

    >>> T.RandomErasing(p=0.25)
    RandomErasing(p=0.25, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False)
    """

    _makes_tensor = _wants_tensor = True

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
    ) -> None:
        if not isinstance(value, (numbers.Number, str, tuple, list)):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value not in ("random", "random_color"):
            raise ValueError("If value is str, it should be 'random'")  # torchvision's words
        check_ranges(scale, ratio)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if p < 0 or p > 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.p = p
        self.scale = scale
        self.ratio = ratio
        self.value = value
        self.inplace = inplace

    def _spec(self) -> str:
        return op("random_erasing", p=self.p, scale=self.scale, ratio=self.ratio, value=self.value)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(p={self.p}, scale={self.scale}, ratio={self.ratio}, "
            f"value={self.value}, inplace={self.inplace})"
        )
