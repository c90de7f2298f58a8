# SPDX-License-Identifier: Apache-2.0
"""What people read: stats(), verdicts and info() as text and in notebooks, the version, and the type stubs."""

from __future__ import annotations

import ast
import html.parser
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import stoker
from stoker import _ext
from stoker import transforms as T

FINDING = {
    "code": "ST203",
    "title": "Too few workers",
    "sentence": "one worker makes 40 batches/s, <b>training</b> takes 90",
    "advice": "num_workers=4",
    "gain": {"low": 1.5, "mid": 1.8, "high": 2.0},
}
RUN = {
    "verdict": {"kind": "data-bound", "code": "ST203", "sentence": "the GPU waits 45 % of the time"},
    "findings": [FINDING, {**FINDING, "code": "ST204", "advice": None, "gain": None}],
}


class Words(html.parser.HTMLParser):
    """The text of a page, whose tags must be closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture()
def recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in ("0002", "0010"):
        folder = tmp_path / ".stoker" / number
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({**RUN, "run": {"directory": number}}))
    (tmp_path / ".stoker" / "tune-0001").mkdir()
    return tmp_path


def test_stats_of_the_engine_print_as_a_table(tree):
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(tree, T.Compose([T.Resize((8, 8)), T.ToTensor()])), 5,
                               num_workers=2)  # fmt: skip
    list(loader)
    stats = loader.stats()
    lines = str(stats).splitlines()
    assert lines[0].split(None, 1) == ["delivered", f"5 batches, 23 samples, {stats['bytes_read'] / 1000:.1f} kB read"]
    assert [line.split()[0] for line in lines[-4:]] == ["read", "decode", "augment", "slot"]
    assert any("2 threads active" in line for line in lines) and max(map(len, lines)) < 130
    words = Words(stats._repr_html_()).text
    assert "decode" in words and "5 batches, 23 samples" in " ".join(words)
    assert isinstance(stats, dict) and json.loads(json.dumps(stats)) == stats


def test_stats_before_the_first_batch_and_without_threads(tree):
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(tree, T.ToTensor()), 5, num_workers=0)
    assert "0 batches, 0 samples" in str(loader.stats()) and "calling thread" in str(loader.stats())
    Words(loader.stats()._repr_html_())


def test_stats_of_a_data_set_in_python():
    loader = stoker.DataLoader([1, 2, 3], 2)
    list(loader)
    stats = loader.stats()
    assert set(stats) == {"batches", "bad_samples", "waited_seconds", "first_batch_seconds", "workers", "notes"}
    assert "list cannot be compiled: use one of stoker.datasets" in stats["notes"][0]
    assert str(stats).startswith("delivered") and "2 batches" in str(stats)
    assert "2 batches" in Words(stats._repr_html_()).text


def test_a_verdict_by_default_is_of_the_newest_run(recorded):
    found = stoker.verdict()
    assert (found.kind, found.code, found.directory.name) == ("data-bound", "ST203", "0010")
    assert found.report.name == "report.html" and found.findings == RUN["findings"]
    text = str(found)
    assert text.startswith("data-bound (ST203): the GPU waits 45 % of the time\n")
    assert "num_workers=4" in text and "1.80x (1.50 to 2.00)" in text and "unknown" in text
    assert FINDING["sentence"] in Words(found._repr_html_()).text, "the tags in it are text"
    assert repr(found).startswith("Verdict(")


def test_a_verdict_by_number_folder_or_file(recorded):
    for path in (2, "2", "0002", ".stoker/0002", Path(".stoker/0002/run.json")):
        assert stoker.verdict(path).data["run"]["directory"] == "0002"


def test_a_verdict_that_is_not_there(recorded, monkeypatch):
    for path in (3, "nowhere", recorded):
        with pytest.raises(FileNotFoundError, match="run.json does not exist"):
            stoker.verdict(path)
    for text in ("{", "[]", "{}", '{"verdict": 1}'):
        (recorded / "run.json").write_text(text)
        with pytest.raises(ValueError, match="not a run.json"):
            stoker.verdict(recorded)
    empty = recorded / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    with pytest.raises(FileNotFoundError, match="stoker run"):
        stoker.verdict()


WITHOUT_DOCTOR = """
import sys
import stoker
from stoker import *
assert stoker.__file__ == sys.argv[1], stoker.__file__
assert "info" in globals() and "verdict" not in dir(stoker) and "verdict" not in globals()
for name in ("verdict", "Verdict"):
    try:
        getattr(stoker, name)
    except AttributeError as error:
        print(error)
"""


def test_a_build_without_the_doctor_has_no_verdict(tmp_path):
    home = tmp_path / "stoker"
    shutil.copytree(Path(stoker.__file__).parent, home, ignore=shutil.ignore_patterns("_verdict*", "__pycache__"))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DOCTOR, home / "__init__.py"], capture_output=True, text=True, timeout=600,
        check=False, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["stoker.verdict", "stoker.Verdict"]
    assert all("this build has no doctor" in line and "-Ddoctor=disabled" in line for line in lines)


def test_info_is_a_table(tree):
    info = stoker.info()
    assert "JPEG" in str(info) and "JPEG" in Words(info._repr_html_()).text


def test_the_version_is_that_of_the_build():
    build = Path(__file__).parents[2] / "meson.build"
    assert stoker.__version__ == re.search(r"version: '([^']+)'", build.read_text())[1]


def names(body) -> dict[str, ast.stmt]:
    out: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            out[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            out[node.target.id] = node
    return {name: node for name, node in out.items() if not name.startswith("_")}


def test_the_stub_has_the_names_of_the_extension():
    stub = names(ast.parse(Path(_ext.__file__).with_name("_ext.pyi").read_text()).body)
    assert set(stub) == {name for name in vars(_ext) if not name.startswith("_")}
    for name, node in stub.items():
        if isinstance(node, ast.ClassDef) and not issubclass(getattr(_ext, name), Exception):
            inside = {n for n in vars(getattr(_ext, name)) if not n.startswith("_")}
            assert set(names(node.body)) == inside, name


def test_the_stub_has_the_docstrings_of_what_is_public():
    stub = names(ast.parse(Path(_ext.__file__).with_name("_ext.pyi").read_text()).body)
    public = [name for name in stub if name in stoker.__all__ and getattr(stoker, name) is getattr(_ext, name)]
    public = [name for name in public if ast.get_docstring(stub[name])]
    assert len(public) >= 6
    for name in public:
        assert ast.get_docstring(stub[name]) == inspect.cleandoc(getattr(_ext, name).__doc__), name
        for inner, node in names(stub[name].body).items():
            assert ast.get_docstring(node) == inspect.cleandoc(getattr(getattr(_ext, name), inner).__doc__), inner
