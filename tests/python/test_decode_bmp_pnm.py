# SPDX-License-Identifier: Apache-2.0
"""BMP and PNM: every kind that Pillow reads, whole and in part, byte for byte; the others refused."""

import io
import random
import struct

import numpy
import pytest
from decode_parity import agree, agreement, check, check_refused, mutations, ours, pillow
from PIL import Image

SIZES = [(1, 1), (2, 3), (5, 4), (8, 8), (31, 9), (33, 17)]


def bmp(
    width, height, bits, data, compression=0, head=40, palette=b"", masks=b"", colours=0, offset=None
):
    if head == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack(
            "<IiiHHIIiiII", head, width, height, 1, bits, compression, len(data), 0, 0, colours, 0
        )
        extra = head - 40
        info += (masks[:extra] if extra >= 12 else b"").ljust(extra, b"\0")
        if extra < 12:
            info += masks
    if offset is None:
        offset = 14 + len(info) + len(palette)
    return (
        b"BM"
        + struct.pack("<IHHI", 14 + len(info) + len(palette) + len(data), 0, 0, offset)
        + info
        + palette
        + data
    )


def stride(width, bits):
    return (width * bits + 31) // 32 * 4


@pytest.mark.parametrize("bits", [1, 4, 8, 16, 24, 32])
@pytest.mark.parametrize("head", [12, 40, 52, 56, 64, 108, 124])
def test_bmp_kinds(bits, head):
    rng = random.Random(f"{bits} {head}")
    for width, height in SIZES:
        for sign in (1, -1) if head > 12 else (1,):
            palette = rng.randbytes((3 if head == 12 else 4) << bits) if bits <= 8 else b""
            data = bmp(
                width, sign * height, bits, rng.randbytes(stride(width, bits) * height), 0, head, palette
            )
            check(data, f"{bits} bits, head {head}, {width}x{sign * height}", width)


def test_bmp_palettes():
    rng = random.Random(1)
    greys = b"".join(bytes([i, i, i, 0]) for i in range(256))
    for bits, palette, colours in [
        (8, greys, 0), (8, greys, 256), (8, rng.randbytes(40), 10), (8, rng.randbytes(1024), 256),
        (8, greys[:40], 10),
        (1, b"\0\0\0\0\xff\xff\xff\0", 0), (1, b"\xff\xff\xff\0\0\0\0\0", 0),
        (1, b"\xff\xff\xff\0\0\0\0\0", 2),
        (1, rng.randbytes(8), 2), (1, b"\0\0\0\0", 1), (4, rng.randbytes(64), 16),
        (4, rng.randbytes(12), 3),
        (8, b"\0\0\0\0\xff\xff\xff\0", 2),
    ]:  # fmt: skip
        for width, height in SIZES:
            data = bmp(
                width,
                height,
                bits,
                rng.randbytes(stride(width, bits) * height),
                palette=palette,
                colours=colours,
            )
            check(data, f"{bits} bits, {colours} colours, {width}x{height}")
    pixels = rng.randbytes(stride(9, 8) * 5)
    check(bmp(9, 5, 8, pixels, palette=rng.randbytes(1024), offset=0), "no offset")
    check(
        bmp(9, 5, 8, pixels, palette=rng.randbytes(1024), offset=54),
        "an offset that forgets the palette",
    )
    check(bmp(9, 5, 24, rng.randbytes(28 * 5) + b"\0" * 9, offset=60), "an offset beyond the header")
    check_refused(
        bmp(9, 5, 8, pixels, palette=rng.randbytes(4 * 257), colours=257), "257 colours", "palette"
    )
    check_refused(
        bmp(9, 5, 8, pixels, palette=rng.randbytes(1024), colours=70000), "70000 colours", "palette"
    )


MASKS32 = [
    (0xFF0000, 0xFF00, 0xFF, 0), (0xFF000000, 0xFF0000, 0xFF00, 0), (0xFF000000, 0xFF00, 0xFF, 0),
    (0xFF000000, 0xFF0000, 0xFF00, 0xFF), (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
    (0xFF0000, 0xFF00, 0xFF, 0xFF000000), (0xFF000000, 0xFF00, 0xFF, 0xFF0000), (0, 0, 0, 0),
]  # fmt: skip


def test_bmp_masks():
    rng = random.Random(2)
    cases = [(32, m) for m in MASKS32] + [(24, (0xFF0000, 0xFF00, 0xFF, 0))]
    cases += [
        (16, (0xF800, 0x7E0, 0x1F, 0)),
        (16, (0x7C00, 0x3E0, 0x1F, 0)),
        (16, (0x7C00, 0x3E0, 0x1F, 0x8000)),
    ]
    for bits, masks in cases:
        for head in (40, 52, 56, 108, 124):
            packed = struct.pack("<4I", *masks)[: 12 if head == 40 else 16]
            data = bmp(7, 5, bits, rng.randbytes(stride(7, bits) * 5), 3, head, masks=packed)
            if head < 56 and bits == 32 and masks[3] and masks[:3] + (0,) not in MASKS32:
                check_refused(data, f"{masks} head {head}", "masks")
            else:
                check(data, f"{bits} bits, {masks}, head {head}")
    odd = struct.pack("<3I", 0xFF00, 0xFF0000, 0xFF)
    for bits in (32, 24, 16, 8):
        check_refused(bmp(7, 5, bits, bytes(500), 3, masks=odd, palette=bytes(4)), "odd masks", "masks")


def runs(rng, width, height, nibbles):
    """A stream of every kind of run that fills the image."""
    out, done, x = bytearray(), 0, 0
    while done < width * height:
        left = width - x
        kind = rng.randrange(6)
        if left == 0:
            out += b"\0\0"
            x = 0
        elif kind == 0 and left >= 3:
            count = rng.randint(3, min(left, 255))
            size = (count + 1) // 2 if nibbles else count
            out += bytes([0, count]) + rng.randbytes(size) + b"\0" * (size % 2)
            x, done = x + count, done + count
        elif kind == 1 and done % width:
            out += b"\0\0"
            done += width - done % width
            x = 0
        elif kind == 2:
            right, up = rng.randint(0, 3), rng.randint(0, 1)
            jump = min(width * height - done, right + up * width)
            out += bytes([0, 2, right, up])
            done += jump
            x = done % width
        else:
            count = rng.randint(1, min(left, 255))
            out += bytes([count, rng.randrange(256)])
            x, done = x + count, done + count
    return bytes(out) + b"\0\1"


@pytest.mark.parametrize("compression,bits", [(1, 8), (2, 4), (1, 4), (2, 8), (1, 1)])
def test_bmp_runs(compression, bits):
    rng = random.Random(f"{compression} {bits}")
    greys = b"".join(bytes([i, i, i, 0]) for i in range(256))
    count = 0
    for width, height in SIZES * 4:
        for palette in (
            rng.randbytes(4 << bits),
            greys[: 4 << bits] if bits == 8 else rng.randbytes(4 << bits),
        ):
            for sign in (1, -1):
                body = runs(rng, width, height, compression == 2)
                data = bmp(width, sign * height, bits, body, compression, palette=palette)
                assert agree(pillow(data), ours(data)), f"{width}x{sign * height}"
                count += not isinstance(ours(data), Exception)
    assert count > 40
    body = b"\x05\x01\0\0" * 4 + b"\x05\x01\0\1"
    check(bmp(5, 5, 8, body, 1, palette=rng.randbytes(1024)), "plain runs")
    black_white = b"\0\0\0\0\xff\xff\xff\0"
    check(bmp(5, 5, 1, body, 1, palette=black_white), "runs of black and white")
    check_refused(bmp(5, 5, 8, body[:-6], 1, palette=rng.randbytes(1024)), "too few", "row")
    check_refused(bmp(5, 5, 24, body, 1), "runs of 24 bits", "run-length")


def test_bmp_refusals():
    for compression in (4, 5, 6, 11, 12, 99):
        check_refused(
            bmp(5, 5, 24, bytes(100), compression),
            f"compression {compression}",
            f"compression {compression}",
        )
    for bits in (0, 2, 3, 15, 48, 64):
        check_refused(bmp(5, 5, bits, bytes(300)), f"{bits} bits", "bits per pixel")
    for head in (16, 39, 41, 128):
        check_refused(
            bmp(5, 5, 24, bytes(100), head=max(head, 40)).replace(
                struct.pack("<I", max(head, 40)), struct.pack("<I", head), 1
            ),
            f"head {head}",
            "header",
        )
    whole = bmp(9, 7, 24, bytes(28 * 7))
    for cut in (1, 5, 17, 18, 53, 60, len(whole) - 2):
        check_refused(whole[:cut], f"cut at {cut}")
    check(whole[:-1], "only the last padding is missing")
    for width, height in [(0, 5), (5, 0), (30000, 30000), (-5, 5)]:
        check_refused(bmp(width, height, 24, bytes(10)), f"{width} x {height}")


def pnm(magic, width, height, maxval, data, sep="\n"):
    tail = b"" if magic in ("P1", "P4") else f"{maxval}\n".encode()
    return f"{magic}{sep}{width} {height}\n".encode() + tail + data


@pytest.mark.parametrize("maxval", [1, 2, 7, 100, 254, 255, 256, 300, 1000, 4095, 65534, 65535])
@pytest.mark.parametrize("magic", ["P2", "P3", "P5", "P6"])
def test_pnm_levels(magic, maxval):
    rng = random.Random(f"{magic} {maxval}")
    bands = 3 if magic in ("P3", "P6") else 1
    for width, height in SIZES:
        values = [
            rng.randint(0, min(maxval, rng.choice((maxval, 300)))) for _ in range(width * height * bands)
        ]
        if magic in ("P2", "P3"):
            data = "".join(str(v) + rng.choice(" \n\t ") for v in values).encode()
        else:
            data = struct.pack(f">{len(values)}H", *values) if maxval > 255 else bytes(values)
        check(pnm(magic, width, height, maxval, data), f"{magic} {maxval} {width}x{height}", width)
    if magic in ("P5", "P6"):  # values beyond the largest
        size = 9 * 5 * bands * (2 if maxval > 255 else 1)
        check(pnm(magic, 9, 5, maxval, rng.randbytes(size)), f"{magic} {maxval}, any values")


def test_pnm_all_levels_of_16_bits():
    for maxval in (257, 1000, 40000, 65534):
        ramp = struct.pack(">65536H", *range(65536))
        check(pnm("P6", 128, 170, maxval, ramp), f"P6 ramp {maxval}")
        check(pnm("P5", 256, 256, maxval, ramp), f"P5 ramp {maxval}")


def test_pbm():
    rng = random.Random(3)
    for width, height in SIZES:
        check(
            pnm("P4", width, height, 0, rng.randbytes((width + 7) // 8 * height)), f"P4 {width}x{height}"
        )
        bits = "".join(rng.choice("01") + rng.choice(["", "", " ", "\n"]) for _ in range(width * height))
        check(pnm("P1", width, height, 0, bits.encode()), f"P1 {width}x{height}")
    check(pnm("P1", 2, 2, 0, b"0 1#0 0\n1 0"), "a comment among bits")
    check(pnm("P1", 2, 2, 0, b"01101110"), "more bits than needed")
    check_refused(pnm("P1", 2, 2, 0, b"011 x"), "no bit", "neither")
    check_refused(pnm("P1", 2, 2, 0, b"0110 garbage"), "no bits behind", "neither")
    check_refused(pnm("P1", 2, 2, 0, b"011"), "too few bits", "row")


def test_pnm_texts():
    check(b"P2 # comment\n#another\n2 2 # more\n255\n1 2 #x\n3 4", "comments")
    check(b"P2 2#c\n 2 255 1 2 3 4", "a comment ends no word")
    check(b"P2\n1#c\n0 1 255 " + b"7 " * 10, "a word goes on behind a comment")
    check(b"P2 2 2 255 1 2 3 4 trailing", "text behind the values")
    check(b"P2 2 2 255 +1 0_0 007 -0", "numbers as Python writes them")
    check(b"P6\r2\x0b1\x0c255\t" + bytes(6), "all kinds of white space")
    check(b"P5 2 2 255 \n\2\3\4", "the byte behind the one white space is a pixel")
    for text in [
        b"P2 2 2 255 1 2 3", b"P2 2 2 255 1 2 3 256", b"P2 2 2 255 1 2 3 -1", b"P2 2 2 255 1 2 x 4",
        b"P2 2 2 255 1 2 12345678901 4", b"P2 2 2 0 1 2 3 4", b"P2 2 2 65536 1 2 3 4", b"P2 0 2 255",
        b"P2 -1 2 255 1 2", b"P2 2", b"P2 ", b"P2 2 2 255", b"P2 12345678901 2 255 1",
        b"P2 2 2 2_ 1 1 1 1",
        b"P2 2 2 _2 1 1 1 1", b"P2 2 2 1__0 1 1 1 1", b"P2 2 2 255 1 2\0 3 4", b"P7\nWIDTH 2\n",
        b"P6 2 2 255 " + bytes(11), b"P6 30000 30000 255 ", b"P3 30000 30000 255 1 2 3",
        b"P5 2 2 256 " + bytes(7),
    ]:  # fmt: skip
        check_refused(text, repr(text))


def test_pfm():
    rng = random.Random(4)
    values = [-1.0, 0.0, 0.4, 0.99, 1.0, 1.5, 127.999, 254.9, 255.0, 300.0, 1e9, -1e9]
    for scale, order in (("1.0", ">"), ("-1.0", "<"), ("-.5e-1", "<"), ("2", ">"), ("+3.", ">")):
        data = struct.pack(f"{order}12f", *rng.sample(values, 12))
        check(f"Pf\n4 3\n{scale}\n".encode() + data, f"PFM {scale}")
    for scale in ("0", "0.0", "-0", "x", "1.2.3", "nan", "inf", "1e999", "e5", "-", "."):
        check_refused(f"Pf\n4 3\n{scale}\n".encode() + bytes(48), f"PFM {scale}", "scale")


@pytest.mark.parametrize("format", ["BMP", "PPM"])
@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "I;16"])
def test_written_by_pillow(mode, format):
    if (mode, format) in (("P", "PPM"), ("I;16", "BMP")):
        pytest.skip("Pillow does not write it")
    rng = numpy.random.default_rng(5)
    for width, height in SIZES + [(100, 75)]:
        if mode == "I;16":
            image = Image.fromarray(rng.integers(0, 600, (height, width), dtype=numpy.uint16))
        else:
            image = Image.fromarray(
                rng.integers(0, 256, (height, width, 4), dtype=numpy.uint8), "RGBA"
            ).convert(mode)
        out = io.BytesIO()
        image.save(out, format)
        check(out.getvalue(), f"{mode} {format} {width}x{height}", width)


def test_mutated_files_agree():
    rng = random.Random(6)
    files = [
        bmp(
            9,
            7,
            bits,
            rng.randbytes(stride(9, bits) * 7),
            palette=rng.randbytes(4 << bits if bits <= 8 else 0),
        )
        for bits in (1, 4, 8, 16, 24, 32)
    ]
    files += [
        bmp(9, 7, 8, runs(rng, 9, 7, False), 1, palette=rng.randbytes(1024)),
        bmp(9, 7, 4, runs(rng, 9, 7, True), 2, palette=rng.randbytes(64)),
    ]
    files += [bmp(9, 7, 32, rng.randbytes(36 * 7), 3, 56, masks=struct.pack("<4I", *MASKS32[5]))]
    texts = "".join(f"{rng.randrange(256)} " for _ in range(9 * 7 * 3)).encode()
    files += [pnm(m, 9, 7, 255, rng.randbytes(9 * 7 * 3)) for m in ("P5", "P6")] + [
        pnm(m, 9, 7, 255, texts) for m in ("P2", "P3")
    ]
    files += [
        pnm("P6", 9, 7, 1000, rng.randbytes(9 * 7 * 6)),
        pnm("P4", 9, 7, 0, rng.randbytes(14)),
        pnm("P1", 9, 7, 0, b"01 " * 40),
    ]
    agreement([changed for data in files for changed in mutations(rng, data, 60)], least=0.99)
