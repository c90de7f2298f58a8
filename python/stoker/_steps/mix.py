# SPDX-License-Identifier: Apache-2.0
"""Transforms of whole batches: MixUp, CutMix, and a choice of them.

The engine makes the random draws. The mixing is done here by torch, in place, on the batch's device and in the
consumer's stream. It can only begin when the batch is complete, and takes a few passes over memory: the engine's
threads would not be faster than torch's kernels, and this code serves ordinary memory, pinned memory and GPUs.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import _ext
from .._base.suggest import SuggestsKeywords
from .._base.tables import counted
from .._base.tensors import default_seed, torch_if_installed

_calls = itertools.count()


class DrawKey(NamedTuple):
    """Determines the random draws for a batch: see stoker_mix_draw."""

    seed: int
    epoch: int
    batch: int
    op: int = 0


class Draw(NamedTuple):
    lam: float  # Beta(alpha, alpha)
    choice: float  # in [0, 1), as are x and y, the centre of a box
    x: float
    y: float


def draw(key: DrawKey, alpha: float) -> Draw:
    return Draw(*_ext.mix_draw(*key, alpha))


def _rolled(tensor: Any) -> Any:
    """Return a copy in which each sample is replaced by the one before it. Unlike torch.roll it keeps channels_last."""
    torch = torch_if_installed()
    assert torch is not None
    return torch.cat([tensor[-1:], tensor[:-1]]) if len(tensor) > 1 else tensor.clone()


def _soft_labels(labels: Any, classes: int | None, lam: float) -> Any:
    """Return mixed one-hot rows of float32. Labels that are not a class (-100: a bad sample) become rows of zeros,
    which do not contribute to a loss."""
    torch = torch_if_installed()
    assert torch is not None
    if labels.ndim == 1:
        if classes is None:
            raise ValueError("num_classes must be passed if the labels are index-based (1D)")
        labels = (labels[:, None] == torch.arange(classes, device=labels.device)).float()
    return labels.roll(1, 0).mul_(1.0 - lam).add_(labels.mul(lam))


class BatchTransform(SuggestsKeywords):
    """Base class of transforms that work on whole batches."""

    def _apply(self, images: Any, labels: Any, key: DrawKey) -> tuple[Any, Any]:
        """Change the images in place, and return them with new labels."""
        raise NotImplementedError

    def _for_classes(self, classes: int) -> BatchTransform:
        """Return the same transform for a dataset with this number of classes (0: unknown)."""
        raise NotImplementedError

    def __call__(self, images: Any, labels: Any) -> tuple[Any, Any]:
        """Mix a batch. Random draws differ from call to call.

        Args:
            images: A float tensor, [batch, channels, height, width]; it is not changed.
            labels: An integer tensor, [batch], or a float tensor, [batch, classes].

        Returns:
            New images and labels.
        """
        return self._apply(images.clone(), labels, DrawKey(default_seed(), 0, next(_calls)))


class _Mix(BatchTransform):
    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None) -> None:
        if not 0 < alpha < math.inf:
            raise ValueError(f"alpha={alpha} is not a positive number")
        self.alpha = float(alpha)
        self.num_classes = num_classes

    def _for_classes(self, classes: int) -> BatchTransform:
        if self.num_classes is None and not classes:
            raise ValueError(
                f"{type(self).__name__} needs num_classes: the dataset does not have named classes to count"
            )
        if self.num_classes is not None and self.num_classes < classes:
            raise ValueError(
                f"{type(self).__name__} has num_classes={self.num_classes}, but the dataset has {counted(classes, 'class')}"
            )
        bound = copy.copy(self)
        bound.num_classes = self.num_classes or classes
        return bound

    def __repr__(self) -> str:
        return f"{type(self).__name__}(alpha={self.alpha}, num_classes={self.num_classes})"


class MixUp(_Mix):
    """Mix each image and label of a batch with the one before it, in a proportion drawn per batch from
    Beta(alpha, alpha). For DataLoader(batch_transforms=...).

    For the same proportion the result is that of torchvision's v2. Labels become float32, [batch, num_classes].

    Args:
        alpha: The parameter of the distribution, above 0.
        num_classes: By default the number of classes in the dataset.

    Raises:
        ValueError: `alpha` is not positive, or num_classes is unknown or too small.
        TypeError: The images are integers.

    >>> data = stoker.datasets.ImageFolder("images", T.Compose([T.Resize((8, 8)), T.ToTensor()]))
    >>> loader = stoker.DataLoader(data, batch_size=4, seed=1, batch_transforms=T.MixUp(alpha=0.2))
    >>> images, labels = next(iter(loader))
    >>> tuple(images.shape), tuple(labels.shape)
    ((4, 3, 8, 8), (4, 2))
    """

    def _apply(self, images: Any, labels: Any, key: DrawKey) -> tuple[Any, Any]:
        if not images.is_floating_point():
            raise TypeError("MixUp mixes floats, not bytes: end the transform with ToTensor, or set dtype='float32'")
        lam = draw(key, self.alpha).lam
        other = _rolled(images).mul_(1.0 - lam)
        return images.mul_(lam).add_(other), _soft_labels(labels, self.num_classes, lam)


class CutMix(_Mix):
    """Replace a box of each image of a batch with that of the one before it, and mix the labels by its area, which is
    drawn per batch from Beta(alpha, alpha). For DataLoader(batch_transforms=...).

    For the same box the result is that of torchvision's v2. Labels become float32, [batch, num_classes].

    Args:
        alpha: The parameter of the distribution, above 0.
        num_classes: By default the number of classes in the dataset.

    Raises:
        ValueError: `alpha` is not positive, or num_classes is unknown or too small.

    >>> T.CutMix(num_classes=10)
    CutMix(alpha=1.0, num_classes=10)
    """

    def _apply(self, images: Any, labels: Any, key: DrawKey) -> tuple[Any, Any]:
        height, width = images.shape[-2:]
        drawn = draw(key, self.alpha)
        centre_x, centre_y = int(drawn.x * width), int(drawn.y * height)
        reach = 0.5 * math.sqrt(1.0 - drawn.lam)
        half_width, half_height = int(reach * width), int(reach * height)
        left, right = max(centre_x - half_width, 0), min(centre_x + half_width, width)
        top, bottom = max(centre_y - half_height, 0), min(centre_y + half_height, height)
        box = images[..., top:bottom, left:right]
        box.copy_(_rolled(box))
        lam = float(1.0 - (right - left) * (bottom - top) / (width * height))
        return images, _soft_labels(labels, self.num_classes, lam)


def shares(transforms: Any, p: Sequence[float] | None) -> list[float]:
    """Return the probability of each of several transforms, for weights as torchvision takes them."""
    if not isinstance(transforms, Sequence):
        raise TypeError("Argument transforms should be a sequence of callables")
    if p is None:
        p = [1] * len(transforms)
    elif len(p) != len(transforms):
        raise ValueError(f"Length of p doesn't match the number of transforms: {len(p)} != {len(transforms)}")
    if not transforms or min(p) < 0 or not 0 < sum(p) < math.inf:
        raise ValueError(f"p={p} must be a list of weights, none negative and at least one above 0")
    return [weight / sum(p) for weight in p]


class BatchChoice(BatchTransform):
    """What RandomChoice is for transforms of batches."""

    def __init__(self, transforms: Sequence[Any], p: Sequence[float] | None = None) -> None:
        self.p = shares(transforms, p)
        self.transforms = [compile_batch(t) for t in transforms]
        if any(isinstance(t, BatchChoice) for t in self.transforms):
            raise ValueError("a RandomChoice in a RandomChoice is not supported: use one with all of the transforms")

    def _apply(self, images: Any, labels: Any, key: DrawKey) -> tuple[Any, Any]:
        at = draw(key, 1.0).choice
        for transform, p in zip(self.transforms, self.p, strict=True):
            if at < p:
                break
            at -= p
        return transform._apply(images, labels, key)

    def _for_classes(self, classes: int) -> BatchTransform:
        return BatchChoice([t._for_classes(classes) for t in self.transforms], self.p)

    def __repr__(self) -> str:
        return f"RandomChoice({self.transforms}, p={[round(p, 4) for p in self.p]})"


# How to make one of the transforms above from one of another library than torchvision, by module and name of its class.
batch_converters: dict[tuple[str, str], Callable[[Any], BatchTransform]] = {}


def is_of_batches(transform: Any) -> bool:
    """Return whether it is a transform of batches, of this package, torchvision's or timm's."""
    kind = type(transform)
    if isinstance(transform, BatchTransform) or (kind.__module__, kind.__name__) in batch_converters:
        return True
    if not kind.__module__.startswith("torchvision.transforms"):
        return False
    inner = getattr(transform, "transforms", ()) if kind.__name__ == "RandomChoice" else ()
    return kind.__name__ in ("MixUp", "CutMix") or any(map(is_of_batches, inner))


def compile_batch(transform: Any) -> BatchTransform:
    """Return one of the transforms above, for one of them, of torchvision's v2 or of timm's."""
    kind = type(transform)
    if isinstance(transform, BatchTransform):
        return transform
    convert = batch_converters.get((kind.__module__, kind.__name__))
    if convert is not None:
        return convert(transform)
    if kind.__module__.startswith("torchvision.transforms"):
        if kind.__name__ in ("MixUp", "CutMix"):
            make = MixUp if kind.__name__ == "MixUp" else CutMix
            return make(alpha=transform.alpha, num_classes=transform.num_classes)
        if kind.__name__ == "RandomChoice":
            return BatchChoice(list(transform.transforms), transform.p)
    raise TypeError(
        f"{transform!r} cannot be one of batch_transforms: MixUp, CutMix, timm's Mixup and RandomChoice of them can. Apply "
        "it to the batches that the loader delivers"
    )


def compile_batches(transforms: Any, classes: int) -> list[BatchTransform]:
    """Return the transforms for DataLoader(batch_transforms=...), which may be one, a list, or None."""
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
    """Return a batch after all transforms. `batch` is its number among the batches of all ranks."""
    if isinstance(images, list):
        raise ValueError(
            "batch_transforms mix images of one size, but the sizes in this batch differ: resize or crop the images"
        )
    for op, transform in enumerate(transforms):
        images, labels = transform._apply(images, labels, DrawKey(seed, epoch, batch, op))
    return images, labels
