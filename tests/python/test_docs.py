# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect

import numpy as np
import pytest
import stoker
from conftest import picture
from stoker import audio, transforms

MODULES = ["stoker", "stoker.audio", "stoker.dataloader", "stoker.datasets", "stoker.transforms"]


@pytest.fixture()
def in_folder(tmp_path, monkeypatch):
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(6):
            picture(i, 64, 48).save(tmp_path / "images" / name / f"{i}.png")
    monkeypatch.chdir(tmp_path)


WITHIN = ["stoker._data.compound", "stoker._data.fields", "stoker._install", "stoker._steps.mix", "stoker._open", "stoker._steps.base",
          "stoker._base.tables", "stoker._steps.tensor_ops", "stoker._verdict", "stoker._data.archives", "stoker._lazy.switch", "stoker._engine.stats"]  # fmt: skip


@pytest.mark.parametrize("name", [*MODULES, *WITHIN])
def test_examples(name, in_folder):
    module = importlib.import_module(name)
    result = doctest.testmod(
        module,
        extraglobs={"stoker": stoker, "T": transforms, "A": audio, "np": np},
        optionflags=doctest.ELLIPSIS,
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


def test_everything_public_has_annotations():
    for name in MODULES:
        module = importlib.import_module(name)
        for public in module.__all__:
            thing = getattr(module, public)
            if isinstance(thing, type) and thing.__module__.startswith("stoker."):
                members = {key: inspect.unwrap(value) for key, value in vars(thing).items() if inspect.isfunction(value)}
                functions = {f"{public}.{key}": value for key, value in members.items() if key[0] != "_" or key == "__init__"}
            else:
                functions = {public: thing} if inspect.isfunction(thing) else {}
            for where, function in functions.items():
                named = inspect.signature(function).parameters
                lacking = [p for p in named if p != "self" and p not in function.__annotations__]
                assert not lacking and "return" in function.__annotations__, f"{name}.{where}: {lacking}"
