# SPDX-License-Identifier: Apache-2.0
"""TIFF: every kind that Pillow reads, whole and in part, byte for byte; the others refused by name."""

import io
import random
import struct
import zlib

import numpy
import pytest
from decode_parity import agree, agreement, check, check_refused, mutations, ours, pillow
from PIL import Image

SIZES = [(1, 1), (3, 2), (8, 8), (17, 33), (40, 21)]
SHORT, LONG, LONG8 = 3, 4, 16


def packbits(data):
    out = bytearray()
    for at in range(0, len(data), 100):
        part = data[at : at + 100]
        out += bytes([len(part) - 1]) + part
    return bytes(out)


COMPRESS = {1: bytes, 8: zlib.compress, 32946: zlib.compress, 32773: packbits}


def tiff(tags, blocks, order="<", large=False, second=b""):
    """A file of one directory: the blocks first, then the tags, with lists of numbers or bytes as values."""
    out = bytearray(16)
    offsets, counts = [], []
    for block in blocks:
        offsets.append(len(out))
        counts.append(len(block))
        out += block + b"\0" * (len(block) % 2)
    tiled = 322 in tags
    tags = dict(tags)
    tags[324 if tiled else 273] = offsets
    tags[325 if tiled else 279] = counts
    word, size, entry = ("Q", 8, "HHQ") if large else ("I", 4, "HHI")
    entries = b""
    for tag in sorted(tags):
        value = tags[tag]
        kind = (
            LONG8
            if large and tag in (273, 279, 324, 325)
            else LONG
            if tag in (273, 279, 324, 325, 256, 257)
            else SHORT
        )
        if isinstance(value, tuple):
            kind, value = value
        if isinstance(value, bytes):
            packed, count = value, len(value)
        else:
            value = value if isinstance(value, list) else [value]
            code = {1: "B", SHORT: "H", LONG: "I", LONG8: "Q"}[kind]
            packed, count = struct.pack(f"{order}{len(value)}{code}", *value), len(value)
        if len(packed) > size:
            out += b"\0" * (len(out) % 2)
            packed, where = struct.pack(order + word, len(out)), packed
            out += where
        entries += struct.pack(order + entry, tag, kind, count) + packed.ljust(size, b"\0")
    out += b"\0" * (len(out) % 2)
    head = b"II" if order == "<" else b"MM"
    if large:
        out[:16] = head + struct.pack(order + "HHHQ", 43, 8, 0, len(out))
        return bytes(out) + struct.pack(order + "Q", len(tags)) + entries + bytes(8)
    out[:8] = head + struct.pack(order + "HI", 42, len(out))
    return bytes(out) + struct.pack(order + "H", len(tags)) + entries + second.ljust(4, b"\0")


def image(rng, width, height, photometric, bits, samples, extra=(), compression=1, planar=1, rows=None,
          tile=None, order="<", fill=1, fmt=1, large=False, more=None):  # fmt: skip
    """Random pixels of a kind."""
    tags = {
        256: width,
        257: height,
        258: [bits] * samples,
        259: compression,
        262: photometric,
        277: samples,
    }
    tags |= {284: planar, 266: fill, 339: [fmt] * samples}
    if extra:
        tags[338] = list(extra)
    if photometric == 3:
        tags[320] = [rng.randrange(65536) for _ in range(3 << bits)]
    if tile:
        tags |= {322: tile[0], 323: tile[1]}
        wide, high = tile
    else:
        rows = rows or height
        tags[278] = rows
        wide, high = width, rows
    tags |= more or {}
    blocks = []
    for _ in range(samples if planar == 2 else 1):
        for y in range(0, height, high):
            for _ in range(0, width, wide):
                lines = high if tile else min(high, height - y)
                per_row = (wide * bits * (1 if planar == 2 else samples) + 7) // 8
                blocks.append(COMPRESS[compression](rng.randbytes(per_row * lines)))
    return tiff(tags, blocks, order, large)


# photometric, bits, samples, extra samples, fill orders, sample format, byte orders
KINDS = [
    (0, 1, 1, (), (1, 2), 1, "<>"), (0, 2, 1, (), (1, 2), 1, "<>"), (0, 4, 1, (), (1, 2), 1, "<>"),
    (0, 8, 1, (), (1,), 1, "<>"), (0, 16, 1, (), (1,), 1, "<"), (0, 32, 1, (), (1,), 3, "<>"),
    (1, 1, 1, (), (1, 2), 1, "<>"), (1, 2, 1, (), (1, 2), 1, "<>"), (1, 4, 1, (), (1, 2), 1, "<>"),
    (1, 8, 1, (), (1, 2), 1, "<>"), (1, 8, 1, (), (1,), 2, "<>"), (1, 12, 1, (), (1,), 1, "<"),
    (1, 16, 1, (), (1,), 1, "<>"), (1, 16, 1, (), (2,), 1, "<"), (1, 16, 1, (), (1,), 2, "<>"),
    (1, 32, 1, (), (1,), 1, "<"), (1, 32, 1, (), (1,), 2, "<>"), (1, 32, 1, (), (1,), 3, "<>"),
    (1, 8, 2, (0,), (1,), 1, "<>"), (1, 8, 2, (2,), (1,), 1, "<>"),
    (2, 8, 3, (), (1, 2), 1, "<>"), (2, 8, 4, (), (1,), 1, "<>"), (2, 8, 4, (0,), (1,), 1, "<>"),
    (2, 8, 4, (1,), (1,), 1, "<>"), (2, 8, 4, (2,), (1,), 1, "<>"), (2, 8, 4, (999,), (1,), 1, "<>"),
    (2, 8, 5, (0, 0), (1,), 1, "<>"), (2, 8, 5, (1, 0), (1,), 1, "<>"), (2, 8, 5, (2, 0), (1,), 1, "<>"),
    (2, 8, 6, (0, 0, 0), (1,), 1, "<>"), (2, 8, 6, (1, 0, 0), (1,), 1, "<>"),
    (2, 8, 6, (2, 0, 0), (1,), 1, "<>"),
    (2, 16, 3, (), (1,), 1, "<>"), (2, 16, 4, (), (1,), 1, "<>"), (2, 16, 4, (0,), (1,), 1, "<>"),
    (2, 16, 4, (1,), (1,), 1, "<>"), (2, 16, 4, (2,), (1,), 1, "<>"),
    (3, 1, 1, (), (1,), 1, "<>"), (3, 2, 1, (), (1,), 1, "<>"), (3, 4, 1, (), (1,), 1, "<>"),
    (3, 8, 1, (), (1, 2), 1, "<>"), (3, 8, 2, (0,), (1,), 1, "<>"), (3, 8, 2, (2,), (1,), 1, "<>"),
    (5, 8, 4, (), (1,), 1, "<>"), (5, 8, 5, (0,), (1,), 1, "<>"), (5, 8, 6, (0, 0), (1,), 1, "<>"),
    (5, 16, 4, (), (1,), 1, "<>"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_kinds(kind):
    photometric, bits, samples, extra, fills, fmt, orders = kind
    rng = random.Random(str(kind))
    for order in orders:
        for fill in fills:
            for width, height in SIZES:
                for rows in (None, 5):
                    data = image(
                        rng,
                        width,
                        height,
                        photometric,
                        bits,
                        samples,
                        extra,
                        rows=rows,
                        order=order,
                        fill=fill,
                        fmt=fmt,
                    )
                    check(data, f"{kind} {order} {width}x{height}, rows {rows}, fill {fill}", width)
            for compression in (8, 32773):
                data = image(
                    rng,
                    21,
                    17,
                    photometric,
                    bits,
                    samples,
                    extra,
                    compression,
                    rows=7,
                    order=order,
                    fill=fill,
                    fmt=fmt,
                )
                assert agree(pillow(data), ours(data)), (
                    f"{kind} {order}, compression {compression}, fill {fill}"
                )


@pytest.mark.parametrize("compression", [1, 8])
@pytest.mark.parametrize("kind", [k for k in KINDS if k[1] >= 8], ids=str)
def test_tiles(kind, compression):
    photometric, bits, samples, extra, _, fmt, orders = kind
    rng = random.Random(f"{kind} {compression}")
    for order in orders:
        for width, height in [(1, 1), (16, 16), (17, 33), (50, 40)]:
            for tile in ((16, 16), (32, 16)):
                data = image(
                    rng,
                    width,
                    height,
                    photometric,
                    bits,
                    samples,
                    extra,
                    compression,
                    tile=tile,
                    order=order,
                    fmt=fmt,
                )
                assert agree(pillow(data), ours(data)), f"{kind} {order} {width}x{height}"
        if bits in (8, 16):
            check(
                image(
                    rng,
                    50,
                    40,
                    photometric,
                    bits,
                    samples,
                    extra,
                    compression,
                    tile=(16, 32),
                    order=order,
                    fmt=fmt,
                ),
                f"{kind} {order}",
            )


def test_bilevel_tiles():
    rng = random.Random(11)
    for photometric, bits in ((0, 1), (1, 1), (1, 4), (3, 2)):
        for compression in (1, 8):
            check(
                image(rng, 50, 40, photometric, bits, 1, (), compression, tile=(16, 32)), f"{bits} bits"
            )


@pytest.mark.parametrize("compression", [1, 8])
def test_planes(compression):
    rng = random.Random(12)
    for photometric, bits, samples, extra in [
        (2, 8, 3, ()), (2, 8, 4, (0,)), (2, 8, 4, (2,)), (2, 8, 5, (0, 0)), (5, 8, 4, ()), (1, 8, 1, ()),
        (1, 8, 2, (0,)),
    ]:  # fmt: skip
        if compression == 1 and extra and extra[0] == 0:
            check_refused(
                image(rng, 9, 7, photometric, bits, samples, extra, 1, 2),
                "planes without meaning",
                "needed",
            )
            continue
        for width, height in SIZES:
            for rows in (None, 4):
                data = image(rng, width, height, photometric, bits, samples, extra, compression, 2, rows)
                check(data, f"{photometric} {samples} {extra} {width}x{height}, rows {rows}")
        check(
            image(rng, 50, 40, photometric, bits, samples, extra, compression, 2, tile=(16, 16)), "tiles"
        )
    for photometric, bits, samples, extra in [
        (2, 16, 3, ()), (2, 16, 4, (2,)), (2, 16, 4, (1,)), (2, 8, 4, (1,)), (2, 8, 4, ()),
        (5, 16, 4, ()),
        (1, 8, 2, (2,)), (3, 8, 1, ()), (3, 8, 2, (2,)), (0, 1, 1, ()), (1, 1, 1, ()), (1, 4, 1, ()),
        (1, 16, 1, ()), (2, 8, 5, (2, 0)), (0, 8, 1, ()), (3, 4, 1, ()), (1, 12, 1, ()),
    ]:  # fmt: skip
        for order in "<>":
            data = image(rng, 13, 9, photometric, bits, samples, extra, compression, 2, 4, order=order)
            got, expected = ours(data), pillow(data)
            assert agree(got, expected), (
                f"{photometric} {bits} {samples} {extra} {order}: {got!r} {expected!r}"
            )


def test_big_tiff():
    rng = random.Random(13)
    for compression in (1, 8):
        check(
            image(rng, 31, 20, 2, 8, 3, (), compression, rows=3, large=True), f"BigTIFF, {compression}"
        )
    data = image(rng, 31, 20, 2, 8, 3, large=True, order=">")
    check_refused(data, "big-endian BigTIFF", "BigTIFF")


@pytest.mark.parametrize("compression", [1, 8])
def test_orientation(compression):
    rng = random.Random(14)
    for turned in range(0, 10):
        for width, height in ((1, 1), (5, 3), (20, 33)):
            data = image(rng, width, height, 2, 8, 3, (), compression, rows=4, more={274: turned})
            check(data, f"orientation {turned}", turned)
        check(image(rng, 30, 40, 2, 8, 3, (), compression, tile=(16, 16), more={274: turned}), "tiles")
        check(image(rng, 30, 40, 2, 8, 3, (), compression, 2, more={274: turned}), "planes")
    for text in (
        b'<x tiff:Orientation="6"/>',
        b"<tiff:Orientation>8</tiff:Orientation>",
        b'tiff:Orientation="x tiff:Orientation=">3"',
    ):
        data = image(rng, 6, 4, 2, 8, 3, (), compression, more={700: (1, text)})
        assert agree(pillow(data), ours(data)), text
        data = image(rng, 6, 4, 2, 8, 3, (), compression, more={700: (1, text), 274: 1})
        check(data, "the tag comes first")


PILLOW_COMPRESSIONS = {
    "1": ["raw", "packbits", "group3", "group4", "tiff_ccitt", "tiff_lzw", "tiff_adobe_deflate"],
    "L": ["raw", "packbits", "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "jpeg", "lzma", "zstd"],
    "LA": ["raw", "tiff_lzw", "tiff_adobe_deflate"],
    "P": ["raw", "packbits", "tiff_lzw", "tiff_adobe_deflate"],
    "RGB": ["raw", "packbits", "tiff_lzw", "tiff_adobe_deflate", "jpeg", "lzma", "zstd", "webp"],
    "RGBA": ["raw", "packbits", "tiff_lzw", "tiff_adobe_deflate", "zstd"],
    "CMYK": ["raw", "tiff_lzw", "tiff_adobe_deflate", "jpeg"],
    "I;16": ["raw", "packbits", "tiff_lzw", "tiff_adobe_deflate"],
    "I": ["raw", "tiff_lzw"],
    "F": ["raw", "tiff_adobe_deflate"],
    "YCbCr": ["jpeg", "tiff_lzw"],
}


@pytest.mark.parametrize("mode", PILLOW_COMPRESSIONS)
def test_written_by_pillow(mode):
    rng = numpy.random.default_rng(15)
    tried = 0
    for compression in PILLOW_COMPRESSIONS[mode]:
        for width, height in SIZES + [(130, 97)]:
            noise_of = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 4), dtype=numpy.uint8)
            smooth = Image.fromarray(noise_of, "RGBA").resize((width, height))
            if mode == "I;16":
                picture = Image.fromarray(numpy.asarray(smooth.convert("L")).astype(numpy.uint16) * 3)
            elif mode == "CMYK" or mode == "YCbCr":
                picture = smooth.convert("RGB").convert(mode)
            elif mode in ("I", "F"):
                picture = smooth.convert("L").convert(mode)
            else:
                picture = smooth.convert(mode)
            for options in (
                {},
                {"tiffinfo": {278: 8}},
                {"tiffinfo": {317: 2}} if compression in ("tiff_lzw", "tiff_adobe_deflate") else None,
            ):
                if options is None:
                    continue
                out = io.BytesIO()
                try:
                    picture.save(out, "TIFF", compression=compression, **options)
                except (OSError, RuntimeError, ValueError, TypeError):
                    continue  # this Pillow does not write it
                data = out.getvalue()
                if isinstance(pillow(data), Exception):
                    continue
                tried += 1
                if isinstance(ours(data), Exception) and "YCbCr" == mode and compression != "jpeg":
                    assert "not supported" in str(ours(data))
                    continue
                check(data, f"{mode} {compression} {width}x{height} {options}", width)
    assert tried > 0


def test_pages_give_the_first():
    out = io.BytesIO()
    pages = [Image.new("RGB", (9, 7), c) for c in ("red", "green")]
    pages[0].save(out, "TIFF", save_all=True, append_images=pages[1:])
    check(out.getvalue(), "two pages")


def test_refusals():
    rng = random.Random(16)
    for what, says, arguments in [
        ("La", "photometric 1", (1, 8, 2, (1,))), ("LAB", "photometric 8", (8, 8, 3)),
        ("3 bits", "3 bits", (1, 3, 1)),
        ("24-bit", "24 bits", (1, 24, 1)), ("two extras", "extra", (2, 8, 5, (1, 1))),
        ("7 samples", "7 samples", (2, 8, 7)),
        ("double", "64 bits", (1, 64, 1)), ("LogLuv", "photometric 32845", (32845, 16, 3)),
        ("mask", "photometric 4", (4, 1, 1)),
    ]:  # fmt: skip
        data = image(rng, 6, 5, *arguments)
        if what == "LAB":  # which Pillow hands to a colour management library
            assert says in str(ours(data))
        else:
            check_refused(data, what, says)
    assert "photometric 6" in str(ours(image(rng, 8, 8, 6, 8, 3))), "uncompressed YCbCr"
    for compression in (6, 9, 10, 34712, 33003, 65000):
        data = image(rng, 6, 5, 2, 8, 3, more={259: compression})
        assert f"compression {compression}" in str(ours(data))
    whole = image(rng, 9, 7, 2, 8, 3)
    check_refused(
        whole.replace(struct.pack("<HHI", 256, 4, 1), struct.pack("<HHI", 999, 4, 1)), "no width", "size"
    )
    check_refused(image(rng, 9, 7, 3, 8, 1, more={320: [0] * 771}), "257 colours")
    check_refused(b"II*\0" + struct.pack("<I", 8), "only a header")
    check_refused(b"II*\0" + bytes(20), "no directory")
    for cut in range(4, len(whole), 19):
        assert agree(pillow(whole[:cut]), ours(whole[:cut])), f"cut at {cut}"
    check_refused(whole[: len(whole) // 2], "half")
    packed = image(rng, 40, 40, 2, 8, 3, compression=8)
    broken = bytearray(packed)
    broken[500:540] = bytes(40)
    check_refused(bytes(broken), "a damaged strip", "row")
    large = image(rng, 9, 7, 2, 8, 3, more={256: 5000, 257: 5000, 278: 5000})
    check_refused(large, "a lie", "do not fit into a file of")


def test_odd_tags():
    rng = random.Random(17)
    for more in [
        {258: 8}, {258: [8, 8, 8, 8]}, {339: 1}, {278: 65535}, {256: (SHORT, 9)}, {262: (SHORT, 2)},
        {259: (LONG, 1)}, {277: (LONG, 3)}, {266: (LONG, 1)}, {305: (2, b"name\0")}, {258: [8, 8]},
        {258: [8, 8, 7]},
        {277: 0}, {277: 1}, {256: (1, b"\x09")}, {258: (1, b"\x08\x08\x08")}, {339: [1, 1, 2]},
        {266: 3}, {284: 3},
        {262: [2, 2]}, {278: 0}, {338: [0]}, {259: [1, 1]}, {256: (LONG, [9, 9])}, {0xBC01: 1},
    ]:  # fmt: skip
        data = image(rng, 9, 7, 2, 8, 3, more=more)
        got, expected = ours(data), pillow(data)
        assert agree(got, expected), f"{more}: {got!r} but Pillow {expected!r}"


def test_more_strips_than_needed():
    rng = random.Random(19)
    tags = {256: 9, 257: 6, 258: [8] * 3, 259: 1, 262: 2, 277: 3}
    for rows, count in ((2, 5), (2, 6), (2, 9), (4, 4), (6, 3), (100, 3)):
        blocks = [rng.randbytes(27 * min(rows, 6)) for _ in range(count)]
        check(tiff(tags | {278: rows}, blocks), f"{count} strips of {rows} rows")


def test_last_strips_with_rows_below_the_image():
    """Writers may fill the last strip up to its full height. The pixels are those of the same rows stored
    uncompressed."""
    rng = numpy.random.default_rng(20)
    for number in range(200):
        width, height, rows = (int(rng.integers(*limits)) for limits in ((3, 90), (3, 90), (2, 60)))
        strips = -(-height // rows)
        small = rng.integers(0, 256, (strips * rows // 7 + 2, width // 7 + 2, 3), dtype=numpy.uint8)
        pixels = numpy.asarray(Image.fromarray(small).resize((width, strips * rows))).copy()
        pixels[:, :: number % 5 + 1] += rng.integers(0, 4, pixels[:, :: number % 5 + 1].shape, dtype=numpy.uint8)
        tags = {256: width, 257: height, 258: [8] * 3, 259: (8, 32946)[number % 2], 262: 2, 277: 3, 278: rows}
        blocks = [zlib.compress(pixels[k * rows :][:rows].tobytes(), number % 9 + 1) for k in range(strips)]
        data = tiff(tags, blocks)
        assert agree(ours(data), pixels[:height]), f"{number}: {width}x{height}, {rows} rows a strip"
        check(data, f"{number}: {width}x{height}, {rows} rows a strip", number)


def test_the_complaint_is_the_one_that_failed():
    """Not what libtiff said first, of a tag that does not matter."""
    rng = random.Random(21)
    sound = image(rng, 40, 40, 2, 8, 3, compression=8, rows=20, more={274: 9})
    check(sound, "a harmless tag")
    broken = bytearray(sound)
    broken[40:60] = bytes(20)
    told = str(ours(bytes(broken)))
    assert "row 0" in told and "ecoding error" in told and "Orientation" not in told, told


def test_mutated_files_agree():
    """Damage of all kinds. Pillow and we read tags and plain pixels alike; in compressed ones the two
    libtiffs, not of one age, may differ in what they let pass."""
    rng = random.Random(18)
    files = [image(rng, 13, 9, *k[:4], compression=c, rows=4, fmt=k[5]) for k in KINDS for c in (1, 8)]
    agreement([changed for data in files for changed in mutations(rng, data, 12)], least=0.98)
