# SPDX-License-Identifier: Apache-2.0
"""Files and databases that a dataset has opened before its workers are forked."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
import sys
import textwrap
import warnings
import zipfile

import pytest
import stoker
import torch.utils.data as tud
from loading import Squares
from stoker._workers.handles import find_handles, warn_of_handles

warnings.filterwarnings("ignore", message="This DataLoader will create")


def test_handles_opened_before_the_fork_are_warned_of(tmp_path):
    class Zipped(Squares):
        def __init__(self, path):
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("a", b"1")
            self.archives = {"train": zipfile.ZipFile(path)}

    with pytest.warns(UserWarning, match=r"dataset\.archives\['train'\] is an open zipfile.ZipFile.*worker_init_fn"):
        list(stoker.DataLoader(Zipped(tmp_path / "x.zip"), 10, num_workers=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(stoker.DataLoader(Squares(), 10, num_workers=1))


def test_handles_that_are_found(tmp_path):
    h5py, lmdb = pytest.importorskip("h5py"), pytest.importorskip("lmdb")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a", b"1")
    handles = {
        "h5py": h5py.File(tmp_path / "x.h5", "w"),
        "lmdb": lmdb.open(str(tmp_path / "x.lmdb")),
        "zipfile": zipfile.ZipFile(tmp_path / "x.zip"),
        "sqlite3": sqlite3.connect(tmp_path / "x.db"),
        "open file": open(tmp_path / "x.zip", "rb"),
        "an open file": open(tmp_path / "x.zip"),
        "gzip": gzip.open(tmp_path / "x.gz", "w"),
    }
    for word, handle in handles.items():
        data = Squares()
        data.deep = [{"handle": handle}]
        [(path, what)] = find_handles(data)
        assert path == "dataset.deep[0]['handle']" and word in what
        handle.close()
        assert find_handles(data) == []


def test_cursors_and_transactions_are_handles(tmp_path):
    lmdb = pytest.importorskip("lmdb")
    connection, environment = sqlite3.connect(tmp_path / "x.db"), lmdb.open(str(tmp_path / "x.lmdb"))
    data = Squares()
    data.cursor, data.reading = connection.execute("select 1"), environment.begin()
    assert find_handles(data) == [
        ("dataset.cursor", "a cursor of a sqlite3 connection"),
        ("dataset.reading", "a transaction of an open lmdb.Environment"),
    ]
    connection.close()
    environment.close()
    assert find_handles(data) == []


def test_handles_deep_inside_and_behind_many_samples(tmp_path):
    class Reader:
        def __init__(self, path):
            self.connection = sqlite3.connect(path)

    data = Squares()
    data.samples = [(f"{n}.jpg", [n]) for n in range(100_000)]
    data.reader = Reader(tmp_path / "x.db")
    wrapped = tud.Subset(tud.ConcatDataset([tud.Subset(data, range(9))]), range(3))
    [(path, what)] = find_handles(wrapped)
    assert path == "dataset.dataset.datasets[0].dataset.reader.connection" and what == "a sqlite3 connection"
    with pytest.warns(UserWarning, match=r"reader\.connection is a sqlite3 connection, opened before"):
        list(stoker.DataLoader(wrapped, 3, num_workers=1))


def test_what_is_only_written_to_is_no_handle(tmp_path):
    data = Squares()
    data.log, data.stdin, data.stdout = open(tmp_path / "log", "a"), sys.__stdin__, sys.__stdout__
    assert find_handles(data) == []
    data.log.close()


SCRIPT = """
    import sys, warnings
    import h5py, numpy as np, torch.utils.data as tud
    from torch.utils.data import DataLoader
    if sys.argv[2] == "stoker":
        from stoker import DataLoader

    class Stored(tud.Dataset):
        def __init__(self, path):
            self.file = h5py.File(path, "r")
            self.group = self.file["group"]
            self.images = self.group["images"]
            self.labels = self.file["labels"]
        def __len__(self): return 4
        def __getitem__(self, index): return index

    with h5py.File(sys.argv[1], "w") as file:
        file["group/images"], file["labels"] = np.zeros((4, 3)), np.zeros(4)
    data = Stored(sys.argv[1])
    loader = DataLoader(data, num_workers=1)
    if sys.argv[2] == "made":
        iterator = loader.__iter__()  # this line
    for epoch in range(2):
        for _ in loader: pass  # this line
    for _ in DataLoader(tud.Subset(data, [0, 1]), num_workers=1): pass
"""


@pytest.mark.parametrize(("runner", "line"), [("stoker", 1), ("installed", 1), ("made", 0)])
def test_one_file_is_warned_of_once_at_the_users_line(tmp_path, runner, line):
    """However many of its handles a dataset has, and also if it is in several datasets."""
    pytest.importorskip("h5py")
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, *(["-m", "stoker"] if runner != "stoker" else []), script, tmp_path / "x.h5", runner]
    out = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    warned = [text for text in out.stderr.splitlines() if "UserWarning" in text]
    lines = [number for number, text in enumerate(script.read_text().splitlines(), 1) if "# this line" in text]
    assert len(warned) == 1 and warned[0].startswith(f"{script}:{lines[line]}: UserWarning: dataset.file is an open h5py.File")


def test_a_cursor_is_of_its_connections_file(tmp_path):
    data = Squares()
    data.connection = sqlite3.connect(tmp_path / "x.db")
    data.cursor = data.connection.execute("select 1")
    other = Squares()
    other.second = sqlite3.connect(tmp_path / "x.db")
    for each, place in ((data, "dataset.connection"), (other, "dataset.second")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_handles(each)
        assert [str(one.message).split()[0] for one in caught] == [place] and caught[0].filename == __file__
