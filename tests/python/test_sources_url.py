# SPDX-License-Identifier: Apache-2.0
"""Datasets by URL from Python: the options arrive, the samples are those of the file. Servers that fail, lie or
hang are the business of tests/source/remote.py."""

import io
import os
import re
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import stoker
from PIL import Image
from stoker import transforms as T


class Ranges(BaseHTTPRequestHandler):
    """A file server that knows ranges."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.server.asked.append(self.path)
        data = self.server.files.get(self.path)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if data is None:
            self.send_response(404)
            data = b""
        elif wanted:
            begin = int(wanted[1])
            end = min(int(wanted[2] or len(data) - 1), len(data) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{end}/{len(data)}")
            data = data[begin : end + 1]
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"one"')  # without one nothing is cached: the file might be another the next time
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def shard():
    out, rng = io.BytesIO(), np.random.default_rng(5)
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number in range(40):
            image = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8)).save(image, "PNG")
            for suffix, data in (("png", image.getvalue()), ("cls", b"%d" % (number % 7))):
                member = tarfile.TarInfo(f"{number:03d}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture
def server(shard):
    with ThreadingHTTPServer(("127.0.0.1", 0), Ranges) as server:
        server.files, server.asked = {"/a.tar": shard}, []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def address(server, path="/a.tar"):
    return f"http://127.0.0.1:{server.server_address[1]}{path}"


def test_the_same_samples_as_from_the_file(server, shard, tmp_path):
    tmp_path.joinpath("a.tar").write_bytes(shard)
    fields, transform = ("png", "cls"), T.Compose([T.CenterCrop(32), T.ToTensor()])
    near = stoker.datasets.WebDataset(tmp_path / "a.tar", fields, transform)
    far = stoker.open(address(server), fields, transform, cache_dir=tmp_path / "cache", timeout=20)
    assert type(far) is stoker.datasets.WebDataset and len(far) == len(near) == 40

    def batches(data):
        return list(stoker.DataLoader(data, batch_size=8, shuffle=True, seed=3))

    for got, want in zip(batches(far), batches(near), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    asked = len(server.asked)
    batches(far)
    assert os.listdir(tmp_path / "cache")
    assert len(server.asked) - asked <= 2  # the second epoch comes from the cache


def test_tables_by_url_and_of_urls(server, tmp_path):
    images = [np.full((20, 20, 3), 30 * i, np.uint8) for i in range(5)]
    for i, image in enumerate(images):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "PNG")
        server.files[f"/pics/{i}%20.png"] = file.getvalue()
    rows = [f"pics/{i} .png,{i}" for i in range(5)]
    server.files["/t.csv?key=x"] = "\n".join(["path,label", *rows]).encode()
    server.files["/t.jsonl?key=x"] = "\n".join(
        f'{{"path": "/pics/{i} .png", "label": {i}}}' for i in range(5)
    ).encode()
    (tmp_path / "local.csv").write_text(
        "path,label\n" + "".join(f"{address(server, f'/pics/{i}%20.png')},{i}\n" for i in range(5))
    )
    for where in (address(server, "/t.csv?key=x"), address(server, "/t.jsonl?key=x"), tmp_path / "local.csv"):
        for data in (stoker.open(where, timeout=20), stoker.datasets.Manifest(where)):
            assert type(data) is stoker.datasets.Manifest and len(data) == 5
            for i, (image, label) in enumerate(data):
                assert np.array_equal(image, images[i]) and label == i
    del server.files["/pics/3%20.png"]
    loader = stoker.DataLoader(stoker.open(tmp_path / "local.csv", transform=T.ToTensor()), batch_size=5,
                               on_error="replace")  # fmt: skip
    assert next(iter(loader))[1].tolist() == [0, 1, 2, -100, 4]
    (bad,) = loader.bad_samples()
    assert bad["sample"] == 3 and "pics/3%20.png" in bad["reason"] and "404" in bad["reason"]


def test_an_absent_file_is_a_sentence(server):
    with pytest.raises(OSError, match="404"):
        stoker.datasets.WebDataset(address(server, "/b.tar"))


@pytest.mark.parametrize(("options", "said"), [
    ({"cache_bytes": 0}, "cache_bytes=0"), ({"timeout": 0}, "timeout=0"), ({"connections": 0}, "connections=0"), ({"cachedir": "x"}, "cachedir"),
])
def test_bad_options_are_refused(options, said):
    with pytest.raises((TypeError, ValueError), match=said):
        stoker.datasets.WebDataset("http://127.0.0.1/a.tar", **options)


class Patient(Ranges):
    """Answers nobody before many have asked."""

    def do_GET(self):
        server = self.server
        with server.arrived:
            server.waiting += 1
            server.most = max(server.most, server.waiting)
            server.arrived.notify_all()
            # The first is read alone, and shows that this server is slow.
            patience = 1 if self.path == "/0.png" else 5
            server.arrived.wait_for(lambda: server.most >= server.enough, timeout=patience)
        super().do_GET()
        with server.arrived:
            server.waiting -= 1


class Crowd(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def test_many_objects_of_a_table_are_asked_for_at_once(tmp_path):
    count, image = 160, io.BytesIO()
    Image.fromarray(np.random.default_rng(6).integers(0, 256, (20, 30, 3), np.uint8)).save(image, "PNG")
    with Crowd(("127.0.0.1", 0), Patient) as server:
        server.files, server.asked = {f"/{n}.png": image.getvalue() for n in range(count)}, []
        server.arrived, server.waiting, server.most, server.enough = threading.Condition(), 0, 0, 100
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            table = tmp_path / "table.csv"
            rows = [f"http://127.0.0.1:{server.server_address[1]}/{n}.png,{n}\n" for n in range(count)]
            table.write_text("file,label\n" + "".join(rows))
            loader = stoker.DataLoader(stoker.open(table, transform=T.ToTensor()), batch_size=16, num_workers=2)
            labels = [label for batch in loader for label in batch[1].tolist()]
        finally:
            server.shutdown()
            thread.join()
    assert labels == list(range(count))
    assert server.most >= server.enough  # 64 threads made 64
