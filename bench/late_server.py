# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on this machine for one file, whose every answer comes later by some milliseconds.

    with late_server(path, milliseconds) as url: ...

It knows GET and HEAD with one range, and keeps connections. Forked processes share the port, so that it is no
bottleneck on machines with many CPUs. Requests with "?one-at-a-time" queue for their turn.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator

_REQUEST = re.compile(rb"^(GET|HEAD) ")
_RANGE = re.compile(rb"\r\nrange: *bytes=(\d+)-(\d*)", re.IGNORECASE)


def _answer(link: socket.socket, head: bytes, fd: int, size: int) -> bool:
    kind = _REQUEST.match(head)
    if not kind:
        return False
    wanted = _RANGE.search(head)
    first, last = 0, size - 1
    if wanted:
        first = int(wanted[1])
        last = min(int(wanted[2]), last) if wanted[2] else last
    status = "206 Partial Content" if wanted else "200 OK"
    place = f"Content-Range: bytes {first}-{last}/{size}\r\n" if wanted else ""
    link.sendall(
        (
            f'HTTP/1.1 {status}\r\nContent-Length: {last - first + 1}\r\nAccept-Ranges: bytes\r\nETag: "late"\r\n'
            f"{place}\r\n"
        ).encode()
    )
    while kind[1] == b"GET" and first <= last:
        first += os.sendfile(link.fileno(), fd, first, last - first + 1)
    return True


def _serve(link: socket.socket, fd: int, size: int, late: float, one: contextlib.AbstractContextManager) -> None:
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b""
    with link, contextlib.suppress(OSError):
        while True:
            while b"\r\n\r\n" not in data:
                more = link.recv(65536)
                if not more:
                    return
                data += more
            head, data = data.split(b"\r\n\r\n", 1)
            with one if b"?one-at-a-time " in head.partition(b"\r\n")[0] else contextlib.nullcontext():
                time.sleep(late)
            if not _answer(link, head + b"\r\n", fd, size):
                return


def _run(listener: socket.socket, path: str, late: float, one: contextlib.AbstractContextManager) -> None:
    fd, size = os.open(path, os.O_RDONLY), os.stat(path).st_size
    while True:
        link, _ = listener.accept()
        threading.Thread(target=_serve, args=(link, fd, size, late, one), daemon=True).start()


@contextlib.contextmanager
def late_server(path: str | os.PathLike, milliseconds: float, processes: int = 4) -> Iterator[str]:
    """The URL of the file at `path`, while the server runs."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    children, one = [], multiprocessing.get_context("fork").Lock()
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                _run(listener, os.fspath(path), milliseconds / 1e3, one)
            finally:
                os._exit(0)
        children.append(child)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/{os.path.basename(path)}"
    finally:
        listener.close()
        for child in children:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)
