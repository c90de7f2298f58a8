# SPDX-License-Identifier: Apache-2.0
"""`stoker pack` and the images: --crop-ready, --resize and --max-size."""

from __future__ import annotations

import io
import tarfile

import numpy as np
from conftest import picture
from packing import folder_samples, pack, pixels, stoker, tar_samples
from PIL import Image


def test_crop_ready_changes_no_pixel(tmp_path):
    root = tmp_path / "tree" / "a"
    root.mkdir(parents=True)
    kinds = {"base": {}, "prog": {"progressive": True}, "full": {"subsampling": 0}, "h2": {"subsampling": 1},
             "q100": {"quality": 100}}
    sizes = [(400, 300), (333, 217), (17, 9), (8, 8), (104, 63), (1, 40)]
    for kind, options in kinds.items():
        for i, size in enumerate(sizes):
            picture(i, *size).save(root / f"{kind}{i}.jpg", **{"quality": 85, **options})
    picture(1, 320, 200).convert("L").save(root / "grey.jpg", progressive=True)
    picture(2, 320, 200).convert("CMYK").save(root / "cmyk.jpg")
    got = pack(tmp_path / "tree", tmp_path / "out", "--crop-ready")
    assert f"{len(kinds) * len(sizes) + 1} JPEG files" in got.stdout and "1 left unchanged" in got.stdout
    before, after = folder_samples(tmp_path / "tree"), tar_samples(tmp_path / "out")
    assert len(before) == len(after)
    changed = 0
    for (was, _), (now, _) in zip(before, after):
        assert np.array_equal(pixels(was), pixels(now))
        assert Image.open(io.BytesIO(now)).info.get("progressive") is None or was == now
        changed += was != now
    assert changed == len(before) - 1
    assert sum(len(n) for n, _ in after) < sum(len(w) for w, _ in before)


def test_crop_ready_leaves_damaged_files_alone_or_equal(tmp_path):
    root = tmp_path / "tree" / "a"
    root.mkdir(parents=True)
    rng = np.random.default_rng(11)
    for i in range(80):
        buffer = io.BytesIO()
        picture(i, 120, 90).save(buffer, "jpeg", progressive=i % 2 == 0)
        data = bytearray(buffer.getvalue())
        if i % 4 == 3:
            data = data[: int(rng.integers(300, len(data)))]
        else:
            data[int(rng.integers(20, len(data)))] ^= 1 << int(rng.integers(8))
        (root / f"{i:03}.jpg").write_bytes(data)
    assert stoker("pack", tmp_path / "tree", tmp_path / "out", "--crop-ready", "--on-error", "skip").returncode in (0, 3)
    before = {f"a/{p.stem}.jpg": p.read_bytes() for p in root.iterdir()}
    kept = 0
    with tarfile.open(tmp_path / "out" / "shard-000000.tar") as tar:
        for member in tar:
            if member.name not in before:
                continue
            now = tar.extractfile(member).read()
            kept += now == before[member.name]
            if now != before[member.name]:
                assert np.array_equal(pixels(now), pixels(before[member.name])), member.name
    assert kept >= 15


def test_crop_ready_keeps_exif_and_profile(tmp_path):
    root = tmp_path / "tree" / "a"
    root.mkdir(parents=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    picture(3, 200, 120).save(root / "x.jpg", exif=exif, icc_profile=b"profile" * 50, comment=b"said")
    pack(tmp_path / "tree", tmp_path / "out", "--crop-ready")
    image = Image.open(io.BytesIO(tar_samples(tmp_path / "out")[0][0]))
    assert image.getexif()[0x0112] == 6 and image.info["icc_profile"] == b"profile" * 50
    assert image.info["comment"] == b"said"


def test_resize_and_max_size(tmp_path):
    root = tmp_path / "tree" / "a"
    root.mkdir(parents=True)
    picture(0, 400, 300).save(root / "0.png")
    picture(1, 90, 200).save(root / "1.png")
    tree = tmp_path / "tree"
    pack(tree, tmp_path / "short", "--resize", 60)
    assert [pixels(b).shape[:2] for b, _ in tar_samples(tmp_path / "short")] == [(60, 80), (133, 60)]
    pack(tree, tmp_path / "exact", "--resize", "64x48", "--quality", 70)
    assert [pixels(b).shape[:2] for b, _ in tar_samples(tmp_path / "exact")] == [(48, 64)] * 2
    for quality in (35, 70):  # as libjpeg counts it
        pack(tree, tmp_path / f"q{quality}", "--quality", quality)
        buffer = io.BytesIO()
        picture(0, 400, 300).save(buffer, "jpeg", quality=quality)
        for data, _ in tar_samples(tmp_path / f"q{quality}"):
            image = Image.open(io.BytesIO(data))
            assert image.format == "JPEG" and image.quantization == Image.open(buffer).quantization
    pack(tree, tmp_path / "most", "--max-size", 200)
    most = tar_samples(tmp_path / "most")
    assert pixels(most[0][0]).shape[:2] == (150, 200)
    assert most[1][0] == (root / "1.png").read_bytes()  # small enough: left alone
