# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest
import stoker
from conftest import picture
from stoker import transforms

MODULES = ["stoker", "stoker.dataloader", "stoker.datasets", "stoker.transforms"]


@pytest.fixture()
def in_folder(tmp_path, monkeypatch):
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(6):
            picture(i, 64, 48).save(tmp_path / "images" / name / f"{i}.png")
    monkeypatch.chdir(tmp_path)


WITHIN = ["stoker._fields", "stoker._mix", "stoker._open", "stoker._steps", "stoker.archives"]


@pytest.mark.parametrize("name", [*MODULES, *WITHIN])
def test_examples(name, in_folder):
    module = importlib.import_module(name)
    result = doctest.testmod(
        module, extraglobs={"stoker": stoker, "T": transforms}, optionflags=doctest.ELLIPSIS
    )
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_is_explained(name):
    module = importlib.import_module(name)
    for public in module.__all__:
        thing = getattr(module, public)
        if callable(thing):
            assert thing.__doc__, f"{name}.{public} has no docstring"
