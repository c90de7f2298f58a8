# SPDX-License-Identifier: Apache-2.0
"""fidelity="fast" on a GPU with JPEG engines: they decode part of every batch, close to exact, and nothing is lost."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
import stoker
import torch
from conftest import assert_same, load, on_cpu, reference
from PIL import Image
from stoker import transforms as T
from stoker.synth import Painter

# Crops of 500 x 375 are never twice as large as this, so the CPU's share of the images is decoded in full.
CROP = T.Compose([T.RandomResizedCrop(200, scale=(0.2, 0.5)), T.RandomHorizontalFlip(), T.PILToTensor()])


def engines(loader):
    return loader.stats()["device"]


@pytest.fixture(scope="session")
def pictures():
    painter = Painter(7)
    return [painter.image(number).convert("RGB").resize((500, 375)) for number in range(24)]


def make_set(root, pictures, count, **how):
    """``count`` files of the same few pictures, all encoded in one way."""
    root.joinpath("all").mkdir(parents=True)
    mode, files = how.pop("mode", "RGB"), []
    for picture in pictures:
        data = io.BytesIO()
        picture.convert(mode).save(data, "JPEG", **{"quality": 90, **how})
        files.append(data.getvalue())
    for number in range(count):
        root.joinpath("all", f"{number:04d}.jpg").write_bytes(files[number % len(files)])
    return root


def warm(loader, rows=200, seconds=30):
    """Runs epochs until the engines, which take about a second to open, have decoded something."""
    until = time.monotonic() + seconds
    while engines(loader)["files_decoded_there"] < rows and time.monotonic() < until:
        for _ in loader:
            pass
        if engines(loader)["engines_note"]:
            pytest.skip(engines(loader)["engines_note"])
    assert engines(loader)["files_decoded_there"] >= rows


def far(root, **options):
    """The differences between a fast epoch, of which the engines did a good part, and the exact one."""
    # One worker: engines rest where the CPUs keep up, and here they are to be seen at work.
    loader = load(root, CROP, fidelity="fast", batch_size=128, num_workers=1, **options)
    warm(loader)
    before = engines(loader)["files_decoded_there"]
    loader.set_epoch(0)
    got = on_cpu(loader)
    done = engines(loader)["files_decoded_there"] - before
    want = reference(root, CROP, batch_size=128)
    apart = [(a.int() - b.int()).abs() for (a, _), (b, _) in zip(got, want, strict=True)]
    assert all(torch.equal(c, d) for (_, c), (_, d) in zip(got, want, strict=True))
    return torch.cat([each.flatten() for each in apart]), done


def test_444_is_equal(tmp_path, pictures):
    apart, done = far(make_set(tmp_path / "set", pictures, 768, subsampling="4:4:4"))
    print(f"4:4:4: {done} of 768 files by engines, mean {apart.float().mean():.4f}, at most {apart.max()}")
    assert done > 50
    assert apart.max() <= 1  # 0 on an H200; another GPU's transform may round otherwise


@pytest.mark.parametrize("sampling", ["4:2:2", "4:2:0"])
def test_less_chroma_is_close(tmp_path, pictures, sampling):
    apart, done = far(make_set(tmp_path / "set", pictures, 768, subsampling=sampling))
    print(f"{sampling}: {done} of 768 files by engines, mean {apart.float().mean():.4f}, at most {apart.max()}")
    assert done > 50
    assert apart.float().mean() < 0.5 and apart.max() < 64


@pytest.mark.parametrize("how", [
    {"mode": "L"}, {"mode": "CMYK"}, {"progressive": True}, {"subsampling": "4:1:1"}, {"quality": 1},
    {"restart_marker_blocks": 3}, {"optimize": True},
], ids=str)
def test_other_files_are_right(tmp_path, pictures, how):
    """Those that engines do not take, or would get wrong, are the CPU's; no image comes out as another."""
    root = make_set(tmp_path / "set", pictures[:6], 256, **dict(how))
    loader = load(root, CROP, fidelity="fast", batch_size=64)
    time.sleep(1.5)  # the engines open
    got = on_cpu(loader)
    for (a, _), (b, _) in zip(got, reference(root, CROP, batch_size=64), strict=True):
        apart = (a.int() - b.int()).abs().float().mean(dim=(1, 2, 3))
        assert apart.max() < 4  # another picture is dozens of levels away


def test_bad_files_are_reported(bad_folder):
    def bad(**options):
        loader = load(bad_folder, fidelity="fast", on_error="replace", batch_size=8, **options)
        time.sleep(0 if options else 1.5)  # the engines open
        labels = torch.cat([labels.cpu() for _, labels in loader])
        return labels, sorted(entry["sample"] for entry in loader.bad_samples())

    got, want = bad(), bad(device=None)
    assert torch.equal(got[0], want[0]) and got[1] == want[1] and len(got[1]) == 2


def test_damaged_data_loses_nothing(tmp_path, pictures):
    """Bits flipped inside: what comes out of such a file is nobody's promise, but its neighbours are right."""
    root = make_set(tmp_path / "set", pictures, 512, subsampling="4:4:4")
    rng = np.random.default_rng(1)
    damaged = set(range(0, 512, 16))
    for number in damaged:
        path = root / "all" / f"{number:04d}.jpg"
        data = bytearray(path.read_bytes())
        for at in rng.integers(len(data) // 4, len(data) - 2, 12):
            data[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
    options = {"on_error": "replace", "batch_size": 64, "shuffle": False}
    loader = load(root, CROP, fidelity="fast", **options)
    warm(loader)
    loader.set_epoch(0)
    got = torch.cat([images for images, _ in on_cpu(loader)])
    want = torch.cat([images for images, _ in reference(root, CROP, **options)])
    whole = [number for number in range(512) if number not in damaged]
    assert (got[whole].int() - want[whole].int()).abs().max() <= 1


def test_exact_leaves_engines_alone(folder):
    loader = load(folder)
    assert_same(on_cpu(loader), reference(folder))
    assert engines(loader)["files_decoded_there"] == 0


def test_close_while_engines_open(folder):
    for wait in (0, 0.05, 0.4):
        loader = load(folder, fidelity="fast")
        next(iter(loader))
        time.sleep(wait)
        del loader


def test_two_loaders(tmp_path, pictures):
    root = make_set(tmp_path / "set", pictures, 512, subsampling="4:4:4")
    first, second = (load(root, CROP, fidelity="fast", batch_size=128, num_workers=1) for _ in range(2))
    warm(first)
    warm(second)
    first.set_epoch(0)
    second.set_epoch(0)
    for (a, _), (b, _) in zip(first, second, strict=True):
        assert (a.int() - b.int()).abs().max() <= 1


def test_watch():
    watch = stoker.GpuWatch()
    busy = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        busy = (busy @ busy).clamp(-1, 1)
    torch.cuda.synchronize()
    sample = watch.sample()
    assert 0.2 < sample["busy"] <= 1 and sample["memory_used"] > 0 and sample["watts"] > 0
    if torch.cuda.get_device_capability()[0] >= 9:
        assert 0.2 < sample["sm_active"] <= 1 and sample["seconds"] >= 0.9
    watch.close()
    with pytest.raises(ValueError, match="closed"):
        watch.sample()
