#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets, tests/fuzz/corpus/<target>/, with Pillow.

Usage: make_corpus.py [PROGRAM]

PROGRAM is test_codec_jpeg as built, which writes the JPEGs that Pillow cannot (odd samplings, arithmetic
coding, separate scans, odd markers). Files named crash-* were found by fuzzing, and stay.
"""

import io
import pathlib
import random
import subprocess
import sys

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


def bmp():
    for mode in "1", "L", "P", "RGB", "RGBA":
        write("bmp", mode.lower(), mode)
    write("bmp", "pixel", "RGB", (1, 1))


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


def spec():
    folder = CORPUS / "spec"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "train": "random_resized_crop(size=224); random_horizontal_flip; to_tensor; "
                 "normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])",
        "validate": "resize(size=256, interpolation=bicubic); center_crop(size=[224, 200]); to_tensor",
        "holds": "random_apply(p=0.5){ color_jitter(brightness=[0.5, 1.5]); gaussian_blur(kernel_size=5) }; grayscale",
        "spaces": " pad ( padding = [1,2,3,4] , fill = -1.5e2 ) ;\n",
        "nested": "random_apply{random_apply{random_apply(p=1){hflip}}}",
        "broken": "resize(size=; ) } normalize(mean=[",
        "empty": "",
    }.items():
        (folder / name).write_text(text)


for make in jpeg, webp, png, bmp, pnm, tiff, spec:
    make()
