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
from servers import ROOT, gist, read, stopped_in_the_end

MIB = 1 << 20


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


def by_url(server, name, **options):
    server.sent, server.under_way, server.at_once = [], 0, 0
    return gist(read(f"http://127.0.0.1:{server.server_address[1]}/{name}", **options))


def opened(server, name, **options):
    """Requests, bytes and seconds of opening alone."""
    began = time.monotonic()
    by_url(server, name, passes=0, **options)
    return len(server.sent), sum(server.sent), time.monotonic() - began


def local(name, **options):
    return gist(read(ROOT / name, index_dir=ROOT / "index", **options))


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
    end = write_tar(path, 300, 120_000, mtime=0)
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
        here = local(name, fields=fields)
        tap.ok(here["count"] and not here["bad"], f"{name}: {here['count']} samples in {size >> 20} MiB")
        tap.same(by_url(server, name, fields=fields), here, f"{name} by URL is what it is as a file")
        requests, sent, took = opened(server, name, fields=fields)
        what = f"{requests} requests, {sent / size:.3f} of it in {took:.2f} s"
        if name == "small.tar":
            tap.ok(requests < 50 and sent < 1.25 * size, f"small members are read through: {what}")
            tap.ok(server.at_once > 1, f"in several places at once: {server.at_once}")
        else:
            tap.ok(sent < size / 3, f"large members are passed over: {what}")
    requests, _, alone = opened(server, "large-0.tar", fields="cls")
    total, _, took = opened(server, "large-{0..3}.tar", fields="cls")
    tap.ok(total > 3 * requests and server.at_once > 2,
           f"four archives at once: {took:.2f} s, one alone {alone:.2f} s")  # fmt: skip


def test_inside(server, path, inside):
    here = local(path.name, fields="bin,cls")
    size = path.stat().st_size
    tap.ok(here["count"] == 300 and not here["bad"], "an archive that holds its index")
    tap.same(by_url(server, path.name, fields="bin,cls"), here, "is by URL what it is as a file")
    requests, sent, _ = opened(server, path.name, fields="bin,cls")
    tap.ok(requests <= 5 and sent < 200_000, f"and opened by it: {requests} requests, {sent} of {size} bytes")
    data = bytearray(path.read_bytes())
    data[inside] ^= 1
    path.write_bytes(data)
    tap.same(by_url(server, path.name, fields="bin,cls"), here, "where that is damaged, the samples are the same")
    _, sent, _ = opened(server, path.name, fields="bin,cls")
    tap.ok(sent > size / 2, f"but have to be looked for: {sent} bytes")


def main():
    with stopped_in_the_end():
        if "no libcurl" in read("http://127.0.0.1:9/x.tar", remote_ms=200)["error"]:
            tap.skip_all("this build has no libcurl")
        write_sparse(ROOT / "large.tar", 60, 2 * MIB, 4 * MIB)
        write_sparse(ROOT / "huge.tar", 12, 20 * MIB, 30 * MIB)
        write_tar(ROOT / "small.tar", 2000, 25_000)
        for i in range(4):
            write_sparse(ROOT / f"large-{i}.tar", 20, 2 * MIB, 4 * MIB)
        server = serve(0.01, 25 * MIB)  # a request costs as much as a quarter of a mebibyte
        test_ways(server)
        test_inside(server, ROOT / "packed.tar", write_packed(ROOT / "packed.tar"))
        server.shutdown()
    tap.finish()


if __name__ == "__main__":
    main()
