# SPDX-License-Identifier: Apache-2.0
"""stoker.install(), uninstall() and python -m stoker."""

from __future__ import annotations

import copy
import json
import os
import re
import pickle
import subprocess
import sys
import types

import pytest
import stoker
import torch
import torch.utils.data as tud
from ranks import in_fresh_python
from test_ranks import Numbers, labelled
from torch.utils.data import DataLoader
from torch.utils.data import DataLoader as AnotherName

TORCHS = DataLoader


class Derived(DataLoader):
    pass


def names():
    """What the places have where torch's class is found."""
    places = (
        tud.DataLoader, tud.dataloader.DataLoader, DataLoader, AnotherName, sys.modules["in_a_module"].DataLoader
    )
    return [f"{place.__module__}.{place.__qualname__}" for place in places]


def _installed(root):
    module = types.ModuleType("in_a_module")
    exec("from torch.utils.data import DataLoader", vars(module))
    sys.modules["in_a_module"] = module
    torchs = TORCHS
    assert torchs is tud.DataLoader
    made_before = torchs(Numbers(5), batch_size=2)
    derived_before = Derived(Numbers(5))
    out = {"before": names()}

    stoker.install()
    stoker.install()
    out["installed"] = names()
    later = types.ModuleType("in_a_later_module")
    text = "from torch.utils.data import DataLoader\nclass Own(DataLoader[int]): pass\nNAMED = DataLoader[list]"
    exec(text, vars(later))
    sys.modules["in_a_later_module"] = later
    ours = tud.DataLoader(Numbers(5), 2)
    own = later.Own(Numbers(5), 2, True)
    out["instances"] = [
        isinstance(made_before, DataLoader), isinstance(derived_before, tud.DataLoader), isinstance(ours, DataLoader),
        isinstance(ours, stoker.DataLoader), isinstance(own, DataLoader), isinstance(own, stoker.DataLoader),
        issubclass(Derived, tud.DataLoader),
    ]
    out["no instances"] = [
        isinstance(made_before, later.Own), isinstance(made_before, stoker.DataLoader), isinstance([], DataLoader),
        issubclass(Derived, stoker.DataLoader), isinstance(ours, Derived),
    ]
    pickled = [pickle.dumps(loader) for loader in (made_before, derived_before, ours)]
    kinds = (torchs, Derived, type(ours))
    out["pickles"] = [
        type(pickle.loads(data)) is kind and len(list(pickle.loads(data))) == count
        for data, kind, count in zip(pickled, kinds, (3, 5, 3), strict=True)
    ]
    out["copied"] = type(copy.copy(made_before)) is torchs

    # As torch's: the order of a seed, errors, and no worker processes where none were asked for.
    torch.manual_seed(3)
    order = [batch[0].tolist() for batch in tud.DataLoader(Numbers(20), 6, True)]
    torch.manual_seed(3)
    out["order"] = [order, [batch[0].tolist() for batch in torchs(Numbers(20), 6, True)]]
    images = stoker.datasets.ImageFolder(root, stoker.transforms.ToTensor())
    torch.manual_seed(3)
    engine = tud.DataLoader(images, 6, shuffle=True, num_workers=0)
    out["engine"] = [engine._native is not None, sum((labels.tolist() for _, labels in engine), [])]
    torch.manual_seed(3)
    out["wanted"] = sum((batch[0].tolist() for batch in torchs(Numbers(20), 6, shuffle=True)), [])
    out["errors"] = []
    for options in ({"prefetch_factor": 2}, {"persistent_workers": True}, {"multiprocessing_context": "fork"}):
        for kind in (torchs, tud.DataLoader):
            try:
                kind(Numbers(5), **options)
            except ValueError as error:
                out["errors"].append(str(error))
    out["workers"] = tud.DataLoader(Numbers(5)).num_workers

    stoker.uninstall()
    out["uninstalled"] = [*names(), later.DataLoader is torchs, DataLoader is torchs]
    out["ours stay"] = [len(list(ours)), isinstance(ours, tud.DataLoader)]
    out["pickles afterwards"] = [type(pickle.loads(data)) is kind for data, kind in zip(pickled, kinds, strict=True)]
    out["as before"] = pickle.loads(pickle.dumps(made_before)).__class__ is torchs
    import copyreg

    out["as before"] = out["as before"] and torchs not in copyreg.dispatch_table
    stoker.uninstall()
    return out


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return in_fresh_python(_installed, labelled(tmp_path_factory.mktemp("numbered"), 20))


def test_ours_is_everywhere_and_goes_again(installed):
    torchs = ["torch.utils.data.dataloader.DataLoader"] * 5
    assert installed["before"] == torchs and installed["uninstalled"] == [*torchs, True, True]
    assert installed["installed"] == ["stoker._install.DataLoader"] * 5
    assert installed["ours stay"] == [3, True]


def test_what_existed_stays_as_it_was(installed):
    assert installed["instances"] == [True] * 7 and installed["no instances"] == [False] * 5


def test_loaders_can_be_pickled_and_copied(installed):
    assert installed["pickles"] == installed["pickles afterwards"] == [True] * 3
    assert installed["copied"] and installed["as before"]


def test_defaults_are_torchs(installed):
    assert installed["order"][0] == installed["order"][1]
    assert installed["engine"] == [True, installed["wanted"]]
    assert len(installed["errors"]) == 6 and installed["errors"][::2] == installed["errors"][1::2]
    assert installed["workers"] == 0


# ---- python -m stoker ----

SCRIPT = """
import json, os, pickle, sys
class Here: pass
found = {
    "argv": sys.argv, "name": __name__, "file": __file__, "path": sys.path[0], "spec": __spec__ is None,
    "package": __package__, "main": sys.modules["__main__"].__dict__ is globals(), "doc": __doc__,
    "pickle": type(pickle.loads(pickle.dumps(Here()))) is Here,
}
if "torch" in sys.modules:
    import torch.utils.data
    loader = torch.utils.data.DataLoader(range(5), batch_size=2)
    found["ours"] = [type(loader).__module__, len(list(loader))]
import neighbour
print(json.dumps(found))
sys.exit(3)
"""


@pytest.fixture()
def script(tmp_path):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "neighbour.py").write_text("")
    os.symlink(folder / "train.py", tmp_path / "link.py")
    return tmp_path / "link.py"


def test_a_script_runs_as_python_runs_it(script):
    def run(*options):
        got = subprocess.run(
            [sys.executable, *options, "link.py", "--epochs", "2"], cwd=script.parent, capture_output=True, text=True,
            timeout=600, check=False,
        )
        assert got.returncode == 3, got.stderr
        return json.loads(got.stdout)

    ours = run("-m", "stoker")
    assert ours.pop("ours") == ["stoker._install", 3]
    assert ours == run()


FAILS = """
import sys, traceback
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise ValueError("mine")

workers = len(sys.argv) - 1
try:
    next(iter(DataLoader(Data(), num_workers=workers)))
except ValueError:
    traceback.print_exc()
try:
    DataLoader(Data(), order="no order")
except ValueError:
    print("keeps its own frames:", "/stoker/" in traceback.format_exc(), flush=True)
next(iter(DataLoader(Data(), num_workers=workers)))
"""


def _as_module(folder):
    """The rest in processes that have torch already."""
    from stoker import __main__ as program

    os.chdir(folder)
    out = {}
    for name, arguments in {
        "module": ["-m", "tool", "x"], "package": ["-m", "kit", "y", "-m"], "absent": ["absent.py"],
        "no module": ["-m", "no_such_module"], "nothing": [], "no name": ["-m"], "option": ["-x", "y"],
        "help": ["--help"], "version": ["-V"], "folder": ["."],
        "fails": ["fails.py"], "fails in a worker": ["fails.py", "1"],
    }.items():
        with open("out", "w+") as file:
            child = os.fork()
            if child == 0:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
                sys.path.insert(0, folder)
                sys.argv = ["stoker/__main__.py", *arguments]
                code = 0
                try:
                    program.main()
                except SystemExit as error:
                    code = error.code
                except ValueError:
                    sys.excepthook(*sys.exc_info())
                sys.stdout.flush()
                os._exit(code or 0)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            file.seek(0)
            out[name] = [code, file.read()]
    return out


def test_modules_and_mistakes(tmp_path):
    told = (
        "import json, sys, torch.utils.data\n"
        "print(json.dumps([sys.argv, __name__, __package__, __spec__.name, torch.utils.data.DataLoader.__module__]))\n"
    )
    (tmp_path / "tool.py").write_text(told)
    (tmp_path / "fails.py").write_text(FAILS)
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__main__.py").write_text("from .inner import *\n" + told)
    (tmp_path / "kit" / "__init__.py").write_text("")
    (tmp_path / "kit" / "inner.py").write_text("")
    got = in_fresh_python(_as_module, str(tmp_path))
    assert got["module"][0] == got["package"][0] == 0, got
    assert json.loads(got["module"][1]) == [[f"{tmp_path}/tool.py", "x"], "__main__", "", "tool", "stoker._install"]
    assert json.loads(got["package"][1]) == [
        [f"{tmp_path}/kit/__main__.py", "y", "-m"], "__main__", "kit", "kit.__main__", "stoker._install"
    ]
    assert got["absent"] == [2, "python -m stoker: can't open file 'absent.py': No such file or directory\n"]
    assert got["folder"][0] == 2 and "directory" in got["folder"][1] and got["folder"][1].count("\n") == 1
    assert got["no module"][0] == 2 and "no_such_module" in got["no module"][1]
    for name, said in {"nothing": "a script is required", "no name": "-m requires", "option": "unknown option '-x'"}.items():
        assert got[name][0] == 2 and got[name][1].startswith(f"python -m stoker: {said}"), name
    for text in (got["fails"][1], got["fails in a worker"][1]):
        files = re.findall(r'  File "(.*)", line', text)
        assert text.count("Traceback (most recent call last)") >= 2 and text.rstrip().endswith("ValueError: mine"), text
        assert files[0].endswith("/fails.py") and any("/torch/" in file for file in files), text
        assert not [file for file in files if "/stoker/" in file or "runpy" in file], text
        assert "keeps its own frames: True" in text
    assert got["help"][0] == 0 and "torchrun" in got["help"][1]
    assert got["version"] == [0, f"stoker {stoker.__version__}\n"]
