# SPDX-License-Identifier: Apache-2.0
"""The transforms of torchvision that the engine has, with torchvision's names, arguments and defaults.

A transform only describes what is to be done; the engine does it, in its threads, fused where it can:

>>> from stoker import transforms as T
>>> train = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(),
...                    T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
>>> print(T.Resize(256))
Resize(size=256, interpolation=bilinear, max_size=None, antialias=True)

Each may also be called with one image, a PIL image or a height x width x 3 array of uint8. As long as no
transform made a tensor of it, the answer is such an array again; afterwards it is a tensor (torch's, if
torch is installed) of channels x height x width. What is drawn differs from call to call:

>>> import numpy as np
>>> T.Resize((20, 30))(np.zeros((40, 60, 3), np.uint8)).shape
(20, 30, 3)
>>> tuple(T.ToTensor()(np.zeros((40, 60, 3), np.uint8)).shape)
(3, 40, 60)

MixUp, CutMix and RandomChoice of them work on whole batches: they are no part of a data set's transform
but of DataLoader(batch_transforms=...).
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from ._arguments import (
    SIZE_MESSAGE,
    InterpolationMode,
    check_padding,
    check_ranges,
    filter_word,
    four_sides,
    interpolation_mode,
    op,
    pair,
)
from ._convert import dtype_name
from ._mix import CutMix, MixUp, RandomChoice
from ._steps import Compose, RandomApply, Transform, functional_apply, pipeline_text

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "CutMix",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "MixUp",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToTensor",
    "functional_apply",
    "pipeline_text",
]


class Resize(Transform):
    """To `size`: an int is the length of the smaller side, a pair is (height, width). The result is what
    Pillow gives, byte for byte; that always smooths (antialias has no effect, as in torchvision)."""

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        if not isinstance(size, (int, Sequence)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        if max_size is not None:
            if isinstance(size, Sequence) and len(size) == 2:
                raise ValueError(
                    "max_size should only be passed if size specifies the length of the smaller "
                    "edge, i.e. size should be an int or a sequence of length 1"
                )
            smaller = size[0] if isinstance(size, Sequence) else size
            if max_size <= smaller:
                raise ValueError(
                    f"max_size = {max_size} must be strictly greater than the requested size for "
                    f"the smaller edge size = {smaller}"
                )
        self.size = size
        self.max_size = max_size
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias

    def _spec(self) -> str:
        return op(
            "resize",
            size=self.size,
            max_size=self.max_size,
            interpolation=filter_word(self.interpolation),
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, interpolation={self.interpolation.value}, "
            f"max_size={self.max_size}, antialias={self.antialias})"
        )


class CenterCrop(Transform):
    """The middle of the image, padded with black where it is too small."""

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = pair(size, SIZE_MESSAGE)

    def _spec(self) -> str:
        return op("center_crop", size=list(self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class Pad(Transform):
    """Wider on all sides. `padding` is one number, (sides, top and bottom), or (left, top, right,
    bottom)."""

    def __init__(
        self, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant"
    ) -> None:
        check_padding(padding, fill, padding_mode)
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def _spec(self) -> str:
        return op(
            "pad", padding=four_sides(self.padding), fill=self.fill, padding_mode=self.padding_mode
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, "
            f"padding_mode={self.padding_mode})"
        )


class RandomCrop(Transform):
    """A piece of the given size from anywhere, after padding if asked."""

    def __init__(
        self,
        size: int | Sequence[int],
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        check_padding(0 if padding is None else padding, fill, padding_mode)
        self.size = tuple(pair(size, SIZE_MESSAGE))
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    def _spec(self) -> str:
        return op(
            "random_crop",
            size=list(self.size),
            padding=four_sides(self.padding),
            pad_if_needed=bool(self.pad_if_needed),
            fill=self.fill,
            padding_mode=self.padding_mode,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomResizedCrop(Transform):
    """A piece of random area and shape, resized: the usual augmentation for training."""

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        self.size = pair(size, SIZE_MESSAGE)
        check_ranges(scale, ratio)
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias
        self.scale = scale
        self.ratio = ratio

    def _spec(self) -> str:
        return op(
            "random_resized_crop",
            size=list(self.size),
            scale=self.scale,
            ratio=self.ratio,
            interpolation=filter_word(self.interpolation),
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, scale={tuple(round(s, 4) for s in self.scale)}, "
            f"ratio={tuple(round(r, 4) for r in self.ratio)}, "
            f"interpolation={self.interpolation.value}, antialias={self.antialias})"
        )


class _WithChance(Transform):
    _name = ""

    def __init__(self, p: float) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"p={p} is no probability")
        self.p = p

    def _spec(self) -> str:
        return op(self._name, p=self.p)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomHorizontalFlip(_WithChance):
    """Mirrored left to right, with probability p."""

    _name = "random_horizontal_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)


class RandomVerticalFlip(_WithChance):
    """Turned upside down, with probability p."""

    _name = "random_vertical_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)


class RandomGrayscale(_WithChance):
    """All colour taken out, with probability p."""

    _name = "random_grayscale"

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)


class Grayscale(Transform):
    """All colour taken out; one channel, or three alike."""

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            raise ValueError("num_output_channels should be either 1 or 3")
        self.num_output_channels = num_output_channels

    def _spec(self) -> str:
        return op("grayscale", num_output_channels=self.num_output_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue, each by a random factor, in random order."""

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


class GaussianBlur(Transform):
    """Blurred by a Gaussian of random sigma; within one level of torchvision's."""

    def __init__(
        self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)
    ) -> None:
        self.kernel_size = pair(kernel_size, "Kernel size should be a tuple/list of two integers")
        if any(size <= 0 or size % 2 == 0 for size in self.kernel_size):
            raise ValueError("Kernel size value should be an odd and positive number.")
        if isinstance(sigma, numbers.Number):
            if sigma <= 0:  # type: ignore[operator]
                raise ValueError("If sigma is a single number, it must be positive.")
            sigma = (sigma, sigma)  # type: ignore[assignment]
        elif isinstance(sigma, Sequence) and len(sigma) == 2:
            if not 0.0 < sigma[0] <= sigma[1]:
                raise ValueError("sigma values should be positive and of the form (min, max).")
        else:
            raise ValueError("sigma should be a single number or a list/tuple with length 2.")
        self.sigma = sigma

    def _spec(self) -> str:
        return op("gaussian_blur", kernel_size=list(self.kernel_size), sigma=self.sigma)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kernel_size={self.kernel_size}, sigma={self.sigma})"


class ToTensor(Transform):
    """From bytes to float32 in [0, 1], channels first."""

    _makes_tensor = True

    def _spec(self) -> str:
        return "to_tensor"


class PILToTensor(Transform):
    """Channels first, still uint8."""

    _makes_tensor = True

    def _spec(self) -> str:
        return "pil_to_tensor"


class ConvertImageDtype(Transform):
    """To another type; from uint8 to floats in [0, 1]. Comes after ToTensor or PILToTensor."""

    _makes_tensor = _wants_tensor = True

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        dtype_name(dtype)

    def _spec(self) -> str:
        return op("convert_image_dtype", dtype=dtype_name(self.dtype))


class Normalize(Transform):
    """(value - mean) / std for each channel. Comes after ToTensor or ConvertImageDtype."""

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
    """A rectangle overwritten, with probability p. Comes after ToTensor."""

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
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
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
