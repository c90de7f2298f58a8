# SPDX-License-Identifier: Apache-2.0
"""A server that dies or hangs while an epoch is under way: no bad samples, one error, and closing waits for nobody."""

import contextlib
import io
import os
import re
import signal
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
        with server.counting:
            server.asked += 1
            mood = server.mood if server.asked > server.calm_until else "well"
        if mood == "hang":
            server.released.wait(60)
        if mood in ("hang", "gone"):
            self.close_connection = True
            self.connection.close()
            return
        if mood == "busy":
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


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # connections that come at once, and else would be tried again after seconds


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
    with Server(("127.0.0.1", 0), Moods) as server:
        server.data, server.mood, server.released = shard, "well", threading.Event()
        server.asked, server.calm_until, server.counting = 0, 0, threading.Lock()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


def open_shard(server, *names, timeout=60):
    urls = [f"http://127.0.0.1:{server.server_address[1]}/{name}" for name in names or ("a.tar",)]
    return stoker.open(urls if names else urls[0], ("png", "cls"), T.ToTensor(), timeout=timeout)


def loader_of(server, on_error, timeout=60, num_workers=2):
    data = open_shard(server, timeout=timeout)
    return stoker.DataLoader(data, batch_size=4, seed=3, shuffle=True, num_workers=num_workers, on_error=on_error)


def labels_of(batches):
    return [batch[1].tolist() for batch in batches]


@pytest.mark.parametrize(("mood", "on_error"), [("gone", "skip"), ("gone", "raise"), ("busy", "replace")])
def test_a_server_that_fails_ends_the_epoch_and_can_be_resumed(server, on_error, mood):
    whole = labels_of(loader_of(server, on_error))
    loader = loader_of(server, on_error, timeout=1)
    server.mood, server.calm_until = mood, server.asked + COUNT // 2  # later, all would have been read ahead
    epoch, seen = iter(loader), []
    with pytest.raises(stoker.TransientError, match="the epoch stops here"):
        while True:
            seen += labels_of([next(epoch)])
    assert loader.bad_samples() == []
    state = loader.state_dict()
    server.mood = "well"
    patient = loader_of(server, on_error)
    patient.load_state_dict(state)
    assert seen + labels_of(patient) == whole


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("mood", ["gone", "busy", "hang"])
def test_closing_does_not_wait_for_the_server(server, mood, on_error):
    loader = loader_of(server, on_error)
    epoch = iter(loader)
    next(epoch)
    server.mood = mood
    time.sleep(0.3)
    began = time.monotonic()
    epoch._engine.close()
    assert time.monotonic() - began < 20  # 0.1 s on an idle machine; it took 58 s once


@contextlib.contextmanager
def interrupted(after=0.2):
    """Ctrl-C a while from now: KeyboardInterrupt soon after it."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    assert time.monotonic() - pressed[0] < 20  # 0.1 s on an idle machine; the timeout is 60 s
    timer.join()


@pytest.mark.parametrize("names", [(), ("a.tar", "b.tar", "c.tar")])
def test_an_interrupt_ends_opening(server, names):
    server.mood = "hang"
    with interrupted():
        open_shard(server, *names)
    server.mood = "well"
    server.released.set()
    assert len(open_shard(server, *names)) == COUNT * max(1, len(names))


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_interrupt_ends_waiting_for_a_batch(server, num_workers, on_error):
    loader = loader_of(server, on_error, num_workers=num_workers)
    server.mood = "hang"
    with interrupted():
        next(iter(loader))
    state = loader.state_dict()
    server.mood = "well"
    server.released.set()
    assert loader.bad_samples() == []
    loader.load_state_dict(state)
    assert sorted(sum(labels_of(loader), [])) == list(range(COUNT))


def test_a_handler_that_does_not_raise_runs_while_a_batch_is_awaited(server):
    loader = loader_of(server, "raise", num_workers=0)
    called = []
    before = signal.signal(signal.SIGUSR1, lambda *_: called.append(time.monotonic()) or server.released.set())
    try:
        server.mood = "hang"
        timer = threading.Timer(0.2, lambda: (setattr(server, "mood", "well"), os.kill(os.getpid(), signal.SIGUSR1)))
        timer.start()
        assert len(labels_of(loader)) == COUNT // 4
    finally:
        signal.signal(signal.SIGUSR1, before)
        timer.join()
    assert called
