# SPDX-License-Identifier: Apache-2.0
"""Transforms that contain others: with a given probability, one of them, or all in random order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base.suggest import suggests_keywords
from .arguments import op
from .base import Compose, Transform
from .mix import BatchChoice, is_of_batches, shares


class RandomApply(Transform):
    """Apply a list of transforms with probability `p`, all of them or none.

    Args:
        transforms: The transforms to apply.
        p: The probability.

    >>> T.pipeline_text(T.RandomApply([T.ColorJitter(0.4), T.GaussianBlur(3)], p=0.8))
    'random_apply(p=0.8){color_jitter(brightness=[0.6,1.4]); gaussian_blur(kernel_size=[3,3], sigma=[0.1,2.0])}'
    """

    def __init__(self, transforms: Sequence[Any], p: float = 0.5) -> None:
        self.transforms = transforms
        self.p = p

    def _spec(self) -> str:
        return self._around(Compose(self.transforms)._spec())

    def _spec_of_grey(self) -> str:
        return self._around(Compose(self.transforms)._spec_of_grey())

    def _around(self, inner: str) -> str:
        return op("random_apply", p=self.p) + "{" + inner + "}"

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}(", f"p={self.p}", *(str(t) for t in self.transforms)]
        return "\n    ".join(lines) + "\n)"


class Alternatives(Transform):
    """Transforms each of which is one op of the pipeline's text."""

    transforms: Sequence[Any]

    def _around(self, inner: str) -> str:
        raise NotImplementedError

    def _spec(self) -> str:
        return self._around("; ".join(self._one(t, grey=False) for t in self.transforms))

    def _spec_of_grey(self) -> str:
        return self._around("; ".join(self._one(t, grey=True) for t in self.transforms))

    @staticmethod
    def _one(transform: Any, grey: bool) -> str:
        parts = Compose([transform])._parts(grey)
        return parts[0] if len(parts) == 1 else op("random_apply", p=1) + "{" + "; ".join(parts) + "}"


class RandomOrder(Alternatives):
    """Apply a list of transforms in random order.

    Args:
        transforms: The transforms to apply.

    Raises:
        TypeError: `transforms` is not a sequence.

    >>> T.pipeline_text(T.RandomOrder([T.RandomInvert(), T.GaussianBlur(3, 1.0)]))
    'random_order{random_invert(p=0.5); gaussian_blur(kernel_size=[3,3], sigma=[1.0,1.0])}'
    """

    def __init__(self, transforms: Sequence[Any]) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError("Argument transforms should be a sequence")
        self.transforms = transforms

    def _around(self, inner: str) -> str:
        return "random_order{" + inner + "}"

    def __repr__(self) -> str:
        return "\n    ".join([f"{type(self).__name__}(", *(str(t) for t in self.transforms)]) + "\n)"


_WEIGHTS_MOST = 16  # numbers in a list of the pipeline's text


class RandomChoice(Alternatives):
    """Apply one of several transforms, chosen at random for each image; or, of MixUp and CutMix, for each batch.

    Args:
        transforms: Transforms of images; or MixUp and CutMix, of this module or torchvision's v2.
        p: A weight for each; by default all are equally likely.

    Raises:
        TypeError: `transforms` is not a sequence, or has transforms of images and of batches.
        ValueError: There are more or fewer weights than transforms, or they are negative or all 0.

    >>> T.pipeline_text(T.RandomChoice([T.RandomCrop(24), T.Resize((24, 24))], p=[3, 1]))
    'random_choice(p=[0.75,0.25]){random_crop(size=[24,24], pad_if_needed=false, fill=0, padding_mode=constant); \
resize(size=[24,24], interpolation=bilinear)}'
    >>> T.RandomChoice([T.CutMix(), T.MixUp(alpha=0.2)], p=[0.7, 0.3])
    RandomChoice([CutMix(alpha=1.0, num_classes=None), MixUp(alpha=0.2, num_classes=None)], p=[0.7, 0.3])
    """

    @suggests_keywords
    def __new__(cls, transforms: Sequence[Any], p: Sequence[float] | None = None) -> Any:
        if isinstance(transforms, Sequence) and any(map(is_of_batches, transforms)):
            return BatchChoice(transforms, p)
        return super().__new__(cls)

    def __init__(self, transforms: Sequence[Any], p: Sequence[float] | None = None) -> None:
        weights = shares(transforms, p)
        self.transforms = transforms
        self.p = weights if len(set(weights)) > 1 else None

    def _around(self, inner: str) -> str:
        if self.p is not None and len(self.p) > _WEIGHTS_MOST:
            raise NotImplementedError(f"{self!r} cannot be compiled: p may have {_WEIGHTS_MOST} weights at most")
        return op("random_choice", p=self.p) + "{" + inner + "}"

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}(", *(str(t) for t in self.transforms)]
        return "\n    ".join(lines) + f"\n)(p={self.p})"
