# SPDX-License-Identifier: Apache-2.0
"""The transforms of torchvision that the engine implements, with torchvision's names, arguments and defaults.

A transform is a description. The engine does the work in its threads, and fuses steps where it can:

>>> from stoker import transforms as T
>>> train = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(),
...                    T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
>>> print(T.Resize(256))
Resize(size=256, interpolation=bilinear, max_size=None, antialias=True)

Each transform may also be called with one image, a PIL image or a uint8 array of shape height x width x 3. The result
is such an array again, or, once a transform has made a tensor, a tensor (torch's, if torch is installed) of shape
channels x height x width. Random draws differ from call to call:

>>> import numpy as np
>>> T.Resize((20, 30))(np.zeros((40, 60, 3), np.uint8)).shape
(20, 30, 3)
>>> tuple(T.ToTensor()(np.zeros((40, 60, 3), np.uint8)).shape)
(3, 40, 60)

MixUp, CutMix and RandomChoice of them work on whole batches: pass them as DataLoader(batch_transforms=...), not as a
dataset's transform.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._base.suggest import no_attribute
from ._steps.arguments import (
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
from ._steps.augments import AutoAugment, AutoAugmentPolicy, RandAugment, TrivialAugmentWide
from ._steps.base import Compose, Transform, WithProbability, functional_apply, pipeline_text
from ._steps.boxes import ClampBoundingBoxes, ConvertBoundingBoxFormat, RandomIoUCrop, SanitizeBoundingBoxes
from ._steps.chosen import RandomApply, RandomChoice, RandomOrder
from ._steps.colours import (
    ColorJitter,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
)
from ._steps.mix import CutMix, MixUp
from ._steps.random_sizes import RandomResize, RandomShortestSize, RandomZoomOut, ScaleJitter
from ._steps.tensor_ops import ConvertImageDtype, Normalize, PILToTensor, RandomErasing, ToTensor
from ._steps.warps import ElasticTransform, RandomAffine, RandomPerspective, RandomRotation

__all__ = [
    "AutoAugment",
    "AutoAugmentPolicy",
    "CenterCrop",
    "ClampBoundingBoxes",
    "ColorJitter",
    "Compose",
    "ConvertBoundingBoxFormat",
    "ConvertImageDtype",
    "CutMix",
    "ElasticTransform",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "JPEG",
    "MixUp",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomIoUCrop",
    "RandomOrder",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShortestSize",
    "RandomSolarize",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "SanitizeBoundingBoxes",
    "ScaleJitter",
    "ToTensor",
    "TrivialAugmentWide",
    "functional_apply",
    "pipeline_text",
]

if not TYPE_CHECKING:  # a type checker knows all names

    def __getattr__(name: str) -> Any:
        raise no_attribute(__name__, name, __all__, "torchvision.transforms")


def __dir__() -> list[str]:
    return __all__


class Resize(Transform):
    """Resize the image. The result is equal to Pillow's, byte for byte.

    Args:
        size: An int is the length of the smaller side, a pair is (height, width).
        interpolation: An InterpolationMode (this module's or torchvision's), its name, or Pillow's number.
        max_size: With an int as size: a limit for the larger side, which takes precedence.
        antialias: No effect, as in torchvision for PIL images: Pillow always antialiases.

    Raises:
        TypeError, ValueError: As torchvision's Resize.

    >>> T.functional_apply(T.Resize(24), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 24, 32)
    """

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        if isinstance(size, str) or not isinstance(size, (int, Sequence)):
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
    """Crop the middle of the image. An image that is too small is padded with black.

    Args:
        size: An int for a square, or (height, width).

    >>> T.functional_apply(T.CenterCrop((32, 100)), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 32, 100)
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = pair(size, SIZE_MESSAGE)

    def _spec(self) -> str:
        return op("center_crop", size=list(self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class Pad(Transform):
    """Pad the image.

    Args:
        padding: A number for all sides, (left and right, top and bottom), or (left, top, right, bottom).
        fill: The value of new pixels for "constant": a number, or one for each channel.
        padding_mode: "constant", "edge", "reflect" or "symmetric".
        mask_fill: The number that masks have there (stoker.datasets.ImageMaskFolder).

    Raises:
        TypeError, ValueError: As torchvision's Pad.

    >>> T.functional_apply(T.Pad((1, 2)), np.zeros((48, 64, 3), np.uint8)).shape
    (3, 52, 66)
    """

    def __init__(
        self, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant", *, mask_fill: int = 0
    ) -> None:
        check_padding(padding, fill, padding_mode)
        self.mask_fill = mask_fill
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def _spec(self) -> str:
        return op(
            "pad",
            padding=four_sides(self.padding),
            fill=self.fill,
            padding_mode=self.padding_mode,
            mask_fill=self.mask_fill or None,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, "
            f"padding_mode={self.padding_mode})"
        )


class RandomCrop(Transform):
    """Crop the image at a random position.

    Args:
        size: An int for a square, or (height, width).
        padding: Pad the image first, as in Pad; None does not.
        pad_if_needed: Pad images that are smaller than `size`. Without it they are an error.
        fill: As in Pad.
        padding_mode: As in Pad.
        mask_fill: As in Pad.

    Raises:
        TypeError, ValueError: As torchvision's RandomCrop.

    >>> T.functional_apply(T.RandomCrop(32, padding=4), np.zeros((32, 32, 3), np.uint8), seed=1).shape
    (3, 32, 32)
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
        *,
        mask_fill: int = 0,
    ) -> None:
        check_padding(0 if padding is None else padding, fill, padding_mode)
        self.mask_fill = mask_fill
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
            mask_fill=self.mask_fill or None,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomResizedCrop(Transform):
    """Crop a random part of the image, with random area and aspect ratio, and resize it.

    Args:
        size: The size of the result: an int for a square, or (height, width).
        scale: The range of the part's area, as a fraction of the image's.
        ratio: The range of the part's aspect ratio, width / height.
        interpolation: As in Resize.
        antialias: No effect, as in torchvision for PIL images.

    Raises:
        TypeError, ValueError: As torchvision's RandomResizedCrop.

    >>> T.functional_apply(T.RandomResizedCrop(24), np.zeros((48, 64, 3), np.uint8), seed=1).shape
    (3, 24, 24)
    """

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


class RandomHorizontalFlip(WithProbability):
    """Flip the image left to right with probability `p`.

    Args:
        p: The probability.

    Raises:
        ValueError: `p` is not from 0 to 1.

    >>> T.functional_apply(T.RandomHorizontalFlip(p=1), np.arange(6, dtype=np.uint8).reshape(1, 2, 3)).tolist()
    [[[3, 0]], [[4, 1]], [[5, 2]]]
    """

    _name = "random_horizontal_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)


class RandomVerticalFlip(WithProbability):
    """Flip the image upside down with probability `p`.

    Args:
        p: The probability.

    Raises:
        ValueError: `p` is not from 0 to 1.

    >>> T.functional_apply(T.RandomVerticalFlip(p=1), np.arange(6, dtype=np.uint8).reshape(2, 1, 3)).tolist()
    [[[3], [0]], [[4], [1]], [[5], [2]]]
    """

    _name = "random_vertical_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)


class GaussianBlur(Transform):
    """Blur the image with a Gaussian of random sigma. The result is within one level of torchvision's.

    Args:
        kernel_size: The size of the kernel, odd: an int, or a pair.
        sigma: The range of sigma as (min, max), or a fixed sigma.

    Raises:
        ValueError: As torchvision's GaussianBlur.

    >>> T.GaussianBlur(5, sigma=(0.1, 2.0))
    GaussianBlur(kernel_size=(5, 5), sigma=(0.1, 2.0))
    """

    def __init__(
        self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)
    ) -> None:
        self.kernel_size = pair(kernel_size, "Kernel size should be a tuple/list of two integers.")
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


class JPEG(Transform):
    """Give the image the loss of a JPEG of random quality. The result is what libjpeg-turbo makes of it, byte for byte.

    Args:
        quality: 1 to 100, an int, or the range as (min, max).

    Raises:
        TypeError, ValueError: As torchvision's JPEG.

    >>> T.JPEG((50, 90))
    JPEG(quality=(50, 90))
    """

    def __init__(self, quality: int | Sequence[int]) -> None:
        given = (quality, quality) if isinstance(quality, int) else quality
        if isinstance(quality, bool) or not isinstance(given, Sequence):
            raise TypeError(f"quality={quality!r} is neither an integer nor a pair of them")
        if len(given) != 2 or not all(isinstance(one, int) for one in given) or not 1 <= given[0] <= given[1] <= 100:
            raise ValueError(f"quality={quality!r} is neither from 1 to 100 nor a range (min, max) within these")
        self.quality = (given[0], given[1])

    def _spec(self) -> str:
        return op("jpeg", quality=self.quality)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(quality={self.quality})"
