# SPDX-License-Identifier: Apache-2.0
"""What the programs of programs.py are made of, as people write it: openings of images and transforms (program_images),
datasets of image files (program_photos), and here other datasets, samplers and collate functions. They know nothing of
Stoker: all of them must give the same bytes with torch's DataLoader and with ours."""

from __future__ import annotations

import functools
import math
import random

import numpy as np
import torch
from program_files import images_of
from program_images import *  # noqa: F403 (the expressions of programs use the names of this module)
from program_photos import *  # noqa: F403
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)
from torchvision import datasets

# ---- datasets ----


class Draws(Dataset):
    """All generators, and what a worker knows of itself."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        info = get_worker_info()
        known = None if info is None else (info.id, info.num_workers, info.seed)
        own = np.random.default_rng(index).integers(9)
        return str((index, known, torch.initial_seed(), random.random(), random.getrandbits(40), np.random.rand(),
                    np.random.randint(1 << 30), torch.rand(()).item(), torch.randn(3).tolist(), int(own),
                    torch.empty((), dtype=torch.int64).random_().item()))  # fmt: skip


class Tokens(Dataset):
    """Texts of different lengths."""

    def __init__(self, count):
        chance = random.Random(count)
        self.texts = [[chance.randrange(1, 99) for _ in range(chance.randint(1, 9))] for _ in range(count)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        kept = [token if random.random() > 0.15 else 0 for token in self.texts[index]]
        return torch.tensor(kept), len(kept)


class Failing(Dataset):
    """Fails at some samples, or at once."""

    def __init__(self, count, at, kind=ValueError):
        self.count = count
        self.at = at
        self.kind = kind

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index in self.at:
            raise self.kind(f"sample {index} is not there")
        return index, torch.rand(2)


class OwnError(Exception):
    def __init__(self, *args):
        super().__init__(*args)


class Stream(IterableDataset):
    """Shards over the workers, with a shuffling buffer and images opened on the way."""

    def __init__(self, folder, opening, transform, buffer=0, share=True):
        super().__init__()
        self.paths = images_of(folder)
        self.opening = opening
        self.transform = transform
        self.buffer = buffer
        self.share = share

    def places(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None or not self.share else (info.id, info.num_workers)
        yield from range(first, len(self.paths), step)

    def __iter__(self):
        kept = []
        for place in self.places():
            kept.append(place)
            if len(kept) > self.buffer:
                yield self.sample(kept.pop(random.randrange(len(kept))))
        random.shuffle(kept)
        for place in kept:
            yield self.sample(place)

    def sample(self, place):
        return self.transform(self.opening(self.paths[place])), place


class StreamWithLength(Stream):
    def __len__(self):
        return len(self.paths)


class FolderWithPaths(datasets.ImageFolder):
    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return image, label, self.samples[index][0].rsplit("/", 1)[-1]


class FolderOfPairs(datasets.ImageFolder):
    def __getitem__(self, index):
        path, label = self.samples[index]
        image = self.loader(path)
        return [self.transform(image), self.transform(image)], label


class Wrapped(Dataset):
    """A transform for a subset, as after random_split."""

    def __init__(self, inner, transform):
        self.inner = inner
        self.transform = transform

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        image, label = self.inner[index]
        return self.transform(image), label


def images_in(folder):
    """A folder as ImageFolder wants it."""
    return str(folder / "images")


def halves(dataset):
    return random_split(dataset, [0.5, 0.5])[0]


def seeded_part(dataset):
    return random_split(dataset, [len(dataset) - 3, 3], generator=torch.Generator().manual_seed(42))[0]


def every_second(dataset):
    return Subset(dataset, list(range(0, len(dataset), 2)))


def tensors(count):
    generator = torch.Generator().manual_seed(count)
    return TensorDataset(torch.randn(count, 3, generator=generator), torch.arange(count))


# ---- samplers ----


class LazySampler(Sampler):
    """Draws each index when it is asked for."""

    def __init__(self, dataset):
        self.count = len(dataset)

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            yield random.randrange(self.count) if random.random() < 0.5 else int(torch.randint(self.count, ()))


class ClassBatches(Sampler):
    """Few-shot batches: some classes, and some samples of each."""

    def __init__(self, dataset, batches=4):
        self.count = len(dataset)
        self.batches = batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            classes = torch.randperm(3)[:2]
            yield [int(c) + 3 * int(n) for c in classes for n in np.random.permutation(self.count // 3)[:2]]


class LengthBatches:
    """Batches of a list, shuffled in each epoch."""

    def __init__(self, dataset):
        self.lists = [list(range(n, min(n + 3, len(dataset)))) for n in range(0, len(dataset), 3)]

    def __len__(self):
        return len(self.lists)

    def __iter__(self):
        random.shuffle(self.lists)
        return iter(self.lists)


# ---- collate functions and worker_init_fn ----


def lists(samples):
    return tuple(zip(*samples, strict=False))


def as_they_are(samples):
    return samples


def without_none(samples):
    return default_collate([sample for sample in samples if sample is not None])


def mixing(samples):
    """Mixup of a batch."""
    images, *rest = default_collate(samples)
    share = np.random.beta(1.0, 1.0)
    order = torch.randperm(len(images))
    return share * images + (1 - share) * images[order], rest, share


def padding(samples):
    return pad_sequence([sample[0] for sample in samples], batch_first=True), [sample[1] for sample in samples]


class ToLargest:
    """Detection's: pads images to the largest of the batch."""

    def __call__(self, samples):
        height = max(sample[0].shape[-2] for sample in samples)
        width = max(sample[0].shape[-1] for sample in samples)
        out = torch.zeros(len(samples), 3, height, width)
        for place, sample in zip(out, samples, strict=True):
            place[:, : sample[0].shape[-2], : sample[0].shape[-1]] = sample[0]
        return out, [sample[1:] for sample in samples]


def seed_numpy(worker):
    np.random.seed(torch.initial_seed() % 2**32)
    random.seed(torch.initial_seed() % 2**32)


def seed_by_number(worker):
    torch.manual_seed(worker)
    random.seed(worker)
    np.random.seed(worker)


def shard_list(worker):
    info = get_worker_info()
    if hasattr(info.dataset, "paths") and isinstance(info.dataset, IterableDataset):
        share = math.ceil(len(info.dataset.paths) / info.num_workers)
        info.dataset.paths = info.dataset.paths[worker * share : (worker + 1) * share]
        info.dataset.share = False


def failing_init(worker):
    raise LookupError(f"no worker {worker}")


NAMES = (functools, BatchSampler, ConcatDataset, DistributedSampler, RandomSampler, SequentialSampler, StackDataset,
         SubsetRandomSampler, WeightedRandomSampler)  # fmt: skip # what expressions of programs use
