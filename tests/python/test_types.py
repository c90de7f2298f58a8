# SPDX-License-Identifier: Apache-2.0
"""Types as users meet them: type checkers in strict mode, completion by dir(), and the stub of DataLoader."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import stoker

SCRIPT = Path(__file__).parent / "scripts" / "typed.py"
SOURCE = Path(stoker.__file__).parent / "dataloader.py"
MISTAKES = """\
stoker.DataLoader(data, seed_by="samples")
stoker.DataLoader(data, on_error="ignore")
stoker.DataLoader(data, jpeg_hardware=True)
stoker.DataLoader(data, num_workers="all")
stoker.DataLoader(data, drop_lost=True)
stoker.DataLoader(data, batch_size="8")
stoker.DataLoader(data).set_epochs(1)
next(iter(stoker.DataLoader(data)))[0].shap
stoker.transforms.Resiz(3)
stoker.order_indices("8")
"""


BEGIN = 'import stoker\nimport stoker.transforms\n\ndata = stoker.datasets.ImageFolder("images")\n'


def mypy(folder):
    """The errors in a folder: (file, line, message). What mypy knows of torch and NumPy, which takes nearly all of its time,
    is kept."""
    kept = Path(__file__).parents[2] / "build" / "mypy"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", kept, "--no-error-summary", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = re.findall(r"^(.*?):(\d+): error: (.*)$", done.stdout, re.M)
    return [(Path(file).name, int(line), message) for file, line, message in found]


def pyright(folder):
    settings = folder / "pyrightconfig.json"
    settings.write_text(json.dumps({"include": ["."], "typeCheckingMode": "strict"}))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", settings, "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [d for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    return [(Path(d["file"]).name, d["range"]["start"]["line"] + 1, d["message"]) for d in found]


@pytest.fixture(scope="module", params=[mypy, pyright], ids=lambda checker: checker.__name__)
def errors(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("typed")
    (folder / "right.py").write_text(SCRIPT.read_text())
    (folder / "wrong.py").write_text(BEGIN + MISTAKES)
    return request.param(folder)


def test_a_users_script_is_clean_in_strict_mode(errors):
    assert [error for error in errors if error[0] == "right.py"] == []


def test_mistakes_are_found(errors):
    found = {line for file, line, _ in errors if file == "wrong.py"}
    assert found == set(range(BEGIN.count("\n") + 1, (BEGIN + MISTAKES).count("\n") + 1)), errors


def annotations(arguments):
    return {a.arg: ast.unparse(a.annotation) for a in [*arguments.args, *arguments.kwonlyargs] if a.annotation}


def class_of(path, name):
    return next(n for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef) and n.name == name)


def methods(tree):
    out = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name in ("__iter__", "__len__")):
            out[node.name] = annotations(node.args), node.name != "__iter__" and ast.unparse(node.returns)
    return out


def test_the_stub_has_every_option_and_method_of_the_loader():
    stub = SOURCE.with_suffix(".pyi")
    fields = {}
    for name in ("_Options", "_OptionsAndOutput"):
        fields |= {n.target.id: ast.unparse(n.annotation) for n in class_of(stub, name).body if isinstance(n, ast.AnnAssign)}
    loader, stubbed = class_of(SOURCE, "DataLoader"), class_of(stub, "DataLoader")
    [init] = [n for n in loader.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    by_name = annotations(init.args)
    for overload in (n for n in stubbed.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"):
        first = annotations(overload.args)
        assert {n: by_name[n] for n in ("batch_size", "shuffle")} == {n: first[n] for n in ("batch_size", "shuffle")}
    assert fields == {n: t for n, t in by_name.items() if n not in ("dataset", "batch_size", "shuffle")}
    inherited = {"check_worker_number_rationality"}
    assert methods(stubbed) == {n: m for n, m in methods(loader).items() if n not in inherited}


@pytest.mark.parametrize("name", ["stoker", "stoker.transforms", "stoker.datasets", "stoker.audio"])
def test_dir_shows_what_is_public(name):
    module = importlib.import_module(name)
    shown = dir(module)
    assert sorted(module.__all__) == shown
    assert all(hasattr(module, each) for each in shown)
    own = {n for n in shown if inspect.isclass(getattr(module, n)) or inspect.isfunction(getattr(module, n))}
    assert own and not any(n.startswith("_") for n in own)


def test_a_former_name_of_an_option_still_works(tree):
    data = stoker.datasets.ImageFolder(tree, stoker.transforms.ToTensor())
    with pytest.warns(DeprecationWarning, match="engines= is deprecated: use jpeg_hardware=") as found:
        loader = stoker.DataLoader(data, engines="off")
    assert loader.jpeg_hardware == "off" and found[0].filename == __file__
