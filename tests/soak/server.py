# SPDX-License-Identifier: Apache-2.0
"""A file server on this machine that answers one request wrongly: the one with a given number."""

from __future__ import annotations

import http.server
import re
import socket
import struct
import threading

# What it may do; those in SURE must go unnoticed by a client that tries again.
FAULTS = ["cut", "reset", "refuse", "halved", "shifted", "longer", "other", "e500", "e503", "garbage", "stall"]
SURE = {"cut", "reset", "refuse", "e500", "e503"}
LIES = {"halved", "shifted", "longer", "other", "garbage"}
STALL_S = 30


class Handler(http.server.BaseHTTPRequestHandler):
    """GET /NAME is the file NAME, but for the request that the server has been told to answer wrongly."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = self.server.root / self.path.lstrip("/")
        fault = self.server.next_fault()
        try:
            if path.is_file():
                self.serve(path.read_bytes(), fault)
            else:
                self.answer(404, b"")
        except OSError:
            self.close_connection = True

    def answer(self, status, body, span=None, length=None):
        self.send_response(status)
        if span:
            self.send_header("Content-Range", span)
            self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def drop(self, reset):
        """Ends the connection, as a crash of the server does or as a firewall."""
        self.wfile.flush()
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def serve(self, data, fault):
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
        first, last = map(int, asked.groups()) if asked else (0, len(data) - 1)
        body = data[first:last + 1]
        if not body:
            return self.answer(416, b"")
        status, span = 206, f"bytes {first}-{first + len(body) - 1}/{len(data)}"
        if fault == "refuse":
            return self.drop(reset=False)
        if fault in ("e500", "e503"):
            return self.answer(int(fault[1:]), b"not now")
        if fault == "garbage":
            self.wfile.write(b"\0\1\2 this is no answer\r\n" * 3)
            return self.drop(reset=False)
        if fault in ("cut", "reset"):
            self.answer(status, body[:len(body) // 2], span, len(body))
            return self.drop(fault == "reset")
        if fault == "stall":
            self.answer(status, body[:1], span, len(body))
            self.wfile.flush()
            self.server.stopping.wait(STALL_S)
            return self.drop(reset=True)
        if fault == "halved":  # and says so: fewer bytes than were asked for
            body = body[:max(1, len(body) // 2)]
            span = f"bytes {first}-{first + len(body) - 1}/{len(data)}"
        elif fault == "shifted":  # another range than the one that was asked for
            span = f"bytes {first + 1}-{first + len(body)}/{len(data) + 1}"
        elif fault == "longer":
            body += b"and more"
        elif fault == "other":  # of an object of another size
            span = f"bytes {first}-{first + len(body) - 1}/{len(data) + 4096}"
        return self.answer(status, body, span)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, root):
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.fault, self.number, self.asked, self.fired = "none", 0, 0, False
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def handle_error(self, *_):
        """Clients that go away are part of the test."""

    def arm(self, fault, number):
        """Request `number` from here on meets the fault."""
        with self.lock:
            self.fault, self.number, self.asked, self.fired = fault, number, 0, False

    def next_fault(self):
        with self.lock:
            self.asked += 1
            if self.fault == "none" or self.asked != self.number:
                return "none"
            self.fired = True
            return self.fault

    def uri(self, path):
        name = "" if path == self.root else path.relative_to(self.root)
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"

    def close(self):
        self.stopping.set()
        self.shutdown()
        self.server_close()
