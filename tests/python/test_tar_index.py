# SPDX-License-Identifier: Apache-2.0
"""Packed tar files without the index beside them: they are opened by the one they hold, and by nothing else that
looks like one."""

import shutil
import threading
from http.server import ThreadingHTTPServer

import numpy as np
import pytest
import stoker
from packing import big_tree, members, pack
from test_sources_url import Ranges

FIELDS = ("jpg", "cls")


class Counted(Ranges):
    wbufsize = 1 << 20  # head and body go out together, or the client's kernel waits 40 ms with its answer

    def send_header(self, keyword, value):
        if keyword == "Content-Length":
            self.server.sent += int(value)
        super().send_header(keyword, value)


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack")
    pack(big_tree(folder / "tree", 60), folder / "out")
    return folder / "out" / "shard-000000.tar"


@pytest.fixture
def alone(shard, tmp_path):
    return shutil.copy(shard, tmp_path / "alone.tar")


def samples(data):
    return [(np.asarray(image), label) for image, label in (data[i] for i in range(len(data)))]


def same(one, other):
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(a, b) and x == y for (a, x), (b, y) in pairs)


def test_it_is_opened_by_its_own_index(shard, alone):
    want = samples(stoker.datasets.WebDataset(shard, FIELDS))
    assert len(want) == 60 and same(samples(stoker.datasets.WebDataset(alone, FIELDS)), want)
    # Sums that were never learned by reading: only the index inside can know them.
    name, offset, size = members(alone)[40]
    assert name.endswith(".jpg")
    data = bytearray(alone.read_bytes())
    data[offset + size // 2] ^= 1
    alone.write_bytes(data)
    damaged = stoker.datasets.WebDataset(alone, FIELDS)
    with pytest.raises(stoker.CorruptSample, match="checksum"):
        samples(damaged)


def test_a_damaged_one_is_not_believed(shard, alone):
    want = samples(stoker.datasets.WebDataset(shard, FIELDS))
    name, offset, size = members(alone)[-1]
    assert name == "__index__"
    whole = alone.read_bytes()
    for where in range(offset, offset + size, size // 7):
        data = bytearray(whole)
        data[where] ^= 0x10
        alone.write_bytes(data)
        assert same(samples(stoker.datasets.WebDataset(alone, FIELDS)), want)


def test_by_url_only_the_index_is_read(shard):
    data = shard.read_bytes()
    with ThreadingHTTPServer(("127.0.0.1", 0), Counted) as server:
        server.files, server.asked, server.sent = {"/a.tar": data}, [], 0
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            far = stoker.datasets.WebDataset(f"http://127.0.0.1:{server.server_address[1]}/a.tar", FIELDS)
            assert len(server.asked) <= 6 and server.sent < len(data) / 8
            assert same(samples(far), samples(stoker.datasets.WebDataset(shard, FIELDS)))
        finally:
            server.shutdown()
            thread.join()
