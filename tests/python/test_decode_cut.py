# SPDX-License-Identifier: Apache-2.0
"""Files that are cut off: damaged or not is a matter of the file, whatever part of it is decoded, and Pillow's
answer for the whole is ours for every part."""

import io
import random
import struct
import zlib

import numpy
import pytest
import stoker
from decode_parity import agree, ours, pillow
from PIL import Image
from stoker import transforms as T

WIDTH, HEIGHT = 67, 90


def picture(mode="RGB"):
    rng = numpy.random.default_rng(5)
    small = rng.integers(0, 256, (HEIGHT // 4, WIDTH // 4, 3), dtype=numpy.uint8)
    return Image.fromarray(small).resize((WIDTH, HEIGHT)).convert(mode)


def saved(kind, mode="RGB", **options):
    out = io.BytesIO()
    picture(mode).save(out, kind, **options)
    return out.getvalue()


def with_thumbnail(jpeg):
    """A header that holds a whole JPEG, with an end marker of its own."""
    out = io.BytesIO()
    picture().resize((16, 16)).save(out, "JPEG")
    inner = b"thumb\0" + out.getvalue()
    return jpeg[:2] + b"\xff\xec" + struct.pack(">H", len(inner) + 2) + inner + jpeg[2:]


def chunk(name, data=b""):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(interlaced=False, pieces=1):
    """Rows, or the rows of Adam7's passes, in so many chunks of image data."""
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    pixels, rows = numpy.asarray(picture()), b""
    for x, y, dx, dy in passes if interlaced else [(0, 0, 1, 1)]:
        rows += b"".join(b"\0" + row.tobytes() for row in pixels[y::dy, x::dx])
    data = zlib.compress(rows)
    step = -(-len(data) // pieces)
    body = b"".join(chunk(b"IDAT", data[at : at + step]) for at in range(0, len(data), step))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + body + chunk(b"tEXt", b"key\0value") + chunk(b"IEND")


def tiff(compression, compress, tiled=False):
    """The directory in front, so that a cut takes pixels; libtiff and Pillow mostly write it so."""
    pixels = numpy.asarray(picture())
    if tiled:
        padded = numpy.pad(pixels, ((0, -HEIGHT % 32), (0, -WIDTH % 32), (0, 0)))
        blocks = [padded[y : y + 32, x : x + 32] for y in range(0, HEIGHT, 32) for x in range(0, WIDTH, 32)]
    else:
        blocks = [pixels[y : y + 11] for y in range(0, HEIGHT, 11)]
    blocks = [compress(block.tobytes()) for block in blocks]
    tags = [(256, 1, WIDTH), (257, 1, HEIGHT), (259, 1, compression), (262, 1, 2), (277, 1, 3)]
    tags += [(322, 1, 32), (323, 1, 32)] if tiled else [(278, 1, 11)]
    lists = 8 + 2 + 12 * (len(tags) + 3) + 4
    tags += [(258, 3, lists)] + [(324 if tiled else 273, len(blocks), lists + 12),
                                 (325 if tiled else 279, len(blocks), lists + 12 + 4 * len(blocks))]  # fmt: skip
    start = lists + 12 + 8 * len(blocks)
    offsets = [start + sum(map(len, blocks[:k])) for k in range(len(blocks))]
    return (
        b"II*\0" + struct.pack("<IH", 8, len(tags))
        + b"".join(struct.pack("<HHII", tag, 4, count, value) for tag, count, value in sorted(tags)) + bytes(4)
        + struct.pack(f"<3I{2 * len(blocks)}I", 8, 8, 8, *offsets, *map(len, blocks)) + b"".join(blocks)
    )  # fmt: skip


def plain(kind):
    values = numpy.asarray(picture("RGB" if kind == "P3" else "L")).flatten()
    return f"{kind} {WIDTH} {HEIGHT} 255\n".encode() + b" ".join(b"%d" % v for v in values) + b"\n"


FILES = {
    "baseline": lambda: saved("JPEG"),
    "4:4:4": lambda: saved("JPEG", subsampling=0),
    "grey JPEG": lambda: saved("JPEG", "L"),
    "CMYK JPEG": lambda: saved("JPEG", "CMYK"),
    "restart markers": lambda: saved("JPEG", restart_marker_rows=1),
    "progressive": lambda: saved("JPEG", progressive=True),
    "thumbnail": lambda: with_thumbnail(saved("JPEG")),
    "progressive with thumbnail": lambda: with_thumbnail(saved("JPEG", progressive=True)),
    "PNG": png,
    "PNG of many chunks": lambda: png(pieces=20),
    "interlaced PNG": lambda: png(interlaced=True, pieces=3),
    "WebP": lambda: saved("WEBP"),
    "lossless WebP": lambda: saved("WEBP", lossless=True),
    "BMP": lambda: saved("BMP"),
    "PPM": lambda: saved("PPM"),
    "plain PPM": lambda: plain("P3"),
    "plain PGM": lambda: plain("P2"),
    "TIFF": lambda: tiff(1, bytes),
    "tiled TIFF": lambda: tiff(1, bytes, tiled=True),
    "deflated TIFF": lambda: tiff(8, zlib.compress),
    "tiled, deflated TIFF": lambda: tiff(8, zlib.compress, tiled=True),
}
PARTS = [(0, 0, WIDTH, 4), (0, 0, 5, 5), (20, 8, 30, 9), (WIDTH - 3, 0, 3, 40), (0, HEIGHT - 2, WIDTH, 2)]


def check_parts(data, what):
    """True where the file is bad."""
    whole = pillow(data)
    assert agree(ours(data), whole), f"{what}: {ours(data)!r}, but Pillow {whole!r}"
    for x, y, w, h in PARTS:
        part = ours(data, (x, y, w, h))
        expected = whole if isinstance(whole, Exception) else whole[y : y + h, x : x + w]
        assert agree(part, expected), f"{what}, {(x, y, w, h)}: {part!r}, but Pillow {whole!r}"
    return isinstance(whole, Exception)


@pytest.mark.parametrize("kind", FILES)
def test_a_cut_shows_in_every_part(kind):
    data, rng = FILES[kind](), random.Random(kind)
    assert not check_parts(data, kind)
    assert not check_parts(data + b"garbage behind\xff\0\xd9" * 5, f"{kind} with garbage") or "plain" in kind
    cuts = [len(data) - k for k in range(1, 24)] + [rng.randrange(len(data) // 4, len(data)) for _ in range(30)]
    bad = sum(check_parts(data[:cut], f"{kind} cut at {cut} of {len(data)}") for cut in cuts)
    assert bad >= 20


@pytest.fixture
def folder(tmp_path):
    """Files 0 to 7: two are cut off, one is a JPEG XL, one is empty."""
    (tmp_path / "class").mkdir()
    kinds = ["baseline", "PNG", "baseline", "PNG", "baseline", "PNG", "baseline", "PNG"]
    for number, kind in enumerate(kinds):
        data = FILES[kind]()
        data = {2: data[: len(data) * 9 // 10], 3: data[: len(data) * 9 // 10], 5: b"\xff\x0a" + bytes(50), 6: b""}.get(
            number, data
        )
        (tmp_path / "class" / f"{number}.jpg").write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_files_are_the_same_in_every_epoch(folder, policy):
    """A crop of the upper rows hides nothing, and what is not supported is a bad sample like the others."""
    transform = T.Compose([T.RandomCrop(16), T.ToTensor()])
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(folder, transform), 4, on_error=policy, num_workers=2)
    for epoch in range(6):
        loader.set_epoch(epoch)
        assert sum(len(labels) for _, labels in loader) == 8
    found = [(bad["epoch"], bad["sample"]) for bad in loader.bad_samples()]
    assert sorted(found) == [(epoch, sample) for epoch in range(6) for sample in (2, 3, 5, 6)]
    reasons = {bad["sample"]: bad["reason"] for bad in loader.bad_samples()}
    assert "truncated" in reasons[2] and "row" in reasons[3]
    assert "a JPEG XL image, which is not supported" in reasons[5] and "empty" in reasons[6]


def test_the_kind_of_error_tells_damage_from_what_is_not_supported(folder):
    images = stoker.datasets.ImageFolder(folder, T.ToTensor())
    for sample, error in ((2, stoker.CorruptSample), (5, stoker.Unsupported), (6, stoker.CorruptSample)):
        with pytest.raises(error):
            images[sample]
