# SPDX-License-Identifier: Apache-2.0
"""A dataset, a pipeline with random draws, and comparisons of what loaders give, for several test files."""

from __future__ import annotations

import torch
import torch.utils.data as tud
from stoker import transforms as T

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Squares(tud.Dataset):
    def __len__(self):
        return 50

    def __getitem__(self, index):
        return torch.tensor([index, index * index])


def augmenting():
    return T.Compose(
        [
            T.RandomResizedCrop(24),
            T.RandomHorizontalFlip(),
            T.ColorJitter(0.3, 0.3, 0.3, 0.1),
            T.ToTensor(),
            T.Normalize(MEAN, STD),
            T.RandomErasing(0.5),
        ]
    )


def evaluation(module):
    return module.Compose(
        [module.Resize(40), module.CenterCrop(32), module.ToTensor(), module.Normalize(MEAN, STD)]
    )


def batches(loader):
    return [batch.tolist() for batch in loader]


def collect(loader):
    return [(images.clone(), labels.clone()) for images, labels in loader]


def same(left, right):
    return len(left) == len(right) and all(
        torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in zip(left, right, strict=True)
    )
