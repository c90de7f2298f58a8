# SPDX-License-Identifier: Apache-2.0
"""The tar source against the Python package webdataset itself: keys, suffixes, bytes, braces. Speaks TAP."""

import gzip
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path

import tap

# webdataset reads without torch as well, whose import takes longer than all else here.
sys.modules["torch"] = None
try:
    import braceexpand
    import numpy
    import webdataset
    from webdataset.tariterators import base_plus_ext
except ImportError as why:
    tap.skip_all(f"webdataset is not installed: {why}")
warnings.simplefilter("ignore")


def write(path, members, mode="w", **options):
    """`members` are names with bytes, or whole TarInfo objects with bytes."""
    with tarfile.open(path, mode, **options) as archive:
        for name, data in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            if info.isreg():
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def theirs(url):
    """[(key, {suffix: bytes})], and the error that ended it, if one did."""
    found = []
    try:
        for sample in webdataset.WebDataset(str(url), shardshuffle=False, empty_check=False):
            key = sample.pop("__key__")
            sample.pop("__url__")
            sample.pop("__local_path__", None)
            found.append((key, sample))
    except Exception as why:
        return found, why
    return found, None


def ours(url, want):
    """The same from the dump: each suffix that webdataset saw is asked for alone."""
    seen = sorted({suffix for _, sample in want for suffix in sample})
    suffixes = [suffix for suffix in seen if suffix and not re.search("[,;= ]", suffix)]  # others cannot be asked for
    keys, *opened = tap.opened_each(f"tar:{url}", ["__key__", *(f"{suffix}=bytes" for suffix in suffixes)])
    keys = [sample[0] if isinstance(sample, tuple) else sample for sample in keys.samples]
    samples = [(key if isinstance(key, Exception) else os.fsdecode(key), {}) for key in keys]
    for suffix, data in zip(suffixes, opened, strict=True):
        for (_, sample), got in zip(samples, data.samples, strict=True):
            if not isinstance(got, Exception):
                sample[suffix] = got[0]
    return samples


def askable(samples):
    return [(key, {s: d for s, d in sample.items() if s and not re.search("[,;= ]", s)}) for key, sample in samples]


def compare(url, what):
    want, error = theirs(url)
    if error:
        tap.note(f"webdataset: {error}")
    tap.same(ours(url, want), askable(want), what)


def names(rng):
    """Names made of the characters that the rules turn on."""
    odd = ["a", "B", "0", ".", "..", "/", "//", "_", "__", "-", "jpg", "JPG", "png", "\n", " ", "é", "\udcff", "~"]
    return ["".join(rng.choice(odd) for _ in range(rng.randrange(1, 9))) for _ in range(20000)]


def split_names():
    rng = random.Random(6)
    tried = [n for n in names(rng)] + [
        "a/b.c/000.seg.png", "./000.jpg", "noext", ".foo", "dir/.foo.jpg", "a..jpg", "a/b.", "a.b/.x.jpg", "/.x",
        "__x__", "__x__/a.jpg", "__x/a.jpg", "a/__x__", "__", "___", "____", "__a__.jpg", "a/__b__/c.jpg", "__x__\n"]
    lines = tap.run("names", input="".join(os.fsencode(n).hex() + "\n" for n in tried).encode())
    wrong = []
    for name, line in zip(tried, lines, strict=True):
        hidden = "/" not in name and name.startswith("__") and name.endswith("__")
        key, suffix = (None, None) if hidden or re.match(r"__[^/]*__($|/)", name) else base_plus_ext(name)
        got = (None, None) if line == "-" else tuple(tap.text(part) for part in line.split(" "))
        if got != (key, suffix):
            wrong.append((name, got, (key, suffix)))
    if not tap.ok(not wrong, f"{len(tried)} odd names are split as webdataset splits them"):
        tap.note(wrong[:10])


def braces():
    patterns = ["a-{000..003}.tar", "{1..3}", "{3..1}", "{07..10}", "{a..e}", "{a..g..2}", "{Z..a}", "{2..-1}",
                "{1..10..3}", "{10..1..4}", "x{,.b}", "p{2.{5..7},3.{2,3}}", "{a,b}{c,d}", "{}", "{a}", "{a{1,2}}",
                r"{1\{2,3}", r"\{a,b\}", "{-05..5..5}", "{a,b{1..2},c}z", "{1..2..0}", "{a..c", "a}", "{{a,b}",
                "{0..0}", "{00..0}", "{A..C}{1,2}", "plain", "{,}", "{a,}", "{a,,b}", "{1..a}", "{aa..b}", "a\\"]
    wrong = []
    for pattern, lines in zip(patterns, tap.parts(tap.run("braces", *patterns)), strict=True):
        try:
            want = list(braceexpand.braceexpand(pattern))
        except ValueError:
            want = None
        got = None if lines and lines[0].startswith("error") else [tap.text(line) for line in lines]
        if got != want:
            wrong.append((pattern, got, want))
    if not tap.ok(not wrong, f"{len(patterns)} patterns of braces expand as braceexpand does it"):
        tap.note(wrong)


def formats(root):
    long = "deep/" * 30 + "name"
    members = [("a.jpg", b"1"), ("a.cls", b"7"), (long + ".jpg", b"22"), (long + ".cls", b"8"),
               ("b/c.d/x.seg.PNG", b"333"), ("b/c.d/x.Json", b"{}"), ("é\udcff.txt", b"n"), ("z.empty", b"")]
    for name, fmt in ("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT):
        kept = [m for m in members if name != "ustar" or len(m[0]) < 200]
        compare(write(root / f"{name}.tar", kept, format=fmt), f"{name}: long and odd names")
    headers = {"comment": "x" * 3000, "mtime": "1.5"}
    compare(write(root / "g.tar", members, format=tarfile.PAX_FORMAT, pax_headers=headers), "a global PAX header")
    aligned = []
    for i in range(4):
        info = tarfile.TarInfo(f"{i}.bin")
        info.pax_headers = {"comment": "y" * (700 * i)}
        aligned.append((info, bytes([i]) * 5000))
    compare(write(root / "aligned.tar", aligned, format=tarfile.PAX_FORMAT), "PAX comments as filling")


def kinds(root):
    folder, link, fifo = tarfile.TarInfo("dir.d"), tarfile.TarInfo("s.jpg"), tarfile.TarInfo("f.jpg")
    hard, contiguous, old = tarfile.TarInfo("h.jpg"), tarfile.TarInfo("c.jpg"), tarfile.TarInfo("o.jpg")
    folder.type, link.type, fifo.type, hard.type = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE
    link.linkname = hard.linkname = "a.jpg"
    contiguous.type, old.type = tarfile.CONTTYPE, tarfile.AREGTYPE
    members = [("a.jpg", b"a"), (folder, b""), ("a.cls", b"1"), (link, b""), (hard, b""), (fifo, b""),
               (contiguous, b"c"), (old, b"o"), ("README", b"passed over"), ("o.cls", b"2"), ("__meta__", b"no"),
               ("__dir__/x.jpg", b"no"), ("b.jpg", b"b"), ("a.jpg", b"again, but not beside the other")]
    compare(write(root / "kinds.tar", members), "folders, links, pipes, old files, what is passed over")
    compare(write(root / "one.tar", [("x/.hidden.jpg", b"h"), ("x/.hidden.txt", b"t"), ("x/y.z", b"z")]),
            "names that begin with a dot")


def at_random(root):
    """Archives of odd names in all formats, with members of several kinds between."""
    rng = random.Random(7)
    pieces = ["a", "b", "A", ".", "/", "x.jpg", ".cls", "seg.png", "__", "long" * 30, "ü", "\udcfe", "..", "JPG"]
    compared = 0
    for number in range(12):
        members = []
        for _ in range(rng.randrange(1, 25)):
            info = tarfile.TarInfo("".join(rng.choice(pieces) for _ in range(rng.randrange(1, 5))).strip("/") or "n.x")
            info.type = rng.choice([tarfile.REGTYPE] * 6 + [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.CONTTYPE])
            info.linkname = "a" if info.issym() else ""
            members.append((info, rng.randbytes(rng.choice([0, 1, 511, 512, 513, 3000])) if info.isreg() else b""))
        fmt = rng.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
        path = write(root / f"random-{number}.tar", members, format=fmt)
        want, error = theirs(path)
        if error or not want:
            continue  # two members of one name, or no sample
        compared += 1
        if ours(path, want) != askable(want):
            tap.ok(False, f"random archive {number}")
            tap.note([info.name for info, _ in members])
            tap.note((ours(path, want), askable(want)))
    tap.ok(compared > 5, f"{compared} archives of odd names")


def ends(root):
    plain = write(root / "p.tar", [("a.x", b"1" * 600), ("b.x", b"2" * 600)]).read_bytes()
    (root / "nozeros.tar").write_bytes(plain[:2 * (512 + 1024)])
    compare(root / "nozeros.tar", "no blocks of zeros at the end")
    (root / "nopadding.tar").write_bytes(plain[:512 + 1024 + 512 + 600])
    tap.same(tap.Opened(root / "nopadding.tar", "x").samples, [(b"1" * 600,), (b"2" * 600,)],
             "no padding at the end, of which tarfile complains")
    (root / "twice.tar").write_bytes(plain + plain)
    compare(root / "twice.tar", "what follows the end is not read")
    (root / "empty.tar").write_bytes(bytes(10240))
    tap.ok("no sample" in tap.refused(root / "empty.tar"), "an archive without members is refused")


def sizes(root):
    """Sizes above 8 GiB need base 256 or PAX: here the same header forms, with small sizes."""
    for name, fmt in ("base256", tarfile.GNU_FORMAT), ("paxsize", tarfile.PAX_FORMAT):
        info = tarfile.TarInfo("big.bin")
        info.size = 9 << 30
        head = bytearray(info.tobuf(format=fmt))
        if fmt == tarfile.GNU_FORMAT:
            head[124:136] = b"\x80" + (5).to_bytes(11, "big")
            total = sum(head[:148]) + 8 * 32 + sum(head[156:512])
            head[148:156] = b"%06o\0 " % total
        else:
            at = head.index(b"size=")
            head[at + 5:at + 15] = b"0000000005"
        tail = tarfile.TarInfo("next.bin")
        tail.size = 1
        rest = b"12345".ljust(512, b"\0") + tail.tobuf() + b"n".ljust(512, b"\0") + bytes(1024)
        (root / f"{name}.tar").write_bytes(bytes(head) + rest)
        compare(root / f"{name}.tar", f"sizes by {name}")


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


def shards(root):
    for i in range(3):
        write(root / f"s-{i:02}.tar", [("k.x", b"%d" % i), (f"{i}.x", b"y"), ("k.x", b"end")])
    compare(f"{root}/s-{{00..02}}.tar", "a key at the end of one shard and at the start of the next")
    compare(f"{root}/s-02.tar::{root}/s-00.tar", "a list of shards, in its order")
    got = tap.Opened(f"{root}/s-*.tar", "x")
    tap.same(len(got.samples), 9, "a pattern of names, chosen as tar by its ending")
    write(root / "whole.tar.gz", [("a.txt", b"A" * 5000), ("b.txt", b"B")], "w:gz")
    compare(root / "whole.tar.gz", "a whole shard in gzip")
    said = tap.refused(f"{root}/whole.tar.gz::{root}/s-00.tar")
    tap.ok("one is compressed as a whole" in said, f"packed and not: {said}")
    write(root / "whole.tar.xz", [("a.txt", b"A")], "w:xz")
    tap.ok("compressed with xz" in tap.refused(f"tar:{root}/whole.tar.xz"), "xz is refused by name")
    cut = (root / "whole.tar.gz").read_bytes()
    (root / "cut.tar.gz").write_bytes(cut[:len(cut) // 2])
    tap.ok("gzip data are damaged" in tap.refused(root / "cut.tar.gz"), "half a packed shard")
    if shutil.which("zstd"):
        write(root / "plain.tar", [("a.txt", b"A" * 5000), ("b.json.zst", zstd(b"{}" * 100))])
        (root / "whole.tar.zst").write_bytes(zstd((root / "plain.tar").read_bytes()))
        got = tap.Opened(root / "whole.tar.zst", "txt;json=bytes").samples
        tap.same(got, [(b"A" * 5000,), (b"{}" * 100,)], "a whole shard in zstd, and a member in it")
    data = gzip.compress(b'{"a": 1}' * 1000)
    write(root / "members.tar", [("a.json.gz", data), ("b.json.gz", data[:30]), ("c.json", b"{}")])
    got = tap.Opened(root / "members.tar", "json").samples
    tap.ok(got[0] == (b'{"a": 1}' * 1000,) and "damaged" in str(got[1]) and got[2] == (b"{}",),
           "members in gzip are unpacked; a damaged one says so")


def twins(root):
    write(root / "twins.tar", [("a.x", b"1"), ("a.X", b"2"), ("b.x", b"3")])
    _, error = theirs(root / "twins.tar")
    got = tap.Opened(root / "twins.tar", "x").samples
    tap.ok(isinstance(error, ValueError) and "two members named x" in str(got[0]) and got[1] == (b"3",),
           f"two members of one name: {got[0]}")


def decoded(root):
    write(root / "types.tar", [("a.cls", b" 12\n"), ("a.txt", "ü".encode()), ("a.jpg", b"\xff\xd8"), ("a.pyd", b"x"),
                               ("b.cls", b"no"), ("b.txt", b""), ("b.jpg", b"")])
    got = tap.Opened(root / "types.tar")
    tap.same(got.fields, [("jpg", "image"), ("cls", "int"), ("txt", "text")], "fields by suffix, the image first")
    tap.same(got.samples[0], (b"\xff\xd8", 12, "ü".encode()), "and their values")
    tap.ok('not an integer: "no"' in str(got.samples[1]), f"a bad number: {got.samples[1]}")
    tap.ok("pickle" in tap.refused(root / "types.tar", "jpg,pyd"), "a pickle is refused")
    tap.same(tap.Opened(root / "types.tar", "pyd=bytes").samples[0], (b"x",), "but its bytes may be had")
    tap.same(tap.Opened(root / "types.tar", "png;jpg,cls").fields[0], ("png;jpg", "image"), "alternatives")
    tap.ok("no member png" in str(tap.Opened(root / "types.tar", "png,cls").samples[0]), "a member that is not there")


def npy(array):
    out = io.BytesIO()
    numpy.save(out, array)
    return out.getvalue()


def arrays(root):
    plain = [numpy.arange(24, dtype=t).reshape(2, 3, 4) for t in
             ("u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8", ">f4", ">i2")]
    plain += [numpy.array(7, "<i4"), numpy.zeros((0, 5), "<f4"), numpy.array([True, False])]
    write(root / "npy.tar", [(f"{i}.npy", npy(array)) for i, array in enumerate(plain)])
    got = tap.Opened(root / "npy.tar", "npy")
    native = [a.astype(a.dtype.newbyteorder("=")) for a in plain]
    tap.same([s[0] for s in got.samples], [a.tobytes() for a in native], "arrays, of either byte order")
    tap.same([r["pieces"][0]["shape"] for r in got.raw], [list(a.shape) for a in plain], "and their shapes")
    bad = [npy(numpy.array([{}], object)), npy(numpy.asfortranarray(plain[3])), npy(plain[3])[:-1], b"no array", b"",
           npy(numpy.zeros(3, "c16"))]
    write(root / "badnpy.tar", [(f"{i}.npy", data) for i, data in enumerate(bad)])
    got = tap.Opened(root / "badnpy.tar", "npy").samples
    for why, said in zip(["pickle", "Fortran", "truncated", "does not begin", "does not begin", "not supported"], got,
                         strict=True):
        tap.ok(isinstance(said, Exception) and why in str(said), f"refused: {said}")
    write(root / "pixels.tar", [("a.npy", npy(numpy.zeros((4, 5, 3), "u1"))), ("b.npy", npy(numpy.zeros(5, "f4")))])
    got = tap.Opened(root / "pixels.tar", "npy=image")
    tap.ok(got.raw[0]["pieces"][0]["shape"] == [4, 5, 3] and "cannot be read as image" in str(got.samples[1]),
           f"arrays of pixels as images: {got.samples[1]}")
    write(root / "raw.tar", [("a.bin", bytes(range(24))), ("b.bin", b"short")])
    got = tap.Opened(root / "raw.tar", "bin=u16[3x4]")
    tap.ok(got.raw[0]["pieces"][0]["shape"] == [3, 4] and got.samples[0] == (bytes(range(24)),) and
           "take 24" in str(got.samples[1]), f"elements as they are: {got.samples[1]}")


def foreign_index(root):
    """DALI's wds2idx: a line of suffix, offset, size and name for each sample. One that does not hold is not used."""
    members = [(f"{i:03}.{suffix}", bytes([i]) * (i * 37 + 1)) for i in range(100) for suffix in ("bin", "cls2")]
    path = write(root / "dali.tar", members, format=tarfile.USTAR_FORMAT)
    with tarfile.open(path) as archive:
        parts = [f"{m.name.split('.')[1]} {m.offset_data} {m.size} {m.name}" for m in archive]
    lines = [" ".join(parts[i:i + 2]) + "\n" for i in range(0, 200, 2)]
    variants = {"right": ["v1.2 100\n", *lines], "short": ["v1.2 99\n", *lines[:-1]],
                "gap": ["v1.2 99\n", *lines[:50], *lines[51:]], "old": ["v1.1 100\n", *lines],
                "moved": ["v1.2 100\n", *(line.replace(" 1024 ", " 512 ") for line in lines)], "empty": []}
    for name, text in variants.items():
        shutil.copy(path, root / f"dali-{name}.tar")
        (root / f"dali-{name}.idx").write_text("".join(text))
        got = tap.Opened(root / f"dali-{name}.tar", "bin").samples
        tap.same(got, [(bytes([i]) * (i * 37 + 1),) for i in range(100)], f"DALI's index: {name}")


with tempfile.TemporaryDirectory() as folder:
    root = Path(folder)
    split_names()
    braces()
    formats(root)
    kinds(root)
    at_random(root)
    ends(root)
    sizes(root)
    shards(root)
    twins(root)
    decoded(root)
    arrays(root)
    foreign_index(root)
tap.finish()
