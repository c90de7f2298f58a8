# SPDX-License-Identifier: Apache-2.0
"""One and the same code with torch's DataLoader and with ours: what comes out, what is raised and warned of."""

from __future__ import annotations

import collections
import dataclasses
import random
import re
import traceback
import warnings

import numpy as np
import stoker
import torch
import torch.utils.data as tud


def plain(value):
    """A value as one that == compares: with the types of all that it holds."""
    if isinstance(value, torch.Tensor):
        stride = value.stride() if value.layout is torch.strided else value.layout
        return type(value), value.dtype, tuple(value.shape), stride, value.requires_grad, value.to_dense().tolist()
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype, value.shape, value.tolist()
    if isinstance(value, dict):
        return type(value), [(key, plain(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value), [plain(one) for one in value]
    if dataclasses.is_dataclass(value):
        return type(value), plain(vars(value))
    return value


def said(error):
    """What an exception says, without the frames of either loader in tracebacks that came from workers."""
    text = re.sub(r"0x[0-9a-f]+", "0x", str(error))
    text = re.sub(r'  File "[^"]*/(torch|stoker)/[^"]*", line.*\n(    .*\n)*', "", text)
    return re.sub(r"pid(\(s\))? \d+", "pid", text)


def outcome(do, kind):
    """What `do(DataLoader)` returns or raises, what it warns of, and where it leaves torch's generator."""
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            value = "returned", plain(do(kind))
        except Exception as error:
            value = "raised", type(error), said(error)
            traceback.clear_frames(error.__traceback__)
    told = [(one.category, said(one.message)) for one in heard if not _is_by_chance(str(one.message))]
    return value, told, torch.get_rng_state().tolist()


def _is_by_chance(warning):
    """What torch warns of once in a process, whoever comes first; and what Python says of fork and threads."""
    return "(Triggered internally" in warning or "fork()" in warning


def check(do):
    """Ours does as torch's."""
    theirs = outcome(do, tud.DataLoader)
    ours = outcome(do, stoker.DataLoader)
    assert ours[0] == theirs[0], f"ours: {ours[0]!s:.3000}\ntorch's: {theirs[0]!s:.3000}"
    assert ours[1] == theirs[1], f"warnings of ours: {ours[1]}\nof torch's: {theirs[1]}"
    assert ours[2] == theirs[2], "torch's generator stands elsewhere"
    return theirs[0]


# ---- datasets and helpers of several test files ----


class Numbers(tud.Dataset):
    """Runs in Python."""

    def __init__(self, count=11):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.tensor([index, index * index]), index


class Stream(tud.IterableDataset):
    def __init__(self, count=11, claimed=None):
        self.count = count
        self.claimed = claimed

    def __iter__(self):
        info = tud.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.count, step))


def labels(loader):
    """The second field of each batch: enough to see the order by."""
    return [batch[1] for batch in loader]


def name_of_type(value):
    return type(value).__name__


class Made(tud.Dataset):
    """Samples that a function makes of their numbers."""

    def __init__(self, make, count=5):
        self.make = make
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.make(index)


class Plain(Exception):
    pass


class Broken(tud.IterableDataset):
    def __init__(self, where):
        self.where = where

    def __iter__(self):
        if self.where == "iter":
            raise Plain("no iterator")
        yield 1
        if self.where == "next":
            raise Plain("no more")
        if self.where == "runtime":
            raise StopIteration("inside a generator")
