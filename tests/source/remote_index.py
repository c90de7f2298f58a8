# SPDX-License-Identifier: Apache-2.0
"""How tar files by URL are indexed: by what they hold themselves, by hopping from header to header, or by reading
them through, whichever is the least work. A server that counts what it sends, with a latency and a rate of its own.

    remote_index.py REMOTE_READ DATA

REMOTE_READ is the program of remote_read.c.
"""

from __future__ import annotations

import http.server
import io
import os
import random
import re
import tarfile
import threading
import time

import tap
from servers import ROOT, as_files, gist, last, read, said, start, stopped_in_the_end, without_libcurl

MIB = 1 << 20
PACKED = 150  # samples in the archive that holds its index


class Files(http.server.BaseHTTPRequestHandler):
    """GET /NAME, by ranges."""

    protocol_version = "HTTP/1.1"
    wbufsize = 16 * MIB  # head and body go out together, or the client's kernel waits 40 ms with its answer

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        path = server.folder / self.path[1:]
        low, high = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        size = path.stat().st_size
        high = min(high, size - 1)
        with path.open("rb") as file:
            file.seek(low)
            body = file.read(high - low + 1)
        with server.lock:
            server.sent.append(len(body))
            server.under_way += 1
            server.at_once = max(server.at_once, server.under_way)
        time.sleep(server.latency + len(body) / server.rate)
        with server.lock:
            server.under_way -= 1
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {low}-{high}/{size}")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{size}-{path.stat().st_mtime_ns}"')
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def serve(latency, rate):
    server = Server(("127.0.0.1", 0), Files)
    server.folder, server.latency, server.rate = ROOT, latency, rate
    server.lock = threading.Lock()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Opened:
    """A dataset by URL: the requests, bytes and seconds of opening it, and then the gist of what it holds."""

    def __init__(self, server, name, passes=1, **options):
        server.sent, server.under_way, server.at_once = [], 0, 0
        began = time.monotonic()
        url = f"http://127.0.0.1:{server.server_address[1]}/{name}"
        process = start(url, passes=passes, wait=1, **options)
        first = process.stdout.readline()  # "ready", or why not
        self.requests, self.sent, self.at_once = len(server.sent), sum(server.sent), server.at_once
        self.seconds = time.monotonic() - began
        rest = process.communicate("\n", timeout=120)[0]
        self.gist = gist(last(said(first + rest))) if passes else None


# ---- archives ------------------------------------------------------------------------------------


def header(name, size):
    info = tarfile.TarInfo(name)
    info.size, info.mtime = size, 1_600_000_000
    return info.tobuf(tarfile.USTAR_FORMAT)


def write_sparse(path, count, low, high):
    """Large members without their bytes: a file with holes."""
    source, at = random.Random(3), 0
    with path.open("wb") as file:
        for i in range(count):
            size = source.randrange(low, high)
            file.seek(at)
            file.write(header(f"{i:05d}.bin", size))
            at += 512 + (size + 511) // 512 * 512
            file.seek(at)
            file.write(header(f"{i:05d}.cls", 2) + b"%02d" % (i % 100) + bytes(510))
            at += 1024
        file.seek(at)
        file.write(bytes(1024))
    os.utime(path, (1_600_000_000, 1_600_000_000))


def write_tar(path, count, largest, **more):
    source = random.Random(4)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for i in range(count):
            body = source.randbytes(source.randrange(1, largest))
            for suffix, data in (("bin", body), ("cls", b"%d" % i)):
                info = tarfile.TarInfo(f"{i:05d}.{suffix}")
                info.size = len(data)
                info.mtime = more.get("mtime", 1_600_000_000)
                archive.addfile(info, io.BytesIO(data))
        end = archive.offset
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return end


def crc32c(data):
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def write_packed(path):
    """As `stoker pack` writes it: without owner and time, and behind the members their index, which is made of the
    one that is kept of the archive without it."""
    end = write_tar(path, PACKED, 120_000, mtime=0)
    read(path, fields="bin,cls", index_dir=ROOT / "without")
    (kept,) = (ROOT / "without").iterdir()
    index = bytearray(kept.read_bytes())
    index[32:40] = end.to_bytes(8, "little")  # the archive's size when the index was written
    index[12:16] = crc32c(index[16:]).to_bytes(4, "little")
    info = tarfile.TarInfo("__index__")
    info.size = len(index)
    head = info.tobuf(tarfile.USTAR_FORMAT)
    path.write_bytes(path.read_bytes()[:end] + head + index + bytes(-len(index) % 512 + 1024))
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return end + 512 + len(index) // 2


# ---- tests ---------------------------------------------------------------------------------------


def test_ways(server):
    for name, fields in (("large.tar", "cls"), ("small.tar", "bin,cls"), ("huge.tar", "cls")):
        size = (ROOT / name).stat().st_size
        here = as_files(ROOT / name, fields=fields)
        tap.ok(here["count"] and not here["bad"], f"{name}: {here['count']} samples in {size >> 20} MiB")
        there = Opened(server, name, fields=fields)
        tap.same(there.gist, here, f"{name} by URL is what it is as a file")
        what = f"{there.requests} requests, {there.sent / size:.3f} of it in {there.seconds:.2f} s"
        if name == "small.tar":
            tap.ok(there.requests < 50 and there.sent < 1.25 * size, f"small members are read through: {what}")
            tap.ok(there.at_once > 1, f"in several places at once: {there.at_once}")
        else:
            tap.ok(there.sent < size / 3, f"large members are passed over: {what}")
    one, four = (Opened(server, name, 0, fields="cls") for name in ("large-0.tar", "large-{0..3}.tar"))
    tap.ok(four.requests > 3 * one.requests and four.at_once > 2,
           f"four archives at once: {four.seconds:.2f} s, one alone {one.seconds:.2f} s")  # fmt: skip


def test_inside(server, path, inside):
    here = as_files(path, fields="bin,cls")
    size = path.stat().st_size
    tap.ok(here["count"] == PACKED and not here["bad"], "an archive that holds its index")
    there = Opened(server, path.name, fields="bin,cls")
    tap.same(there.gist, here, "is by URL what it is as a file")
    tap.ok(there.requests <= 5 and there.sent < 200_000,
           f"and opened by it: {there.requests} requests, {there.sent} of {size} bytes")  # fmt: skip
    data = bytearray(path.read_bytes())
    data[inside] ^= 1
    path.write_bytes(data)
    there = Opened(server, path.name, fields="bin,cls")
    tap.same(there.gist, here, "where that is damaged, the samples are the same")
    tap.ok(there.sent > size / 2, f"but have to be looked for: {there.sent} bytes")


def main():
    with stopped_in_the_end():
        if without_libcurl():
            tap.skip_all("this build has no libcurl")
        write_sparse(ROOT / "large.tar", 40, 2 * MIB, 4 * MIB)
        write_sparse(ROOT / "huge.tar", 12, 20 * MIB, 30 * MIB)
        write_tar(ROOT / "small.tar", 1200, 25_000)
        for i in range(4):
            write_sparse(ROOT / f"large-{i}.tar", 20, 2 * MIB, 4 * MIB)
        server = serve(0.01, 25 * MIB)  # a request costs as much as a quarter of a mebibyte
        test_ways(server)
        test_inside(server, ROOT / "packed.tar", write_packed(ROOT / "packed.tar"))
        server.shutdown()
    tap.finish()


if __name__ == "__main__":
    main()
