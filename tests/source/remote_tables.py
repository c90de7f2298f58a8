# SPDX-License-Identifier: Apache-2.0
"""Tables by URL, and tables that name URLs.

    remote_tables.py REMOTE_READ
"""

from __future__ import annotations

import json
import random
import shutil
import tarfile

import tap
from servers import (
    FORKS,
    ROOT,
    clean_environment,
    finished,
    free_port,
    gist,
    last,
    processes,
    read,
    read_all,
    requests_made,
    start,
    start_nginx,
    start_proxy,
    start_rclone,
    stopped_in_the_end,
    without_libcurl,
)

FIELDS = "path=bytes,label=int"
# Names with signs that mean something in URLs, files that end within the first request, behind it, and behind the
# first block of the cache.
FILES = {
    "in/a.bin": 1000,
    "in/b c.bin": 70_000,
    "in/d#e?f=1&g%20h+\u00fc.bin": 3000,
    "in/empty.bin": 0,
    "in/deep/large.bin": 600_000,
    "other/larger.bin": 9_000_000,
}


def prepare():
    www, source = ROOT / "www", random.Random(6)
    (ROOT / "home").mkdir()
    for name, size in FILES.items():
        (www / name).parent.mkdir(parents=True, exist_ok=True)
        (www / name).write_bytes(source.randbytes(size))
    return www


def write_table(path, rows):
    """CSV, or JSON lines by its name."""
    if path.suffix == ".jsonl":
        lines = [json.dumps({"path": row, "label": i}) for i, row in enumerate(rows)]
    else:
        lines = ["path,label", *(f'"{row}",{i}' for i, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    return path


def relative(name):
    return name.removeprefix("in/") if name.startswith("in/") else f".././{name}"


def test_too_large(www, url, proxy):
    """A sample beyond the reader's limit fails before it is read: its size is the server's word, or the index's."""
    largest, limit = max(FILES.values()), {"sample_limit": 2_000_000}
    before = requests_made()
    answer = read(f"{url}/in/t.csv", fields=FIELDS, **limit)
    tap.same((answer["bad"], answer["refused"]), (1, largest), "an object that is too large is refused")
    # The table; one file by two requests, and one request finds out how large the largest is.
    tap.same(requests_made() - before, 1 + len(FILES) + 1, "and not requested")
    answer = read(f"{url}/in/t.csv", fields=FIELDS, cache_dir=ROOT / "limited", **limit)
    tap.same((answer["bad"], answer["refused"]), (1, largest), "also with a cache")
    table = write_table(ROOT / "whole.csv", [f"{proxy}/whole/in/a.bin", f"{proxy}/whole/other/larger.bin"])
    answer = read(table, fields=FIELDS, **limit)
    tap.same((answer["bad"], answer["refused"]), (1, largest), "also by a server without ranges")
    with tarfile.open(www / "sizes.tar", "w") as tar:
        for i, name in enumerate(("in/a.bin", "other/larger.bin", "in/deep/large.bin")):
            tar.add(www / name, f"{i}.bin")
    for where in (url, www):
        answer = read(f"{where}/sizes.tar", fields="bin=bytes", index_dir=ROOT, **limit)
        bad, refused = answer["bad"], answer["refused"]
        tap.ok(bad == 1 and refused >= largest, f"a member of a tar: {bad} bad, {refused} bytes refused")


def test_by_url(www, url):
    rows = [relative(name) for name in FILES]
    for name in ("t.jsonl", "t.csv"):
        here = write_table(www / "in" / name, rows)
        local = read(here, fields=FIELDS)
        tap.ok(local["open"] and local["count"] == 6 and local["bad"] == 0, f"{name}: {local['error']}")
        answers = read_all(f"{url}/in/{name}", fields=FIELDS, **FORKS)
        tap.same([gist(a) for a in answers], processes(*[gist(local)] * 3), f"{name} by URL, in a child, and after")
        tap.same(answers[0]["name"], f"{url}/in/a.bin", "samples are named by their URLs")
    local = gist(local)
    tap.same(gist(read(f"{url}/in/t.csv?x=/y/z", fields=FIELDS)), local, "a query is no part of the folder")
    write_table(www / "rooted.csv", [f"/{name}" for name in FILES])
    tap.same(gist(read(f"{url}/rooted.csv", fields=FIELDS)), local, "paths from the server's root")
    write_table(www / "passwd.csv", ["/etc/passwd", "../../../../etc/passwd", "in/a.bin"])
    answer = read(f"{url}/passwd.csv", fields=FIELDS)
    tap.ok(answer["bad"] == 2 and "/etc/passwd: the server has no such object (404)" in answer["error"],
           f"a table by URL names no local files: {answer['error']}")  # fmt: skip
    before = requests_made()
    tap.ok(read(f"{url}/in/t.csv", fields=FIELDS)["open"], "once more")
    # The table; one of its files by two requests, and the largest by three.
    tap.same(requests_made() - before, 1 + len(FILES) + 1 + 2, "small files take one request each")
    return local


def test_urls_in_tables(www, url, proxy, local):
    def escape(name):
        return name.replace("%", "%25").replace(" ", "%20").replace("#", "%23").replace("?", "%3F")

    def table(base):
        return write_table(ROOT / f"{base.split('/')[-1]}.csv", [f"{base}/{escape(name)}" for name in FILES])

    # Those that wait, beside the others.
    limits = {"flaky": 60_000, "down": 3000, "huge": 3000, "hang": 1500}
    waiting = {
        fault: start(table(f"{proxy}/{fault}"), fields=FIELDS, remote_ms=limit) for fault, limit in limits.items()
    }
    tap.same(gist(read(table(url), fields=FIELDS)), local, "a local table of URLs")
    mixed = [str(www / name) if i % 2 else f"{url}/{escape(name)}" for i, name in enumerate(FILES)]
    tap.same(gist(read(write_table(ROOT / "mixed.csv", mixed), fields=FIELDS)), local, "of files and URLs")
    mixed = [f"{url}/{escape(name)}" if i % 2 else str(www / name) for i, name in enumerate(FILES)]
    answer = read(write_table(ROOT / "mixed.csv", mixed), fields=FIELDS)
    tap.same(gist(answer), local, "the other way round")
    tap.same(answer["backend"], "pread pool", "many at a time, though the first is a file")
    def answer_of(fault):
        if fault in waiting:
            return last(finished(waiting[fault]))
        return read(table(f"{proxy}/{fault}"), fields=FIELDS, remote_ms=10_000)

    for fault in ("late", "short", "less", "reset", "elsewhere", "nameless", "whole", "flaky"):
        answer = answer_of(fault)
        if not tap.ok(gist(answer) == local, f"all are right in spite of: {fault}"):
            tap.note(answer)
    for fault, want in (("huge", "does not report the object's size"), ("two", "changed on the server"),
                        ("down", "503; gave up"), ("hang", "gave up after the time limit")):  # fmt: skip
        answer = answer_of(fault)
        tap.ok(answer["bad"] and want in answer["error"], f"{fault}: {answer['error'][:120]}")
    rows = [f"{url}/in/a.bin", f"{url}/none.bin", f"{url}/in/a b", "s3://x", f"{url}/{'x' * 5000}"]
    answer = read(write_table(ROOT / "some.csv", rows), fields=FIELDS)
    tap.ok(answer["open"] and answer["bad"] == 4, f"rows that cannot be read leave the others: {answer['bad']}")
    secret = url.replace("//", "//user:hush@")
    answer = read(write_table(ROOT / "secret.csv", [f"{secret}/none?key=hush"]), fields=FIELDS)
    tap.ok("404" in answer["error"] and "hush" not in answer["error"] + answer["name"], f"no secrets: {answer['name']}")


def test_cache(www, url, local):
    """The gist of the table after one of its files changed."""
    cache = {"fields": FIELDS, "cache_dir": ROOT / "cache"}

    def requests_of(**options):
        before = requests_made()
        answers = read_all(f"{url}/in/t.csv", **cache, **options)
        right = all(gist(a) == local for a in answers) and len(answers) == options.get("passes", 1)
        tap.ok(right, f"{len(answers)} passes through a cache") or tap.note(answers)
        return requests_made() - before

    first = requests_of(passes=3)
    # The table; the first bytes of each file, which were enough for two, that come again when they are kept; and one
    # block of each other, three of the largest.
    tap.same(first, 1 + len(FILES) + 2 + 2 + 3, "what was read once is not asked for again")
    tap.same(requests_of(passes=2), 1 + len(FILES), "another process asks for versions only, and once")
    blocks = [f for f in (ROOT / "cache").rglob("*") if f.is_file() and f.name != "usage"]
    for block in blocks:
        data = bytearray(block.read_bytes())
        data[-1] ^= 1
        block.write_bytes(data)
    tap.ok(requests_of() > 1 + len(FILES), "damaged blocks are fetched again")
    (www / "in" / "b c.bin").write_bytes(b"new" * 3000)
    new = gist(read(www / "in" / "t.csv", fields=FIELDS))
    tap.same(gist(read(f"{url}/in/t.csv", **cache)), new, "a file that changed is read anew")
    answer = read(f"{url}/in/t.csv", fields=FIELDS, cache_dir=ROOT / "small", cache_bytes=5_000_000, passes=2)
    held = sum(f.stat().st_size for f in (ROOT / "small").rglob("*") if f.is_file() and f.name != "usage")
    tap.ok(gist(answer) == new and held <= 5_000_000 and "full" in answer["note"], f"a small cache: {answer['note']}")
    return new


def test_s3(www, local):
    shutil.copytree(www, ROOT / "s3" / "bucket" / "dir")
    port = free_port()
    why = start_rclone(ROOT / "s3", port)
    if why:
        tap.ok(True, f"S3 # SKIP {why}")
        return
    environment = clean_environment(
        AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_ACCESS_KEY_ID="testkey", AWS_SECRET_ACCESS_KEY="testsecret"
    )
    tap.same(gist(read("s3://bucket/dir/in/t.csv", environment, fields=FIELDS)), local, "a table in a bucket")
    rows = [f"s3://bucket/dir/{name}" for name in FILES]
    table = write_table(ROOT / "s3.csv", rows)
    tap.same(gist(read(table, environment, fields=FIELDS)), local, "a local table of a bucket's objects")
    answer = read(table, clean_environment(AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}"), fields=FIELDS)
    tap.same(answer["bad"], len(FILES), "which wants its keys")


def main():
    with stopped_in_the_end():
        www, port = prepare(), free_port()
        if without_libcurl():
            tap.skip_all("this build has no libcurl")
        start_nginx(www, port)
        url, proxy = f"http://127.0.0.1:{port}", start_proxy(port)
        local = test_by_url(www, url)
        test_urls_in_tables(www, url, proxy, local)
        test_too_large(www, url, proxy)
        test_s3(www, test_cache(www, url, local))
    tap.finish()


if __name__ == "__main__":
    main()
