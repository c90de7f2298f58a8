#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets, tests/fuzz/corpus/<target>/, with Pillow.

Usage: make_corpus.py [PROGRAM]

PROGRAM is test_codec_jpeg as built, which writes the JPEGs that Pillow cannot (odd samplings, arithmetic
coding, separate scans, odd markers). Files named crash-* were found by fuzzing, and stay.
"""

import io
import pathlib
import random
import struct
import subprocess
import sys
import zlib

from PIL import Image

CORPUS = pathlib.Path(__file__).parent / "corpus"


def picture(mode, width=29, height=22):
    rng = random.Random(f"{mode} {width} {height}")
    small = Image.frombytes("RGBA", (6, 5), bytes(rng.randrange(256) for _ in range(120)))
    via = "L" if mode.startswith("I") else "RGB" if mode in ("P", "CMYK") else mode
    return small.resize((width, height), Image.Resampling.BICUBIC).convert(via).convert(mode)


def write(codec, name, mode, size=(29, 22), **options):
    out = io.BytesIO()
    picture(mode, *size).save(out, {"jpeg": "JPEG", "pnm": "PPM"}.get(codec, codec.upper()), **options)
    folder = CORPUS / codec
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(out.getvalue())


def jpeg():
    exif = Image.Exif()
    exif[274] = 6
    for name, mode, options in [
        ("rgb", "RGB", {}), ("rgb444", "RGB", {"subsampling": 0}), ("progressive", "RGB", {"progressive": True}),
        ("grey", "L", {}), ("cmyk", "CMYK", {}), ("exif", "RGB", {"exif": exif}),
        ("restarts", "RGB", {"restart_marker_rows": 1}), ("icc", "RGB", {"icc_profile": b"x" * 200}),
        ("comment", "L", {"comment": b"words"}),
    ]:
        write("jpeg", name, mode, quality=60, **options)
    write("jpeg", "pixel", "RGB", (1, 1))
    if len(sys.argv) > 1:
        subprocess.run([sys.argv[1], "--write", str(CORPUS / "jpeg")], check=True)


def webp():
    for mode in "RGB", "RGBA":
        for name, options in [("lossy", {"quality": 60}), ("lossless", {"lossless": True}),
                              ("best", {"quality": 90, "method": 6})]:
            write("webp", f"{mode.lower()}-{name}", mode, **options)
    write("webp", "pixel", "RGB", (1, 1))
    exif = Image.Exif()
    exif[274] = 3
    write("webp", "exif", "RGB", exif=exif)
    frames = [picture("RGBA", 29, 22).rotate(30 * k) for k in range(1, 3)]
    write("webp", "animated", "RGBA", save_all=True, append_images=frames)
    write("webp", "animated-lossless", "RGBA", save_all=True, append_images=frames, lossless=True)


def png():
    for mode in "1", "L", "LA", "P", "RGB", "RGBA", "I;16":
        write("png", mode.lower().replace(";", ""), mode)
    write("png", "palette-transparent", "P", transparency=3)
    write("png", "pixel", "RGB", (1, 1))
    interlaced_png()


def interlaced_png(width=13, height=11):
    """Adam7, which Pillow does not write: the rows of seven smaller images."""
    rng, rows = random.Random(7), b""
    for x, y, dx, dy in (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2):
        rows += b"".join(bytes([rng.randrange(5)]) + rng.randbytes(3 * len(range(x, width, dx)))
                         for _ in range(y, height, dy))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    (CORPUS / "png" / "interlaced").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks))


def bmp():
    for mode in "1", "L", "P", "RGB", "RGBA":
        write("bmp", mode.lower(), mode)
    write("bmp", "pixel", "RGB", (1, 1))
    rng = random.Random(3)
    palette = rng.randbytes(4 * 16)
    for name, bits, kind in ("runs8", 8, 1), ("runs4", 4, 2):
        rows = b"".join(bytes([5, rng.randrange(16), 0, 4]) + rng.randbytes(4 if bits == 8 else 2) + b"\x04\x21\0\0"
                        for _ in range(6)) + b"\0\2\3\1\x07\x11\0\0\x0d\x05\0\1"
        head = struct.pack("<IiiHHIIiiII", 40, 13, 8, 1, bits, kind, len(rows), 1, 1, 16, 0)
        at = 14 + len(head) + len(palette)
        (CORPUS / "bmp" / name).write_bytes(
            b"BM" + struct.pack("<IHHI", at + len(rows), 0, 0, at) + head + palette + rows)


def pnm():
    for mode in "1", "L", "RGB", "I":
        write("pnm", mode.lower(), mode)
    values = " ".join(str(k * 7 % 256) for k in range(27))
    for name, text in [("plain-rgb", f"P3\n# words\n3 3 255\n{values}\n"), ("plain-grey", f"P2 9 3 255 {values}"),
                       ("plain-bits", "P1 4 2 1 0 1 0 0 1 0 1")]:
        (CORPUS / "pnm" / name).write_text(text)


def tiff():
    for mode in "1", "L", "P", "RGB", "RGBA", "CMYK", "I;16":
        name = mode.lower().replace(";", "")
        write("tiff", name, mode, **({} if mode == "I;16" else {"compression": "raw"}))
    for compression in "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg":
        write("tiff", compression.replace("tiff_", ""), "RGB", compression=compression)
    write("tiff", "fax", "1", compression="group4")
    write("tiff", "fax3", "1", compression="group3")
    write("tiff", "lzma", "L", compression="lzma")
    write("tiff", "zstd", "RGB", compression="zstd")
    write("tiff", "predicted", "RGB", compression="tiff_adobe_deflate", tiffinfo={317: 2})
    write("tiff", "strips", "RGB", compression="tiff_adobe_deflate", tiffinfo={278: 5})
    write("tiff", "fax-strips", "1", compression="group4", tiffinfo={278: 5})
    write("tiff", "jpeg-strips", "RGB", (40, 40), compression="jpeg", tiffinfo={278: 16})
    write("tiff", "ycbcr", "YCbCr", compression="tiff_lzw")
    tiled_tiff("tiles-deflate", 8, zlib.compress)
    tiled_tiff("tiles-raw", 1, bytes)


def tiled_tiff(name, compression, compress, width=29, height=22, side=16):
    """Tiles, which Pillow does not write."""
    rng = random.Random(name)
    tiles = [compress(rng.randbytes(side * side)) for _ in range(0, height, side) for _ in range(0, width, side)]
    offsets = [8 + sum(map(len, tiles[:k])) for k in range(len(tiles))]
    lists = struct.pack(f"<{2 * len(tiles)}I", *offsets, *map(len, tiles))
    at = 8 + sum(map(len, tiles))
    tags = [(256, 1, width), (257, 1, height), (258, 1, 8), (259, 1, compression), (262, 1, 1), (277, 1, 1), (322, 1, side),
            (323, 1, side), (324, len(tiles), at), (325, len(tiles), at + 4 * len(tiles))]
    (CORPUS / "tiff" / name).write_bytes(
        b"II*\0" + struct.pack("<I", at + len(lists)) + b"".join(tiles) + lists + struct.pack("<H", len(tags)) +
        b"".join(struct.pack("<HHII", tag, 4, count, value) for tag, count, value in tags) + bytes(4))


def spec():
    folder = CORPUS / "spec"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "train": "random_resized_crop(size=224); random_horizontal_flip; to_tensor; "
                 "normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])",
        "validate": "resize(size=256, interpolation=bicubic); center_crop(size=[224, 200]); to_tensor",
        "values": "random_posterize(bits=3); random_solarize(threshold=99.5, p=1); random_adjust_sharpness(sharpness_factor=-2)",
        "choice": "random_choice(p=[0.5, 2]){ random_order{ random_invert; pad(padding=3) }; random_apply(p=1){} }",
        "augment": "auto_augment(policy=svhn, fill=[1,2,3]); rand_augment(num_ops=3, magnitude=4, num_magnitude_bins=5)",
        "holds": "random_apply(p=0.5){ color_jitter(brightness=[0.5, 1.5]); gaussian_blur(kernel_size=5) }; grayscale",
        "blur": "pillow_blur(sigma=[0.1, 2]); random_apply(p=0.2){ pillow_blur(sigma=0) }",
        "spaces": " pad ( padding = [1,2,3,4] , fill = -1.5e2 ) ;\n",
        "nested": "random_apply{random_apply{random_apply(p=1){hflip}}}",
        "broken": "resize(size=; ) } normalize(mean=[",
        "empty": "",
    }.items():
        (folder / name).write_text(text)


for make in jpeg, webp, png, bmp, pnm, tiff, spec:
    make()
