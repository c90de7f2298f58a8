# SPDX-License-Identifier: Apache-2.0
"""A server that dies or hangs while an epoch is under way: no bad samples, one error, and closing waits for nobody."""

import io
import re
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import stoker
from PIL import Image
from stoker import transforms as T

COUNT = 64


class Moods(BaseHTTPRequestHandler):
    """A file server that knows ranges, in one of several moods."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        server.asked += 1
        if server.mood == "hang":
            server.released.wait(30)
        if server.mood in ("hang", "gone"):
            self.close_connection = True
            self.connection.close()
            return
        if server.mood == "busy":
            self.answer(503, b"come back later")
            return
        begin, end = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        data = server.data[begin : end + 1]
        self.answer(206, data, f"bytes {begin}-{begin + len(data) - 1}/{len(server.data)}")

    def answer(self, status, data, content_range=None):
        self.send_response(status)
        if content_range:
            self.send_header("Content-Range", content_range)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"one"')
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except (OSError, ValueError):
            pass  # the client has closed, or the mood has


@pytest.fixture(scope="module")
def shard():
    out, rng = io.BytesIO(), np.random.default_rng(5)
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number in range(COUNT):
            image = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (60, 50, 3), np.uint8)).save(image, "PNG")
            for suffix, data in (("png", image.getvalue()), ("cls", b"%d" % number)):
                member = tarfile.TarInfo(f"{number:03d}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture
def server(shard):
    with ThreadingHTTPServer(("127.0.0.1", 0), Moods) as server:
        server.daemon_threads = True
        server.data, server.mood, server.asked, server.released = shard, "well", 0, threading.Event()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


def loader_of(server, on_error, timeout=1):
    data = stoker.open(
        f"http://127.0.0.1:{server.server_address[1]}/a.tar", ("png", "cls"), T.ToTensor(), timeout=timeout
    )
    return stoker.DataLoader(data, batch_size=4, seed=3, shuffle=True, num_workers=2, on_error=on_error)


def labels_of(batches):
    return [batch[1].tolist() for batch in batches]


@pytest.mark.parametrize(("mood", "on_error"), [("gone", "skip"), ("gone", "raise"), ("busy", "replace")])
def test_a_server_that_fails_ends_the_epoch_and_can_be_resumed(server, on_error, mood):
    loader = loader_of(server, on_error)
    whole = labels_of(loader)
    loader.set_epoch(0)
    epoch = iter(loader)
    seen = labels_of([next(epoch)])
    server.mood = mood
    with pytest.raises(stoker.TransientError, match="the epoch stops here"):
        while True:
            seen += labels_of([next(epoch)])
    assert loader.bad_samples() == []
    state = loader.state_dict()
    server.mood = "well"
    loader.load_state_dict(state)
    assert seen + labels_of(loader) == whole


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("mood", ["gone", "busy", "hang"])
def test_closing_does_not_wait_for_the_server(server, mood, on_error):
    loader = loader_of(server, on_error, timeout=60)
    epoch = iter(loader)
    next(epoch)
    server.mood = mood
    time.sleep(0.3)
    began = time.monotonic()
    epoch._engine.close()
    assert time.monotonic() - began < 2  # 0.1 s where the machine is not loaded; it took 58 s once
