# SPDX-License-Identifier: Apache-2.0
"""Transforms of whole batches: MixUp, CutMix, and a choice of them.

The engine draws the chances; the mixing is done here by torch, in the memory of the batch and on
whatever device it lies, in the stream that the consumer's own work goes into. It can only begin when
the batch is complete, and it is a few passes over memory: threads of the engine would have nothing to
gain over torch's kernels, and one place serves ordinary memory, pinned memory and GPUs alike.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _ext
from ._convert import default_seed, torch_if_installed

_calls = itertools.count()


class Chance(NamedTuple):
    """Which draws a batch gets: see stoker_mix_draw."""

    seed: int
    epoch: int
    batch: int
    op: int = 0


class Draw(NamedTuple):
    lam: float  # Beta(alpha, alpha)
    choice: float  # in [0, 1), as the centre of a box
    x: float
    y: float


def _draw(chance: Chance, alpha: float) -> Draw:
    return Draw(*_ext.mix_draw(*chance, alpha))


def _rolled(tensor: Any) -> Any:
    """A copy in which each sample is the one before it; unlike torch.roll it keeps channels_last."""
    torch = torch_if_installed()
    assert torch is not None
    return torch.cat([tensor[-1:], tensor[:-1]]) if len(tensor) > 1 else tensor.clone()


def _soft_labels(labels: Any, classes: int | None, lam: float) -> Any:
    """One-hot rows of float32, mixed. Labels that are no class (-100: a bad sample) have an empty row,
    which a loss does not see."""
    torch = torch_if_installed()
    assert torch is not None
    if labels.ndim == 1:
        if classes is None:
            raise ValueError("num_classes must be passed if the labels are index-based (1D)")
        labels = (labels[:, None] == torch.arange(classes, device=labels.device)).float()
    return labels.roll(1, 0).mul_(1.0 - lam).add_(labels.mul(lam))


class BatchTransform:
    """What all transforms of whole batches have in common."""

    def _apply(self, images: Any, labels: Any, chance: Chance) -> tuple[Any, Any]:
        """Changes the images in place; the labels are new."""
        raise NotImplementedError

    def _for_classes(self, classes: int) -> BatchTransform:
        """The same for a data set of so many classes (0: it does not say)."""
        raise NotImplementedError

    def __call__(self, images: Any, labels: Any) -> tuple[Any, Any]:
        """A batch of tensors, mixed; what comes in stays as it is. Chance differs from call to call."""
        return self._apply(images.clone(), labels, Chance(default_seed(), 0, next(_calls)))


class _Mix(BatchTransform):
    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None) -> None:
        if not 0 < alpha < math.inf:
            raise ValueError(f"alpha={alpha} should be positive")
        self.alpha = float(alpha)
        self.num_classes = num_classes

    def _for_classes(self, classes: int) -> BatchTransform:
        if self.num_classes is None and not classes:
            raise ValueError(
                f"{type(self).__name__} needs num_classes: the data set does not say how many it has"
            )
        if self.num_classes is not None and self.num_classes < classes:
            raise ValueError(
                f"{type(self).__name__} has num_classes={self.num_classes}; the data set has {classes}"
            )
        bound = copy.copy(self)
        bound.num_classes = self.num_classes or classes
        return bound

    def __repr__(self) -> str:
        return f"{type(self).__name__}(alpha={self.alpha}, num_classes={self.num_classes})"


class MixUp(_Mix):
    """Each image and label of a batch mixed with the one before it, in a proportion drawn for each
    batch from Beta(alpha, alpha). For DataLoader(batch_transforms=...). What comes out is torchvision's
    (v2) for the same proportion: labels are float32, [batch, num_classes]. num_classes is by default
    the data set's.

    >>> data = stoker.datasets.ImageFolder("images", T.Compose([T.Resize((8, 8)), T.ToTensor()]))
    >>> loader = stoker.DataLoader(data, batch_size=4, seed=1, batch_transforms=T.MixUp(alpha=0.2))
    >>> images, labels = next(iter(loader))
    >>> tuple(images.shape), tuple(labels.shape)
    ((4, 3, 8, 8), (4, 2))
    """

    def _apply(self, images: Any, labels: Any, chance: Chance) -> tuple[Any, Any]:
        if not images.is_floating_point():
            raise TypeError("MixUp mixes floats, not bytes: end in ToTensor, or give dtype='float32'")
        lam = _draw(chance, self.alpha).lam
        other = _rolled(images).mul_(1.0 - lam)
        return images.mul_(lam).add_(other), _soft_labels(labels, self.num_classes, lam)


class CutMix(_Mix):
    """A box of each image of a batch taken from the one before it, and the labels mixed by its area,
    which is drawn for each batch from Beta(alpha, alpha). As MixUp in all else."""

    def _apply(self, images: Any, labels: Any, chance: Chance) -> tuple[Any, Any]:
        height, width = images.shape[-2:]
        drawn = _draw(chance, self.alpha)
        centre_x, centre_y = int(drawn.x * width), int(drawn.y * height)
        reach = 0.5 * math.sqrt(1.0 - drawn.lam)
        half_width, half_height = int(reach * width), int(reach * height)
        left, right = max(centre_x - half_width, 0), min(centre_x + half_width, width)
        top, bottom = max(centre_y - half_height, 0), min(centre_y + half_height, height)
        box = images[..., top:bottom, left:right]
        box.copy_(_rolled(box))
        lam = float(1.0 - (right - left) * (bottom - top) / (width * height))
        return images, _soft_labels(labels, self.num_classes, lam)


class RandomChoice(BatchTransform):
    """One of several transforms of batches, drawn for each batch in proportion to p (default: all
    alike).

    >>> T.RandomChoice([T.CutMix(), T.MixUp(alpha=0.2)], p=[0.7, 0.3])
    RandomChoice([CutMix(alpha=1.0, num_classes=None), MixUp(alpha=0.2, num_classes=None)], p=[0.7, 0.3])
    """

    def __init__(self, transforms: Sequence[Any], p: Sequence[float] | None = None) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError("Argument transforms should be a sequence of callables")
        if p is None:
            p = [1] * len(transforms)
        elif len(p) != len(transforms):
            raise ValueError(
                f"Length of p doesn't match the number of transforms: {len(p)} != {len(transforms)}"
            )
        if not transforms or min(p) < 0 or not 0 < sum(p) < math.inf:
            raise ValueError(f"p={p} should be chances of which one is above 0")
        self.transforms = [compile_batch(t) for t in transforms]
        if any(isinstance(t, RandomChoice) for t in self.transforms):
            raise ValueError("a RandomChoice in a RandomChoice: give one with all of them")
        self.p = [chance / sum(p) for chance in p]

    def _apply(self, images: Any, labels: Any, chance: Chance) -> tuple[Any, Any]:
        at = _draw(chance, 1.0).choice
        for transform, p in zip(self.transforms, self.p, strict=True):
            if at < p:
                break
            at -= p
        return transform._apply(images, labels, chance)

    def _for_classes(self, classes: int) -> BatchTransform:
        return RandomChoice([t._for_classes(classes) for t in self.transforms], self.p)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.transforms}, p={[round(p, 4) for p in self.p]})"


def compile_batch(transform: Any) -> BatchTransform:
    """A transform of batches, from one of these or of torchvision's v2."""
    kind = type(transform)
    if isinstance(transform, BatchTransform):
        return transform
    if kind.__module__.startswith("torchvision.transforms"):
        if kind.__name__ in ("MixUp", "CutMix"):
            make = MixUp if kind.__name__ == "MixUp" else CutMix
            return make(alpha=transform.alpha, num_classes=transform.num_classes)
        if kind.__name__ == "RandomChoice":
            return RandomChoice(list(transform.transforms), transform.p)
    raise TypeError(
        f"{transform!r} is no transform of batches that is known here: MixUp, CutMix and RandomChoice of "
        "them are. Apply it to the batches that come out of the loader"
    )


def compile_batches(transforms: Any, classes: int) -> list[BatchTransform]:
    """What DataLoader(batch_transforms=...) asks for: one transform, several, or None."""
    if transforms is None:
        return []
    if not isinstance(transforms, (list, tuple)):
        transforms = [transforms]
    if transforms and torch_if_installed() is None:
        raise ModuleNotFoundError("batch_transforms needs torch, which is not installed")
    return [compile_batch(t)._for_classes(classes) for t in transforms]


def mix(
    transforms: list[BatchTransform], images: Any, labels: Any, seed: int, epoch: int, batch: int
) -> tuple[Any, Any]:
    """A batch after all transforms. `batch` is its place among those of all ranks."""
    if isinstance(images, list):
        raise ValueError(
            "batch_transforms mix images of one size, and these differ: resize or crop them"
        )
    for op, transform in enumerate(transforms):
        images, labels = transform._apply(images, labels, Chance(seed, epoch, batch, op))
    return images, labels
