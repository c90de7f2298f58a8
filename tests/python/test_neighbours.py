# SPDX-License-Identifier: Apache-2.0
"""The examples for other frameworks run, and so do the scripts that they were before the marked lines changed."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import os
import re
import sys
import types
from pathlib import Path

import pytest
from conftest import save_tree
from ranks import in_fresh_python

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))
pytest.importorskip("torchvision")

from assemble import before_stoker  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(save_tree(tmp_path_factory.mktemp("images") / "set", {"ant": 9, "bee": 8, "cow": 6}))


def both_ways(name, folder):
    """What the script prints with torch's loader and with ours, and how many loaders of ours it makes."""
    import stoker.dataloader

    sys.modules["torchaudio"] = None  # one of another age than torch cannot be imported, and transformers would
    os.environ["KERAS_BACKEND"] = "torch"
    made = []
    original = stoker.dataloader.DataLoader.__init__

    @functools.wraps(original)  # others look at its signature
    def counted(self, *args, **kwargs):
        made.append(type(self))
        original(self, *args, **kwargs)

    stoker.dataloader.DataLoader.__init__ = counted
    text = (ROOT / "examples" / name / "train.py").read_text()
    out = {}
    for way, source in (("torch", before_stoker(text)), ("stoker", text)):
        sys.argv = [name, folder] + (["--workers", "1"] if "--workers" in text else [])
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        said = io.StringIO()
        made.clear()
        with contextlib.redirect_stdout(said):
            exec(compile(source, f"{name}/train.py", "exec"), vars(module))
        out[way] = [said.getvalue(), len(made)]
        stoker.uninstall()
    return out


@pytest.mark.parametrize("example", ["accelerate", "classification", "keras", "lightning", "timm", "trainer"])
def test_example(folder, example):
    needed = {"classification": "torchvision", "trainer": "transformers"}.get(example, example)
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    got = in_fresh_python(both_ways, example, folder)
    for way, (said, _) in got.items():
        assert len(re.findall(r"^epoch \d: loss \d+\.\d+", said, re.M)) == 3, (way, said)
    steps = {re.search(r"^(\d+) steps", said, re.M)[1] for said, _ in got.values()}
    assert len(steps) == 1
    assert got["torch"][1] == 0 and got["stoker"][1] > 0
