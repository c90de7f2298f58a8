# SPDX-License-Identifier: Apache-2.0
"""PNG: every colour type and depth, whole and in part, equals Pillow byte for byte."""

import io
import random
import struct
import zlib

import numpy
import pytest
from decode_parity import agreement, check, check_refused, mutations
from PIL import Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KINDS = [(0, d) for d in (1, 2, 4, 8, 16)] + [(3, d) for d in (1, 2, 4, 8)]
KINDS += [(c, d) for c in (2, 4, 6) for d in (8, 16)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ADAM7 = [
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
]


def chunk(name, data=b"", crc=None):
    if crc is None:
        crc = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)


def header(width, height, depth, colour, interlaced=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))


def rows(rng, width, height, depth, colour, interlaced=0, filters=(0, 1, 2, 3, 4)):
    """Random filtered rows: any bytes are a valid image."""
    out = bytearray()
    for x, y, dx, dy in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        columns, lines = -(-(width - x) // dx), -(-(height - y) // dy)
        if columns <= 0:
            continue
        for _ in range(max(lines, 0)):
            size = (columns * depth * CHANNELS[colour] + 7) // 8
            out.append(rng.choice(filters))
            out += bytes(rng.choice((rng.randrange(256), rng.randrange(4))) for _ in range(size))
    return bytes(out)


def png(
    rng, width, height, depth, colour, interlaced=0, before=b"", after=b"", split=None, palette=None
):
    data = zlib.compress(rows(rng, width, height, depth, colour, interlaced), rng.choice((0, 1, 9)))
    if colour == 3 and palette is None:
        palette = 1 << depth
    out = SIGNATURE + header(width, height, depth, colour, interlaced)
    if palette:
        out += chunk(b"PLTE", bytes(rng.randrange(256) for _ in range(3 * palette)))
    out += before
    split = split or len(data)
    for at in range(0, len(data), split):
        out += chunk(b"IDAT", data[at : at + split])
    return out + after + chunk(b"IEND")


@pytest.mark.parametrize("interlaced", [0, 1])
@pytest.mark.parametrize("colour,depth", KINDS)
def test_every_kind(colour, depth, interlaced):
    rng = random.Random(f"{colour} {depth} {interlaced}")
    sizes = [(1, 1), (2, 3), (3, 2), (5, 5), (8, 8), (9, 1), (1, 9), (33, 17), (40, 31)]
    for n, (width, height) in enumerate(sizes):
        data = png(rng, width, height, depth, colour, interlaced)
        check(data, f"colour {colour}, {depth} bits, {width}x{height}, interlaced {interlaced}", n)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "I;16"])
def test_written_by_pillow(mode):
    rng = numpy.random.default_rng(7)
    for width, height in [(1, 1), (7, 5), (64, 48), (101, 37)]:
        if mode == "I;16":
            image = Image.fromarray(rng.integers(0, 65536, (height, width), dtype=numpy.uint16))
        else:
            image = Image.fromarray(rng.integers(0, 256, (height, width, 4), dtype=numpy.uint8), "RGBA")
            if mode == "PA":
                image = image.convert("RGB").quantize(30)
                image.info["transparency"] = bytes(range(0, 240, 8))
            else:
                image = image.convert(mode)
        for options in ({}, {"optimize": True}, {"compress_level": 0}):
            out = io.BytesIO()
            image.save(out, "PNG", **options)
            check(out.getvalue(), f"{mode} {width}x{height} {options}", width)


def test_transparency_is_dropped():
    rng = random.Random(1)
    for colour, depth, trns in [
        (0, 1, b"\0\1"), (0, 8, b"\0\7"), (0, 16, b"\1\0"), (2, 8, b"\0\1\0\2\0\3"),
        (2, 16, b"\1\1\2\2\3\3"),
        (3, 4, b"\xff\x00\xff"), (3, 4, b"\x10\x20"), (3, 8, bytes(300)), (4, 8, b""), (6, 8, b"\0"),
    ]:  # fmt: skip
        check(
            png(rng, 9, 7, depth, colour, before=chunk(b"tRNS", trns)),
            f"tRNS {trns!r} with colour {colour}",
        )
    check_refused(png(rng, 9, 7, 8, 0, before=chunk(b"tRNS", b"\0")), "short tRNS", "tRNS")
    check_refused(png(rng, 9, 7, 8, 2, before=chunk(b"tRNS", b"\0\0")), "short tRNS", "tRNS")


def test_palettes():
    rng = random.Random(2)
    for entries in (1, 2, 3, 15, 16, 200, 255, 256):
        check(png(rng, 12, 9, 8, 3, palette=entries), f"{entries} colours")
        check(png(rng, 12, 9, 2, 3, palette=entries), f"{entries} colours, 2 bits")
    check(png(rng, 12, 9, 8, 3, palette=0), "no palette at all")
    check(png(rng, 12, 9, 8, 3, palette=0, before=chunk(b"PLTE")), "an empty palette")
    check(
        png(rng, 12, 9, 8, 3, palette=0, before=chunk(b"PLTE", bytes(range(10)))),
        "three colours and a bit",
    )
    check(png(rng, 12, 9, 8, 3, before=chunk(b"PLTE", bytes(range(9)))), "the second palette counts")
    check(png(rng, 12, 9, 8, 2, before=chunk(b"PLTE", bytes(range(9)))), "a hint that is not used")
    check_refused(png(rng, 5, 5, 8, 3, palette=257), "257 colours", "PLTE")
    refused = png(rng, 5, 5, 8, 3, palette=0, before=chunk(b"tRNS", b"\xff\0"))
    check_refused(refused, "transparency without palette")


def test_image_data_in_pieces():
    rng = random.Random(3)
    for split in (1, 2, 7, 100):
        check(png(rng, 30, 20, 8, 2, split=split), f"IDATs of {split} bytes")
        check(png(rng, 30, 20, 8, 2, interlaced=1, split=split), f"interlaced IDATs of {split} bytes")
    body = zlib.compress(rows(rng, 30, 20, 8, 2))
    parts = chunk(b"IDAT") + chunk(b"IDAT", body[:5]) + chunk(b"IDAT") + chunk(b"IDAT", body[5:])
    check(SIGNATURE + header(30, 20, 8, 2) + parts + chunk(b"IEND"), "empty IDATs between")
    parted = chunk(b"IDAT", body[:50]) + chunk(b"tEXt", b"a\0b") + chunk(b"IDAT", body[50:])
    check_refused(SIGNATURE + header(30, 20, 8, 2) + parted + chunk(b"IEND"), "IDATs parted", "row")


def test_checksums():
    rng = random.Random(4)
    body = zlib.compress(rows(rng, 30, 20, 8, 2))
    start = SIGNATURE + header(30, 20, 8, 2)
    check(
        start + chunk(b"IDAT", body, crc=1) + chunk(b"IEND"),
        "a wrong checksum of image data is passed over",
    )
    check(start + chunk(b"IDAT", body) + chunk(b"IEND", crc=5), "and of IEND")
    check(
        start + chunk(b"IDAT", body) + chunk(b"tEXt", b"a\0b", crc=5) + chunk(b"IEND"),
        "and behind the data",
    )
    wrong = SIGNATURE + chunk(b"IHDR", header(30, 20, 8, 2)[8:21], crc=9) + chunk(b"IDAT", body)
    check_refused(wrong, "IHDR", "checksum")
    for name in (b"tEXt", b"gAMA", b"abcd"):
        wrong = start + chunk(name, bytes(40), crc=9) + chunk(b"IDAT", body) + chunk(b"IEND")
        check_refused(wrong, f"{name}", "checksum")
    adler = body[:-1] + bytes([body[-1] ^ 1])
    check_refused(start + chunk(b"IDAT", adler) + chunk(b"IEND"), "Adler-32", "row")


def test_ends():
    rng = random.Random(5)
    whole = png(rng, 40, 30, 8, 2)
    for cut in (len(whole) - 4, len(whole) - 12, len(whole) - 14):
        check(whole[:cut], f"IEND cut at {cut}")
    check(whole + b"garbage behind" * 9, "garbage behind IEND")
    for cut in range(0, len(whole) - 60, 37):
        check_refused(whole[:cut], f"cut at {cut}")
    check_refused(whole[: len(whole) // 2], "half", "row")
    cut_text = whole[:-12] + chunk(b"tEXt", b"key\0" + bytes(50))[:30]
    check_refused(cut_text, "a text cut off behind the data", "tEXt")
    check_refused(SIGNATURE + header(3, 3, 8, 2) + chunk(b"IEND"), "no data", "no image data")
    check_refused(SIGNATURE, "only a signature")


def test_headers():
    rng = random.Random(6)
    body = chunk(b"IDAT", zlib.compress(rows(rng, 6, 6, 8, 2))) + chunk(b"IEND")
    for depth, colour in [(4, 2), (3, 0), (16, 3), (8, 1), (8, 5), (2, 6), (32, 2)]:
        check_refused(
            SIGNATURE + header(6, 6, depth, colour) + body,
            f"{depth} bits, colour {colour}",
            "colour type",
        )
    for width, height in [(0, 6), (6, 0), (2**31, 1), (1, 2**31), (2**32 - 1, 2**32 - 1)]:
        check_refused(SIGNATURE + header(width, height, 8, 2) + body, f"{width} x {height}")
    check_refused(
        SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 6, 6, 8, 2, 0, 1, 0)) + body,
        "filter method",
        "filter",
    )
    check_refused(SIGNATURE + chunk(b"IHDR", bytes(12)) + body, "short", "short")
    check(
        SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 6, 6, 8, 2, 7, 0, 0)) + body,
        "compression method 7",
    )
    check(
        SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 6, 6, 8, 2, 0, 0, 0) + b"more") + body,
        "long IHDR",
    )
    check(SIGNATURE + chunk(b"teSt", b"first") + header(6, 6, 8, 2) + body, "IHDR comes second")
    check_refused(SIGNATURE + body, "no IHDR")


def test_other_chunks():
    rng = random.Random(8)
    for name, data in [
        (b"gAMA", struct.pack(">I", 100)), (b"sRGB", b"\1"), (b"cHRM", bytes(32)), (b"pHYs", bytes(9)),
        (b"iCCP", b"name\0\0" + zlib.compress(b"x")), (b"iCCP", b"name\0\0broken"),
        (b"tEXt", b"Title\0text"),
        (b"zTXt", b"k\0\0" + zlib.compress(b"v")), (b"zTXt", b"k"), (b"zTXt", b""),
        (b"iTXt", b"k\0\0\0\0\0v"),
        (b"bKGD", bytes(6)), (b"sBIT", bytes(3)), (b"hIST", b""), (b"sPLT", b""), (b"tIME", b""),
        (b"ABCD", b"unknown and critical"), (b"ab_1", b""), (b"eXIf", b"nonsense"),
    ]:  # fmt: skip
        check(png(rng, 6, 5, 8, 2, before=chunk(name, data)), f"{name} {data!r}")
        check(png(rng, 6, 5, 8, 2, after=chunk(name, data)), f"{name} {data!r} behind the data")
    for name, data in [
        (b"gAMA", bytes(3)), (b"sRGB", b""), (b"cHRM", bytes(31)), (b"pHYs", bytes(8)), (b"iCCP", b""),
        (b"iCCP", b"name\0\1data"), (b"zTXt", b"k\0\1"), (b"a-cd", b""), (b"acTL", bytes(7)),
        (b"fcTL", bytes(25)), (b"fdAT", b"\0"),
    ]:  # fmt: skip
        check_refused(png(rng, 6, 5, 8, 2, before=chunk(name, data)), f"{name} {data!r}")


def frame_chunk(sequence, width, height, x, y):
    return chunk(b"fcTL", struct.pack(">5I2H2B", sequence, width, height, x, y, 1, 10, 0, 0))


def test_animations():
    rng = random.Random(9)
    images = [Image.new("RGB", (9, 7), c) for c in ("red", "green", "blue")]
    for default in (False, True):
        out = io.BytesIO()
        images[0].save(out, "PNG", save_all=True, append_images=images[1:], default_image=default)
        check(out.getvalue(), f"APNG, default image {default}")
    for frames in (0, 1, 2):
        control = chunk(b"acTL", struct.pack(">II", frames, 0))
        check(png(rng, 9, 7, 8, 2, before=control), f"acTL of {frames} frames")
        check(
            png(rng, 9, 7, 8, 2, before=control + frame_chunk(0, 9, 7, 0, 0)),
            f"with fcTL, {frames} frames",
        )
    for colour, interlaced in ((2, 0), (3, 0), (2, 1)):
        body = rows(rng, 4, 3, 8, colour, interlaced)
        start = SIGNATURE + header(9, 7, 8, colour, interlaced) + chunk(b"PLTE", b"\x50\x60\x70\1\2\3")
        start += chunk(b"acTL", struct.pack(">II", 1, 0)) + frame_chunk(0, 4, 3, 2, 1)
        check(
            start + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND"),
            f"a smaller first frame, {colour}",
        )
        moving = chunk(b"fdAT", b"\0\0\0\1" + zlib.compress(body))
        check(start + moving + chunk(b"IEND"), "frame data and no image data")
    bad = png(rng, 9, 7, 8, 2, before=frame_chunk(1, 9, 7, 0, 0))
    check_refused(bad, "sequence", "sequence")
    check_refused(png(rng, 9, 7, 8, 2, before=frame_chunk(0, 9, 7, 1, 0)), "beyond", "beyond")


def with_right_checksums(data):
    """So that the damage gets as far as the contents of the chunks."""
    out, at = bytearray(data), 8
    while at + 12 <= len(out):
        end = at + 8 + int.from_bytes(out[at : at + 4], "big")
        if end + 4 > len(out):
            break
        out[end : end + 4] = struct.pack(">I", zlib.crc32(out[at + 4 : end]))
        at = end + 4
    return bytes(out)


def test_mutated_files_agree():
    """Damage of all kinds: the same pixels, or an error on both sides. What is left are streams that end
    early at the end of a row, where Pillow is content with black rows, and image data that nobody needs."""
    rng = random.Random(10)
    files = []
    for colour, depth in KINDS:
        for interlaced in (0, 1):
            data = png(rng, 13, 11, depth, colour, interlaced, before=chunk(b"tEXt", b"a\0b"), split=60)
            files += mutations(rng, data, 15)
            files += [with_right_checksums(changed) for changed in mutations(rng, data, 15)]
    agreement(files, least=0.97)


def grey_of(body):
    """A PNG of 97 x 61 grey bytes."""
    return SIGNATURE + header(97, 61, 8, 0) + chunk(b"IDAT", body) + chunk(b"IEND")


def test_masks_are_inflated_at_once_or_as_ever():
    rng = random.Random(8)
    plain = rows(rng, 97, 61, 8, 0)
    body = zlib.compress(plain)
    check(grey_of(body), "as it should be")
    check(grey_of(body + b"behind"), "bytes behind the stream")
    check(grey_of(zlib.compress(plain + plain)), "more rows than the image has")
    for window in (9, 12, 15):
        deflate = zlib.compressobj(9, zlib.DEFLATED, window)
        check(grey_of(deflate.compress(plain) + deflate.flush()), f"a window of {window} bits")
    check_refused(grey_of(zlib.compress(plain[:-200])), "rows are missing", "row 58")
    half = b"".join(b"\0" + bytes(rng.randrange(256) for _ in range(97)) for _ in range(30))
    twice = zlib.compress(half + half + bytes(98))
    check(grey_of(b"\x18\x19" + twice[2:]), "a window of 512 bytes that is too small")
    wrong = bytearray(plain)
    wrong[98 * 20] = 5
    check_refused(grey_of(zlib.compress(bytes(wrong))), "a filter that does not exist", "filter")


def filtered(image, filters):
    """The rows of an array [H, W, C] of bytes, filtered by the numbers in turn."""
    height, width, channels = image.shape
    left, above, corner = (numpy.zeros_like(image, dtype=int) for _ in range(3))
    left[:, 1:], above[1:], corner[1:, 1:] = image[:, :-1], image[:-1], image[:-1, :-1]
    distance = [abs(above - corner), abs(left - corner), abs(left + above - 2 * corner)]
    nearest = numpy.where(distance[1] <= distance[2], above, corner)
    nearest = numpy.where((distance[0] <= distance[1]) & (distance[0] <= distance[2]), left, nearest)
    predictions = [0 * left, left, above, (left + above) // 2, nearest]
    out = bytearray()
    for y in range(height):
        number = filters[y % len(filters)]
        out.append(number)
        out += ((image[y] - predictions[number][y]) % 256).astype(numpy.uint8).tobytes()
    return bytes(out)


@pytest.mark.parametrize("colour,channels", [(0, 1), (4, 2), (2, 3), (6, 4)])
def test_photographs_pass_through_the_window(colour, channels):
    """Larger than the window of the inflated stream, deflated in all ways, and damaged near its end."""
    rng = numpy.random.default_rng(12)
    width, height = 203, 1400 // channels
    noise = rng.integers(-3, 4, (height, width, channels))
    image = (numpy.cumsum(noise, 0) + numpy.arange(width)[None, :, None] // 3).clip(0, 255).astype(numpy.uint8)
    for n, filters in enumerate([(4,), (1, 4, 3, 2, 0), (1,), (3, 4)]):
        plain = filtered(image, filters)
        for level, strategy in [(6, zlib.Z_FILTERED), (1, zlib.Z_RLE), (0, 0), (6, zlib.Z_FIXED)]:
            if n and level != 6:
                continue
            deflate = zlib.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
            body = deflate.compress(plain) + deflate.flush()
            start = SIGNATURE + header(width, height, 8, colour)
            pieces = b"".join(chunk(b"IDAT", body[i : i + 8192]) for i in range(0, len(body), 8192))
            check(start + pieces + chunk(b"IEND"), f"filters {filters}, level {level}", n)
    check_refused(start + chunk(b"IDAT", body[:-1] + b"?") + chunk(b"IEND"), "Adler-32", "row")
    check_refused(start + chunk(b"IDAT", body[:-90]) + chunk(b"IEND"), "the end is missing", "row")
    wrong = bytearray(plain)
    wrong[(width * channels + 1) * (height - 11)] = 5
    check_refused(start + chunk(b"IDAT", zlib.compress(bytes(wrong))) + chunk(b"IEND"), "a filter", "filter")


def test_masks_of_large_areas():
    """The predictor of Paeth takes short cuts where neighbours are equal."""
    rng = random.Random(9)
    for _ in range(20):
        width, height, filters = rng.randrange(1, 90), rng.randrange(1, 40), (4, 4, 3, 2, 1, 0)
        filtered = bytearray()
        for _ in range(height):
            filtered.append(rng.choice(filters))
            filtered += bytes(rng.choice((0, 0, 0, 0, 1, 255)) for _ in range(width))
        body = zlib.compress(bytes(filtered))
        file = SIGNATURE + header(width, height, 8, 0) + chunk(b"IDAT", body) + chunk(b"IEND")
        check(file, f"{width}x{height}")
