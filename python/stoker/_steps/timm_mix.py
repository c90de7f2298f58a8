# SPDX-License-Identifier: Apache-2.0
"""timm's Mixup as a transform of batches: its arithmetic in its order, with draws that follow from the batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base.tables import counted
from .._base.tensors import torch_if_installed
from .mix import BatchTransform, Draw, DrawKey, draw

_DRAW_SHIFT = 40  # a batch has several draws; their numbers are above that of the batch

Box = tuple[int, int, int, int]  # top, bottom, left, right


class Draws:
    """What timm draws from NumPy for a batch."""

    def __init__(self, key: DrawKey) -> None:
        self._key = key
        self._count = 0

    def _next(self, alpha: float = 1.0) -> Draw:
        number = self._key.batch + (self._count << _DRAW_SHIFT)
        self._count += 1
        return draw(self._key._replace(batch=number), alpha)

    def share(self) -> float:
        """At least 0, below 1."""
        return self._next().choice

    def beta(self, alpha: float) -> float:
        return self._next(alpha).lam

    def below(self, low: int, high: int) -> int:
        """An integer, at least `low`, below `high`."""
        if low >= high:
            raise ValueError("low >= high")  # as NumPy says
        return low + int(self._next().choice * (high - low))


class TimmMixup(BatchTransform):
    """One of timm's Mixup objects. Its attributes are looked up for each batch: scripts set `mixup_enabled`."""

    def __init__(self, mixup: Any) -> None:
        self._mixup = mixup

    def _for_classes(self, classes: int) -> TimmMixup:
        if self._mixup.num_classes < classes:
            raise ValueError(
                f"Mixup has num_classes={self._mixup.num_classes}, but the dataset has {counted(classes, 'class')}"
            )
        return self

    def _apply(self, images: Any, labels: Any, key: DrawKey) -> tuple[Any, Any]:
        return self._mixed(images, labels, Draws(key))

    def _mixed(self, images: Any, labels: Any, draws: Draws) -> tuple[Any, Any]:
        if len(images) % 2:
            raise ValueError(
                f"timm's Mixup mixes an even number of images, but this batch has {len(images)}: use an even batch_size, "
                "and drop_last=True if the last batch may be odd"
            )
        if self._mixup.mode == "elem":
            lam = self._mix_each(images, draws, len(images))
        elif self._mixup.mode == "pair":
            lam = self._mix_each(images, draws, len(images) // 2)
        else:
            lam = self._mix_batch(images, draws)
        return images, self._labels(labels, lam)

    # ---- what is drawn ----

    def _alphas(self) -> tuple[float, float]:
        of = self._mixup
        if not (of.mixup_alpha > 0 or of.cutmix_alpha > 0):
            raise ValueError("timm's Mixup needs mixup_alpha or cutmix_alpha above 0, or cutmix_minmax")
        return of.mixup_alpha, of.cutmix_alpha

    def _for_batch(self, draws: Draws) -> tuple[float, bool]:
        """Return the share of each image that stays, and whether a box is cut from the others."""
        if not self._mixup.mixup_enabled or not draws.share() < self._mixup.mix_prob:
            return 1.0, False
        mixup, cutmix = self._alphas()
        cuts = cutmix > 0 and (not mixup > 0 or draws.share() < self._mixup.switch_prob)
        return draws.beta(cutmix if cuts else mixup), cuts

    def _for_each(self, draws: Draws, count: int) -> tuple[np.ndarray, list[bool]]:
        shares = np.ones(count, np.float32)
        if not self._mixup.mixup_enabled:
            return shares, [False] * count
        mixup, cutmix = self._alphas()
        both = mixup > 0 and cutmix > 0
        cuts = [draws.share() < self._mixup.switch_prob if both else not mixup > 0 for _ in range(count)]
        cut = [draws.beta(cutmix) for _ in range(count)] if cutmix > 0 else []
        mixed = [draws.beta(mixup) for _ in range(count)] if mixup > 0 else []
        for k in range(count):
            if draws.share() < self._mixup.mix_prob:
                shares[k] = cut[k] if cuts[k] else mixed[k]
        return shares, cuts

    def _box(self, images: Any, lam: Any, draws: Draws) -> tuple[Box, Any]:
        """Return the box that is cut, and the share that stays."""
        height, width = images.shape[-2:]
        bounds = self._mixup.cutmix_minmax
        if bounds is not None:
            high = draws.below(int(height * bounds[0]), int(height * bounds[1]))
            wide = draws.below(int(width * bounds[0]), int(width * bounds[1]))
            top, left = draws.below(0, height - high + 1), draws.below(0, width - wide + 1)
            box = top, top + high, left, left + wide
        else:
            side = math.sqrt(1 - lam) if isinstance(lam, float) else np.sqrt(1 - lam)
            high, wide = int(height * side), int(width * side)
            y, x = draws.below(0, height), draws.below(0, width)
            box = (
                max(y - high // 2, 0), min(y + (high + 1) // 2, height),
                max(x - wide // 2, 0), min(x + (wide + 1) // 2, width),
            )  # fmt: skip
        if self._mixup.correct_lam or bounds is not None:
            lam = 1.0 - (box[1] - box[0]) * (box[3] - box[2]) / float(height * width)
        return box, lam

    # ---- what is mixed ----

    def _mix_batch(self, images: Any, draws: Draws) -> float:
        lam, cuts = self._for_batch(draws)
        if lam == 1.0:
            return 1.0
        if cuts:
            (top, bottom, left, right), lam = self._box(images, lam, draws)
            images[:, :, top:bottom, left:right] = images.flip(0)[:, :, top:bottom, left:right]
        else:
            _check_floats(images)
            others = images.flip(0).mul_(1.0 - lam)
            images.mul_(lam).add_(others)
        return lam

    def _mix_each(self, images: Any, draws: Draws, count: int) -> Any:
        """Mix the first `count` images with those opposite; if that is a half of them, also the other way round."""
        torch: Any = torch_if_installed()
        pairs = count < len(images)
        shares, cuts = self._for_each(draws, count)
        before = images.clone()
        for k in range(count):
            lam, there = shares[k], len(images) - 1 - k
            if lam == 1.0:
                continue
            both = [(k, there), (there, k)] if pairs else [(k, there)]
            if cuts[k]:
                (top, bottom, left, right), shares[k] = self._box(images[k], lam, draws)
                for one, other in both:
                    images[one][:, top:bottom, left:right] = before[other][:, top:bottom, left:right]
            else:
                _check_floats(images)
                for one, other in both:
                    images[one] = images[one] * lam + before[other] * (1 - lam)
        if pairs:
            shares = np.concatenate((shares, shares[::-1]))
        return torch.tensor(shares, device=images.device, dtype=images.dtype).unsqueeze(1)

    def _labels(self, labels: Any, lam: Any) -> Any:
        """Labels that are not a class (-100: a bad sample) become rows of zeros, which do not contribute to a loss."""
        torch: Any = torch_if_installed()
        smoothing, classes = self._mixup.label_smoothing, self._mixup.num_classes
        if self._mixup.multi_label:
            if labels.ndim != 2 or labels.shape[1] != classes:
                raise ValueError("Multi-label mixup expects dense targets shaped (batch, num_classes).")
            mine = labels.float() * (1.0 - smoothing) + 0.5 * smoothing
        else:
            column = labels.long().view(-1, 1)
            off = smoothing / classes
            mine = torch.full((len(column), classes), off, device=labels.device)
            mine.masked_fill_(column == torch.arange(classes, device=labels.device), 1.0 - smoothing + off)
            mine.masked_fill_((column < 0) | (column >= classes), 0.0)
        return mine * lam + mine.flip(0) * (1.0 - lam)

    def __repr__(self) -> str:
        of = self._mixup
        return f"Mixup(mixup_alpha={of.mixup_alpha}, cutmix_alpha={of.cutmix_alpha}, mode={of.mode!r})"


def _check_floats(images: Any) -> None:
    if not images.is_floating_point():
        raise TypeError("Mixup mixes floats, not bytes: end the transform with MaybeToTensor, or set dtype='float32'")
