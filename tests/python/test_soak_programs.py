# SPDX-License-Identifier: Apache-2.0
"""The judge of tests/soak/programs.py: what it draws can be played, and it notices what differs."""

from __future__ import annotations

import ast
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("torchvision")
sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))
import program_idioms  # noqa: E402
from program_draw import draw  # noqa: E402
from program_play import Record, differences, play, seen, seen_error  # noqa: E402
from program_saved import reduced, script, used  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

SPEC = {
    "number": 0, "seed": 5, "files": ["photos", 9, 1, 24, 40], "prelude": "", "use": "epochs", "way": "stoker",
    "dataset": "Photos(folder, converted, T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ToTensor()]))",
    "options": {"batch_size": "4", "shuffle": "True"},
}  # fmt: skip


def played(loader=DataLoader, **changes):
    with tempfile.TemporaryDirectory() as folder:
        return play({**SPEC, **changes}, {**vars(program_idioms), "DataLoader": loader}, Path(folder))


@pytest.fixture(autouse=True)
def generators_kept():
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()
    yield
    torch.set_rng_state(before[0])
    random.setstate(before[1])
    np.random.set_state(before[2])


def test_a_program_gives_the_same_again():
    once = played()
    assert len([place for place, _ in once if "batch" in place]) == 6
    assert differences(once, played()) == []


def other_draws(dataset, **options):
    torch.rand(1)
    return DataLoader(dataset, **options)


def other_order(dataset, shuffle, **options):
    return DataLoader(dataset, **options)


def other_type(dataset, **options):
    return ([images.double(), labels] for images, labels in DataLoader(dataset, **options))


def one_less(dataset, **options):
    return list(DataLoader(dataset, **options))[:-1]


def failing(dataset, **options):
    raise RuntimeError("torch would not")


@pytest.mark.parametrize("loader", [other_draws, other_order, other_type, one_less, failing])
def test_what_differs_is_noticed(loader):
    assert differences(played(), played(loader))


def test_draws_that_only_the_generators_show_are_noticed():
    def generator_moved(dataset, **options):
        def batches():
            yield from DataLoader(dataset, **options)
            random.random()

        return batches()

    found = differences(played(use="draws_between"), played(generator_moved, use="draws_between"))
    assert "generators" in found[0]


def test_exceptions_are_compared_by_what_catches_them():
    theirs = [["batch 0", seen_error(OSError("x"), "")]]
    for error, equal in ((OSError("x"), True), (FileNotFoundError("x"), True), (RuntimeError("x"), False)):
        assert (differences(theirs, [["batch 0", seen_error(error, "")]]) == []) is equal
    assert differences(theirs, [["batch 1", seen_error(OSError("x"), "")]])
    assert differences(theirs, [["batch 0", seen_error(OSError("y"), "")]])
    assert not differences(theirs, [["batch 0", seen_error(OSError("y"), "")]], strict=False)


def test_values_are_seen_with_their_types():
    values = [1, 1.0, True, "1", b"1", [1], (1,), {"a": 1}, torch.tensor(1), torch.tensor(1.0), torch.tensor([1]), None,
              np.int64(1), np.array(1), np.array([1], np.int16), torch.tensor([1], dtype=torch.int32)]  # fmt: skip
    assert len({seen(value) for value in values}) == len(values)


def test_programs_use_names_that_exist():
    """And they can be saved as scripts that compile."""
    names = {*vars(program_idioms), "folder", "dataset", *dir(__builtins__), *__builtins__}
    kinds = set()
    for number in range(300):
        spec = draw(number)
        assert spec == draw(number)
        for text in (spec["dataset"], *spec["options"].values()):
            tree = ast.parse(text, mode="eval")
            own = {argument.arg for node in ast.walk(tree) if isinstance(node, ast.Lambda) for argument in node.args.args}
            own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            assert used(tree) - own - {"x", "y"} <= names, text
        kinds.add(spec["dataset"].split("(")[0])
        if number < 20:
            compile(script(spec, "a test"), "script", "exec")
    assert len(kinds) > 25


def test_a_program_is_reduced_to_what_matters():
    spec = {**SPEC, "options": {"batch_size": "4", "num_workers": "2", "drop_last": "True"}, "use": "endless", "prelude": "float64"}
    small = reduced(spec, lambda one: "RandomHorizontalFlip" in one["dataset"] and "num_workers" in one["options"])
    assert small["options"] == {"num_workers": "2"} and small["use"] == "epochs" and small["prelude"] == ""
    assert "RandomResizedCrop" not in small["dataset"] and Record(None).entries == []
