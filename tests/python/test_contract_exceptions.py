# SPDX-License-Identifier: Apache-2.0
"""Exceptions of datasets are torch's, in this process and in workers."""

from __future__ import annotations

import pytest
from contract import Broken, Made, Plain, check


class NeedsTwo(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Silent(Exception):
    def __str__(self):
        return "silent"


def raiser(error):
    def make(index):
        if index == 2:
            raise error
        return index

    return make


ERRORS = [
    ValueError("a value"),
    KeyError("a key\nof two lines"),
    IndexError(5),
    StopIteration("stop"),
    AttributeError("no such"),
    OSError(2, "none", "file"),
    UnicodeDecodeError("utf-8", b"a", 0, 1, "odd"),
    Plain("mine", 3),
    NeedsTwo(1, 2),
    Silent(),
    AssertionError(),
    NotImplementedError("later"),
    MemoryError("much"),
]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_exceptions_of_data_sets(error, workers):
    data = Made(raiser(error))
    check(lambda loader: list(loader(data, num_workers=workers)))


def test_exceptions_name_where_they_come_from():
    got = check(lambda loader: list(loader(Made(raiser(Plain("mine"))), num_workers=1)))
    kind, text = got[1:]
    assert kind is Plain and "Caught Plain in DataLoader worker process 0." in text
    assert "Original Traceback (most recent call last):" in text and ", in make\n    raise error" in text


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("where", ["iter", "next", "runtime"])
def test_exceptions_of_streams(where, workers):
    check(lambda loader: list(loader(Broken(where), num_workers=workers)))


@pytest.mark.parametrize("workers", [0, 2])
def test_after_an_exception_comes_the_next_batch(workers):
    def do(loader):
        batches = iter(loader(Made(raiser(Plain("once"))), num_workers=workers))
        out = []
        while True:
            try:
                out.append(next(batches))
            except Plain:
                out.append("failed")
            except StopIteration:
                return out

    check(do)
