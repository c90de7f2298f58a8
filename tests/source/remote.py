# SPDX-License-Identifier: Apache-2.0
"""Datasets by URL: real servers on this machine (nginx, rclone's S3), and a proxy that lies, breaks and hangs.

    remote.py REMOTE_READ DATA

REMOTE_READ is the program of remote_read.c, DATA the folder of test files.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import tap
from servers import (
    FORKS,
    ROOT,
    Proxy,
    as_files,
    clean_environment,
    finished,
    free_port,
    gist,
    last,
    make_certificate,
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

DATA = pathlib.Path(sys.argv[2])
MIB = 1 << 20


# ---- data ----------------------------------------------------------------------------------------


def write_tar(path, seed, count=40, largest=200_000):
    source = random.Random(seed)
    with tarfile.open(path, "w") as archive:
        for i in range(count):
            for suffix, body in (("bin", source.randbytes(source.randrange(1, largest))), ("cls", b"%d" % i)):
                member = tarfile.TarInfo(f"{seed}-{i:04d}.{suffix}")
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body))
    os.utime(path, (1_600_000_000, 1_600_000_000))


def prepare():
    www = ROOT / "www"
    www.mkdir()
    for shard in range(3):
        write_tar(www / f"s-{shard}.tar", shard)
    write_tar(www / "a b+\u00fc.tar", 9, 5)
    for pattern in ("npy/*.npy", "npz/*.npz", "zip/*.zip", "tfrecord/*.tfrecord*", "hdf5/l*.h5", "lmdb/*.mdb"):
        for file in sorted(DATA.glob(pattern))[: max(2, tap.share_of(4))]:
            shutil.copy(file, www / file.name)
    (www / "empty.tar").write_bytes(b"")
    (www / "nameless").write_bytes((www / "s-0.tar").read_bytes())
    (www / "secret").mkdir()
    (www / "secret" / "s.tar").write_bytes((www / "s-0.tar").read_bytes())
    (ROOT / "home").mkdir()
    return www


# ---- tests ---------------------------------------------------------------------------------------


def test_http(www, url):
    shards = "s-{0..2}.tar"
    local = as_files(www / shards, fields="bin")
    tap.ok(local["count"] == 120 and local["bad"] == 0, "the local files can be read at all")
    answers = read_all(f"{url}/{shards}", fields="bin", **FORKS)
    tap.same([gist(a) for a in answers], processes(*[local] * 3),
             "three tar files by URL, in the process, in its child, and after")  # fmt: skip
    tap.same(gist(read(f"{url}/s-0.tar::{url}/s-1.tar::{url}/s-2.tar", fields="bin")), local, "as a list")
    one = as_files(www / "s-0.tar", fields="bin")
    tap.same(gist(read(f"{url}/nameless", fields="bin")), one, "a tar file told by its first bytes")
    tap.same(gist(read(f"tar:{url}/s-0.tar?a=1.x", fields="bin")), one, "a query behind the name")
    odd = as_files(www / "a b+\u00fc.tar", fields="bin")
    tap.same(gist(read(f"{url}/a%20b+%C3%BC.tar", fields="bin")), odd, "a name with signs in it")
    for file in sorted(www.iterdir()):
        if file.suffix in (".npy", ".npz", ".zip", ".h5", ".mdb") or ".tfrecord" in file.name:
            here, there = read(file, index_dir=ROOT / "index"), read(f"{url}/{file.name}")
            here.get("open") or tap.note(f"{file.name}: {here['error']}")
            tap.same(gist(there), gist(here), f"{file.name} by URL is what it is as a file")
    tap.ok("file is empty" in read(f"{url}/empty.tar")["error"], "an empty object is no tar file")
    for name, want in (("none.tar", "no such object (404)"), ("secret/s.tar", "denied by the server (403)")):
        answer = read(f"{url}/{name}")
        tap.ok(not answer["open"] and want in answer["error"], f"{name}: {answer['error'][-120:]}")
    answer = read(f"http://user:hush@127.0.0.1:{free_port()}/x.tar?key=hush", remote_ms=400)
    tap.ok("onnect" in answer["error"] and "hush" not in answer["error"], f"nobody there: {answer['error']}")


def test_https(www, port, certificate):
    if not certificate:
        tap.ok(True, "HTTPS # SKIP openssl is not installed")
        return
    url = f"https://127.0.0.1:{port}/s-0.tar"
    local = as_files(www / "s-0.tar", fields="bin")
    trusting = clean_environment(SSL_CERT_FILE=str(certificate[0]))
    tap.same([gist(a) for a in read_all(url, trusting, fields="bin", **FORKS)], processes(*[local] * 3),
             "https, trusting SSL_CERT_FILE")  # fmt: skip
    tap.ok("HTTP/2.0" in (ROOT / "access.log").read_text(), "by HTTP/2, where the server speaks it")
    answer = read(url, fields="bin")
    told = "certificate" in answer["error"] and "SSL_CERT_FILE" in answer["error"]
    tap.ok(told and "gave up" not in answer["error"], f"else not, at once: {answer['error']}")


def test_index(url):
    kept = ROOT / "kept"
    first = read(f"{url}/s-{{0..2}}.tar", fields="cls", index_dir=kept)
    before = requests_made()
    start(f"{url}/s-{{0..2}}.tar", fields="cls", index_dir=kept, passes=0).communicate()
    tap.same(requests_made() - before, 3, "with its index kept, an archive is opened by one request")
    tap.same(gist(read(f"{url}/s-{{0..2}}.tar", fields="cls", index_dir=kept)), gist(first), "and read as before")


def test_joined(www, url):
    """Samples in their order lie side by side."""
    kept = {"fields": "bin", "index_dir": ROOT / "kept"}
    local = as_files(www / "s-{0..2}.tar", fields="bin", order=1)
    answers, made = [], []
    # A thread that is ahead of the reader reads its sample itself. So once in five times: the machine may be busy.
    while not made or (made[-1] >= 90 and len(made) < 5):
        before = requests_made()
        answers.append(gist(read(f"{url}/s-{{0..2}}.tar", order=1, **kept)))
        made.append(requests_made() - before)
    tap.ok(all(answer == local for answer in answers), "samples in their order")
    tap.ok(made[-1] < 90, f"120 of them by {made} requests")
    tap.same(gist(read(f"{url}/s-{{0..2}}.tar", order=1, connections=1, **kept)), local, "over one connection")


def test_stopping(proxy):
    """Where the server hangs for 30 s, or is gone, for which a reader has 60 s, closing does not wait for it."""
    faults, kept = ("hang-later", "503-later"), {"fields": "bin", "index_dir": ROOT / "kept"}
    Proxy.later.clear()
    for fault in faults:
        read(f"{proxy}/{fault}/s-0.tar", **kept)
    Proxy.later.set()
    stopped = [start(f"{proxy}/{fault}/s-0.tar", stop=1, **kept) for fault in faults]
    for fault, process in zip(faults, stopped, strict=True):
        answer = last(finished(process))
        # A tenth of a second, unless the machine is busy; who waits takes 30 s or 60 s.
        tap.ok(answer["open"] and answer["ms"] < 20_000, f"{fault}: closed within {answer.get('ms')} ms")


def test_faults(www, proxy):
    local = as_files(www / "s-0.tar", fields="bin")
    # Those that wait, beside the others.
    limits = {"flaky": 60_000, "down": 3000, "hang": 1500}
    waiting = {
        fault: start(f"{proxy}/{fault}/s-0.tar", fields="bin", remote_ms=limit) for fault, limit in limits.items()
    }

    def answer_of(fault):
        if fault in waiting:
            return last(finished(waiting[fault]))
        return read(f"{proxy}/{fault}/s-0.tar", fields="bin", remote_ms=10_000)

    for fault, what in (
        ("late", "10 ms late"),
        ("short", "bodies that end in the middle"),
        ("less", "bodies shorter than their range"),
        ("reset", "connections reset in the middle"),
        ("elsewhere", "a redirection"),
        ("nameless", "neither ETag nor Last-Modified"),
        ("whole", "no ranges, where all is small"),
        ("behind", "bytes behind an answer"),
        ("cut", "a Content-Length that is too short"),
        ("flaky", "every other answer 500 or 503"),
    ):
        answer = answer_of(fault)
        if not tap.ok(gist(answer) == local, f"all samples are right in spite of: {what}"):
            tap.note(answer)
    for fault, want in (
        ("forbidden", "denied by the server (403)"),
        ("gone", "shorter than when it was opened"),
        ("loop", "redirect"),
        ("file", "nsupported protocol"),
        ("changed", "changed on the server"),
        ("larger", "changed on the server"),
        ("shifted", "a different range"),
        ("two", "changed on the server"),
        ("small", "a different range"),
        ("more", ""),
        ("huge", "does not report the object's size"),
        ("down", "status 503; gave up after"),
        ("hang", "gave up after the time limit"),
    ):
        answer = answer_of(fault)
        if fault == "more":  # what stands behind the body is not part of it, or not asked for
            never = not answer["open"] or answer["bad"] or gist(answer) == local
            tap.ok(never, "more bytes than were asked for are never taken for data")
            continue
        right = want in answer["error"] and (not answer["open"] or answer["bad"])
        if not tap.ok(right, f"{fault} is an error in bounded time: {answer['error'][:160]}"):
            tap.note(answer)


def blocks_of(cache):
    return [f for f in cache.rglob("*") if f.is_file() and f.parent != cache]


def size_of(cache):
    return sum(f.stat().st_size for f in blocks_of(cache))


def test_cache(www, url):
    cache, shards = ROOT / "cache", f"{url}/s-{{0..2}}.tar"
    local = as_files(www / "s-{0..2}.tar", fields="bin")
    tap.same(gist(read(shards, fields="bin", cache_dir=cache)), local, "through an empty cache")
    before = requests_made()
    tap.same(gist(read(shards, fields="bin", cache_dir=cache)), local, "through a full one")
    tap.same(requests_made() - before, 3, "which asks the server for nothing but the objects' versions")
    for i, block in enumerate(blocks_of(cache)):
        data = bytearray(block.read_bytes())
        data[(100, len(data) // 2, 5)[i % 3]] ^= 1
        block.write_bytes(data if i % 2 else data[:-1])
    tap.same(gist(read(shards, fields="bin", cache_dir=cache)), local, "damaged blocks are fetched again")
    forks = FORKS and FORKS | {"passes": 0}
    answers = read_all(shards, fields="bin", cache_dir=ROOT / "forked", **forks)
    tap.same([gist(a) for a in answers], processes(*[local] * 2), "a child fills the cache that its parent opened")
    for seed in (20, 21):
        write_tar(www / "c.tar", seed)
        os.utime(www / "c.tar", (1_600_000_000 + seed,) * 2)
        here = gist(read(www / "c.tar", fields="bin", index_dir=ROOT / "index"))
        there = gist(read(f"{url}/c.tar", fields="bin", cache_dir=cache))
        tap.same(there, here, f"neither cache nor index outlive the object's version ({seed})")
    together = [start(shards, fields="bin", cache_dir=ROOT / "shared") for _ in range(4)]
    answers = [json.loads(p.communicate(timeout=60)[0]) for p in together]
    tap.same([gist(a) for a in answers], [local] * 4, "four processes fill one cache")
    tap.same(size_of(ROOT / "shared"), size_of(ROOT / "forked"), "and hold each block once")


def test_limit(www, url):
    cache = ROOT / "small"
    local = as_files(www / "s-{0..2}.tar", fields="bin")
    answer = read(f"{url}/s-{{0..2}}.tar", fields="bin", cache_dir=cache, cache_bytes=5 * MIB)
    tap.same(gist(answer), local, "a cache too small for the dataset")
    tap.ok(size_of(cache) <= 5 * MIB and blocks_of(cache), f"stays within its limit: {size_of(cache)} bytes")
    tap.ok("full of data that this epoch needs" in answer["note"], f"and says so: {answer['note']}")
    # One dataset open makes another's blocks stay; closed, they go.
    roomy = {"fields": "bin", "cache_dir": ROOT / "lru", "cache_bytes": 6 * MIB}
    holder = start(f"{url}/s-0.tar", passes=2, wait=1, **roomy)
    holder.stdout.readline()
    (ROOT / "lru" / "usage").write_bytes(b"")
    holder.stdin.write("\n")
    holder.stdin.flush()
    alone = as_files(www / "s-0.tar", fields="bin")
    tap.same(gist(json.loads(holder.stdout.readline() or "{}")), alone, "a count of the cache cut short kills nobody")
    held = set(blocks_of(ROOT / "lru"))
    read(f"{url}/s-1.tar", **roomy)
    tap.ok(held and held <= set(blocks_of(ROOT / "lru")), "what an open dataset has read is not removed")
    holder.communicate("\n", timeout=60)
    read(f"{url}/s-2.tar", **roomy)
    tap.ok(not held & set(blocks_of(ROOT / "lru")), "what none has open makes room, the longest unused first")
    tap.ok(size_of(ROOT / "lru") <= 6 * MIB, "within the limit")


def test_kill(www, proxy):
    cache = ROOT / "killed"
    local = as_files(www / "s-{0..2}.tar", fields="bin")
    for delay in (0.02, 0, 0.01, 0.05, 0.1)[: max(2, tap.share_of(5))]:
        before = set(blocks_of(cache))
        victim = start(f"{proxy}/late/s-{{0..2}}.tar", fields="bin", cache_dir=cache)
        while victim.poll() is None and not set(blocks_of(cache)) - before:
            time.sleep(0.002)
        time.sleep(delay)
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    for folder in [f for f in cache.iterdir() if f.is_dir()][:1]:
        (folder / "t1.2.3").write_bytes(b"left behind")
    tap.same(gist(read(f"{proxy}/late/s-{{0..2}}.tar", fields="bin", cache_dir=cache)), local, "after kill -9")
    tap.ok(not [f for f in blocks_of(cache) if f.name[0] == "t"], "what was half written is swept away")


def test_full_disk(www, url):
    local = as_files(www / "s-0.tar", fields="bin")
    disk = ROOT / "disk"
    disk.mkdir()
    mounted = os.getuid() == 0 and not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, check=False
    ).returncode
    if not mounted:
        return tap.ok(True, "a full disk # SKIP a small file system cannot be mounted here")
    try:
        answer = read(f"{url}/s-0.tar", fields="bin", cache_dir=disk / "cache")
        tap.same(gist(answer), local, "a full disk does no harm")
        tap.ok("disk of cache_dir is full" in answer["note"], f"and is noted: {answer['note']}")
        tap.same(blocks_of(disk / "cache"), [], "and nothing half written stays")
    finally:
        subprocess.run(["umount", str(disk)], check=False)
    return None


def test_s3(www):
    store = ROOT / "s3"
    shutil.copytree(www, store / "bucket" / "dir")
    (store / "bucket" / "dir" / "a b+\u00fc=&c.tar").write_bytes((www / "s-0.tar").read_bytes())
    port = free_port()
    why = start_rclone(store, port)
    if why:
        tap.ok(True, f"S3 # SKIP {why}")
        return
    endpoint = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "eu-west-1"}
    good = {"AWS_ACCESS_KEY_ID": "testkey", "AWS_SECRET_ACCESS_KEY": "testsecret"}
    shards = "s3://bucket/dir/s-{0..2}.tar"
    local = as_files(www / "s-{0..2}.tar", fields="bin")

    def by(uri=shards, **environment):
        return read(uri, clean_environment(**endpoint, **environment), fields="bin")

    tap.same(gist(by(**good)), local, "S3, signed by the keys of the environment")
    one = as_files(www / "s-0.tar", fields="bin")
    tap.same(gist(by("s3://bucket/dir/a b+\u00fc=&c.tar", **good)), one, "a key with signs in it")
    answer = by(**(good | {"AWS_SECRET_ACCESS_KEY": "wrong"}))
    tap.ok("denied by the server (403)" in answer["error"], "a wrong secret is refused")
    tap.same(gist(by(AWS_SESSION_TOKEN="token", **good)), local, "with a session's token")
    tap.ok("404" in by("s3://bucket/dir/none.tar", **good)["error"], "no such key")
    tap.ok("BUCKET/KEY" in by("s3://bucket", **good)["error"], "a bucket alone is no object")
    home = ROOT / "home" / ".aws"
    home.mkdir()
    (home / "credentials").write_text(
        "[default]\naws_access_key_id = testkey\naws_secret_access_key = wrong\n"
        "[other]\naws_access_key_id=testkey\naws_secret_access_key = testsecret\n"
    )
    (home / "config").write_text(
        f"[default]\nregion = x\n[profile other]\nregion = eu-west-1\nendpoint_url = http://127.0.0.1:{port}\n"
    )
    answer = read(shards, clean_environment(AWS_PROFILE="other"), fields="bin")
    tap.same(gist(answer), local, "keys, region and endpoint of a profile in ~/.aws")
    tap.ok("403" in by()["error"], "the default profile's wrong secret")
    tap.same(gist(by(**good)), local, "the environment's keys before the profile's")
    tap.ok("no such profile" in by(AWS_PROFILE="nobody")["error"], "a profile that is nowhere")


def test_public_s3(www, proxy):
    """Buckets for which nobody signs, and what is sent to those who want a signature."""
    local = as_files(www / "s-0.tar", fields="bin")
    (www / "bucket").mkdir()
    shutil.copy(www / "s-0.tar", www / "bucket" / "s-0.tar")
    shutil.rmtree(ROOT / "home" / ".aws", ignore_errors=True)
    good = {"AWS_ACCESS_KEY_ID": "testkey", "AWS_SECRET_ACCESS_KEY": "testsecret", "AWS_SESSION_TOKEN": "a+b/c"}

    def by(fault, **environment):
        Proxy.asked.clear()
        return read("s3://bucket/s-0.tar", clean_environment(AWS_ENDPOINT_URL=f"{proxy}/{fault}", **environment),
                    fields="bin", index_dir=ROOT / "public")  # fmt: skip

    tap.same(gist(by("record")), local, "a public bucket, without keys")
    tap.ok(Proxy.asked and not any(h["Authorization"] or h["X-Amz-Date"] for h in Proxy.asked), "nothing is signed")
    tap.same(gist(by("record", **good, AWS_REGION="eu-west-3")), local, "with keys")
    signed = "Credential=testkey/", "/eu-west-3/s3/aws4_request", "x-amz-security-token"
    right = all(all(part in (h["Authorization"] or "") for part in signed) for h in Proxy.asked)
    tap.ok(right, "all is signed for the region, the token with it")
    tap.ok(all(h["X-Amz-Security-Token"] == "a+b/c" for h in Proxy.asked), "the session's token is sent")
    for fault in ("moved", "malformed", "denied"):
        answer = by(fault, **good)
        tap.ok("AWS_REGION=eu-central-1" in answer["error"], f"another region is named: {answer['error'][-110:]}")
    answer = by("unsigned")
    right = "AWS_ACCESS_KEY_ID" in answer["error"] and "InvalidRequest" in answer["error"]
    tap.ok(right, f"a remedy, where there are no keys: {answer['error'][-150:]}")
    answer = by("denied", **good, AWS_REGION="eu-central-1")
    tap.ok("check the AWS credentials" in answer["error"], "unless it is that which was asked")
    port = free_port()
    why = start_rclone(ROOT / "s3", port, None)
    if why:
        tap.ok(True, f"a public S3 # SKIP {why}")
        return
    public = clean_environment(AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")
    tap.same(gist(read("s3://bucket/dir/s-0.tar", public, fields="bin")), local, "a public bucket of rclone's S3")


def main():
    with stopped_in_the_end():
        www, port = prepare(), free_port()
        if without_libcurl():
            tap.skip_all("this build has no libcurl")
        certificate, safe_port = make_certificate(), free_port()
        start_nginx(www, port, safe_port, certificate)
        url, proxy = f"http://127.0.0.1:{port}", start_proxy(port)
        test_http(www, url)
        test_https(www, safe_port, certificate)
        test_index(url)
        test_joined(www, url)
        test_stopping(proxy)
        test_faults(www, proxy)
        test_cache(www, url)
        test_limit(www, url)
        test_kill(www, proxy)
        test_full_disk(www, url)
        test_s3(www)
        test_public_s3(www, proxy)
    tap.finish()


if __name__ == "__main__":
    main()
