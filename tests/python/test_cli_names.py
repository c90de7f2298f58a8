# SPDX-License-Identifier: Apache-2.0
"""Text from data reaches terminals, pages and exceptions without control characters, and numbers with their nouns."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
import stoker as package
from conftest import picture
from packing import stoker

# C0, C1 (CSI), reversed text, an isolate, a mark of direction, an end of line, and what is not UTF-8.
ODD = b"a\x1b[31m\nb\xc2\x9b31m\xe2\x80\xaec\xe2\x81\xa6d\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8e\xff"
ESCAPED = rb"a\x1b[31m\x0ab\xc2\x9b31m\xe2\x80\xaec\xe2\x81\xa6d\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8e\xff".decode()


def is_plain(text: str) -> bool:
    return not any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") for c in text if c != "\n")


@pytest.fixture
def odd_tree(tmp_path):
    """A class and a bad image with an odd name, in a folder with one."""
    folder = tmp_path.joinpath(ODD.decode("utf-8", "surrogateescape"))
    (folder / "c").mkdir(parents=True)
    picture(0, 40, 30).save(folder / "c" / "good.jpg")
    (folder / "c" / (ODD.decode("utf-8", "surrogateescape") + ".jpg")).write_bytes(b"no image")
    return folder


@pytest.mark.parametrize("command", [
    ("verify",), ("verify", "--json"), ("info",), ("info", "--json"), ("bench", "--seconds", "0.2", "--batch", "1"),
    ("pack",), ("pack", "--json"), ("pack", "--on-error", "skip"),
])
def test_names_are_escaped_in_what_commands_print(odd_tree, command):
    more = [odd_tree.parent / ("out" + ODD.decode("utf-8", "surrogateescape"))] if command[0] == "pack" else []
    got = stoker(command[0], odd_tree, *more, *command[1:], text=False)
    said = (got.stdout + got.stderr).decode()  # all of it is UTF-8
    assert is_plain(said), repr(said)
    if "--json" not in command or got.returncode == 1:
        assert ESCAPED in said, said
    elif got.stdout:
        json.loads(got.stdout)


def test_names_are_escaped_on_the_page(odd_tree, tmp_path):
    assert stoker("info", odd_tree, "--html", tmp_path / "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert is_plain(page) and "31m" in page


@pytest.mark.parametrize("arguments", [
    [ODD], ["help", ODD], ["--" + ODD.decode("utf-8", "surrogateescape")], ["verify", "x", ODD], ["verify", ODD],
    ["info", ODD], ["bench", ODD], ["report", ODD], ["check", ODD, "--max-stall", "1%"], ["top", ODD], ["run", "--", ODD],
    ["explain", ODD], ["completion", ODD], ["verify", "x", "--workers", ODD], ["doctor", "--data", ODD],
])
def test_arguments_are_escaped_in_errors(tmp_path, arguments):
    words = [word.decode("utf-8", "surrogateescape") if isinstance(word, bytes) else word for word in arguments]
    got = stoker(*words, cwd=tmp_path, text=False)
    said = (got.stdout + got.stderr).decode()
    assert is_plain(said) and ESCAPED in said, said


def test_names_are_escaped_in_exceptions(odd_tree):
    data = package.datasets.ImageFolder(odd_tree)
    with pytest.raises(package.StokerError) as raised:
        list(package.DataLoader(data, batch_size=1))
    assert is_plain(str(raised.value)) and ESCAPED in str(raised.value)
    with pytest.raises(Exception) as raised:
        package.datasets.ImageFolder(odd_tree / "absent")
    assert is_plain(str(raised.value)), raised.value


# ---- numbers and their nouns ----------------------------------------------------------------------


def misnumbered(text: str) -> list[str]:
    return re.findall(r"(?<![\d.,/x-])1 (?:samples|files|classes|members|CPUs|threads|workers|batches|images|steps|bytes)\b", text)


@pytest.mark.parametrize("form", ["tar", "npy"])
def test_one_of_a_thing(tmp_path, form):
    (tmp_path / "one" / "c").mkdir(parents=True)
    picture(0, 40, 30).save(tmp_path / "one" / "c" / "0.jpg")
    said = ""
    for command in (
        ("pack", "one", "out", "--format", form), ("pack", "one", "out", "--format", form), ("verify", "out"), ("verify", "one"),
        ("info", "out"), ("bench", "out", "--seconds", "0.2", "--batch", "1", "--workers", "1"), ("info", "one", "--html", "page.html"),
    ):  # fmt: skip
        got = stoker(*command, cwd=tmp_path)
        assert got.returncode == 0, got.stderr
        said += got.stdout + got.stderr
    said += (tmp_path / "page.html").read_text()
    assert not misnumbered(said), misnumbered(said)
    for phrase in ("packed       1 sample into 1 file of", "1 sample in 1 file;", ": 1 sample,", "1 class,", "of 1 sample\n"):
        assert phrase in said, said


def test_one_of_a_thing_in_python(tmp_path):
    (tmp_path / "one" / "c").mkdir(parents=True)
    picture(0, 40, 30).save(tmp_path / "one" / "c" / "0.jpg")
    data = package.datasets.ImageFolder(tmp_path / "one", package.transforms.ToTensor())
    loader = package.DataLoader(data, batch_size=1, num_workers=1)
    list(loader)
    assert not misnumbered(f"{loader.explain()} {loader.stats()} {loader!r}")
    with pytest.raises(IndexError, match="1 sample$"):
        list(package.DataLoader(data, sampler=[5]))
