# SPDX-License-Identifier: Apache-2.0
"""The GPU's JPEG hardware: it decodes part of every batch, and every value is the CPU's."""

from __future__ import annotations

import io
import os
import time

import numpy as np
import pytest
import stoker
import torch
from conftest import assert_same, on_cpu, reference, training, wait_for_hardware
from conftest import load as load_without_hardware
from PIL import Image
from stoker import transforms as T
from stoker.synth import Painter

CROP = T.Compose([T.RandomResizedCrop(200, scale=(0.2, 1.0)), T.RandomHorizontalFlip(), T.PILToTensor()])
JITTER = T.Compose([
    T.RandomResizedCrop(96, interpolation=T.InterpolationMode.BICUBIC), T.ColorJitter(0.4, 0.4, 0.4, 0.1),
    T.GaussianBlur(5), T.ToTensor(), T.RandomErasing(p=0.5),
])
MODES = ["known", "all"]


def load(root, transform=None, device="cuda", **options):
    if device:
        options.setdefault("jpeg_hardware", "known")
    return load_without_hardware(root, transform, device=device, **options)


def hardware(loader):
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
    """Runs epochs until the hardware, which takes about a second to open, has decoded something."""
    until = time.monotonic() + seconds
    while hardware(loader)["files_decoded_there"] < rows and time.monotonic() < until:
        for _ in loader:
            pass
        if hardware(loader)["jpeg_hardware_note"]:
            pytest.skip(hardware(loader)["jpeg_hardware_note"])
    assert hardware(loader)["files_decoded_there"] >= rows


def assert_exact(root, transform=CROP, least=50, **options):
    """An epoch of which the hardware did a good part is that of the CPU."""
    # One worker: the hardware rests where the CPUs keep up, and here it is to be seen at work.
    loader = load(root, transform, batch_size=128, num_workers=1, **options)
    warm(loader)
    before = hardware(loader)["files_decoded_there"]
    loader.set_epoch(0)
    got = on_cpu(loader)
    done = hardware(loader)["files_decoded_there"] - before
    print(f"{done} files by hardware")
    assert_same(got, reference(root, transform, batch_size=128))
    assert done >= least


@pytest.mark.parametrize("hardware", MODES)
@pytest.mark.parametrize("sampling", ["4:4:4", "4:2:2", "4:2:0", "grey"])
def test_samplings(tmp_path, pictures, sampling, hardware):
    how = {"mode": "L"} if sampling == "grey" else {"subsampling": sampling}
    assert_exact(make_set(tmp_path / "set", pictures, 768, **how), jpeg_hardware=hardware)


def test_fast_is_exact_too(tmp_path, pictures):
    assert_exact(make_set(tmp_path / "set", pictures, 768), fidelity="fast")


@pytest.mark.parametrize("quality", [1, 10, 50, 75, 100])
def test_qualities(tmp_path, pictures, quality):
    assert_exact(make_set(tmp_path / "set", pictures, 512, quality=quality), jpeg_hardware="all")


@pytest.mark.parametrize("transform", [JITTER, training(224), T.Compose([T.Resize(70), T.CenterCrop(64), T.PILToTensor()])],
                         ids=["jitter", "training", "evaluation"])
def test_pipelines(tmp_path, pictures, transform):
    assert_exact(make_set(tmp_path / "set", pictures, 512), transform)


def test_sizes(tmp_path):
    """From one pixel on: every remainder of a block, and sides of up to several thousand."""
    rng = np.random.default_rng(5)
    root = tmp_path / "set"
    root.joinpath("all").mkdir(parents=True)
    sizes = [(w, h) for w in range(1, 20) for h in (1, 2, 3, 7, 8, 9, 16, 17)]
    sizes += [(int(w), int(h)) for w, h in rng.integers(1, 900, (200, 2))] + [(4000, 300), (3000, 2000), (64, 5000)]
    for number, (width, height) in enumerate(sizes):
        noise = rng.integers(0, 256, (height, width, 3), np.uint8)
        smooth = Image.fromarray(noise).resize((max(1, width // 3), max(1, height // 3))).resize((width, height))
        smooth = smooth.convert("L") if number % 7 == 3 else smooth
        smooth.save(root / "all" / f"{number:04d}.jpg", quality=int(rng.integers(1, 101)),
                    subsampling=int(rng.integers(0, 3)))
    plain = T.Compose([T.RandomResizedCrop(64, scale=(0.05, 1.0)), T.PILToTensor()])
    want, done = reference(root, plain, batch_size=128), 0
    for _ in range(4):  # new loaders: with time, JPEG threads decode the smallest files themselves
        loader = load(root, plain, batch_size=128, num_workers=1, jpeg_hardware="all")
        wait_for_hardware(loader)
        assert_same(on_cpu(loader), want)
        if hardware(loader)["jpeg_hardware_note"]:
            pytest.skip(hardware(loader)["jpeg_hardware_note"])
        done += hardware(loader)["files_decoded_there"]
    print(f"{done} of {4 * len(sizes)} files by hardware")
    assert done > len(sizes)


@pytest.mark.parametrize("hardware", MODES)
@pytest.mark.parametrize("how", [
    {"mode": "CMYK"}, {"progressive": True}, {"subsampling": "4:1:1"},
    {"restart_marker_blocks": 3}, {"optimize": True},
], ids=str)
def test_other_files(tmp_path, pictures, how, hardware):
    """Files that the hardware does not support, or would decode wrongly, are decoded by the CPU."""
    root = make_set(tmp_path / "set", pictures[:6], 256, **dict(how))
    loader = load(root, CROP, jpeg_hardware=hardware, batch_size=64)
    wait_for_hardware(loader)
    for epoch in range(2):
        loader.set_epoch(epoch)
        got = on_cpu(loader)
        cpu = load(root, CROP, device=None, batch_size=64)
        cpu.set_epoch(epoch)
        assert_same(got, on_cpu(cpu))


def test_bad_files_are_reported(bad_folder):
    def bad(**options):
        loader = load(bad_folder, on_error="replace", batch_size=8, **options)
        if "jpeg_hardware" in options:
            wait_for_hardware(loader)
        labels = torch.cat([labels.cpu() for _, labels in loader])
        return labels, sorted(entry["sample"] for entry in loader.bad_samples())

    want = bad(device=None)
    for mode in MODES:
        got = bad(jpeg_hardware=mode)
        assert torch.equal(got[0], want[0]) and got[1] == want[1] and len(got[1]) == 2


def damage(root, numbers, seed):
    rng = np.random.default_rng(seed)
    for number in numbers:
        path = root / "all" / f"{number:04d}.jpg"
        data = bytearray(path.read_bytes())
        for at in rng.integers(len(data) // 4, len(data) - 2, 12):
            data[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)


@pytest.mark.parametrize("sampling", ["4:4:4", "4:2:0"])
def test_damaged_data(tmp_path, pictures, sampling):
    """Bits flipped inside files: by default every value is still the CPU's, in every epoch, and also after a change."""
    root = make_set(tmp_path / "set", pictures, 512, subsampling=sampling)
    damage(root, range(0, 512, 16), seed=1)
    options = {"on_error": "replace", "batch_size": 64, "num_workers": 1}
    gpu = load(root, CROP, **options)
    warm(gpu)
    for epoch in range(4):
        if epoch == 2:
            damage(root, range(5, 512, 16), seed=2)  # files that are known by now
        gpu.set_epoch(epoch)
        cpu = load(root, CROP, device=None, **options)
        cpu.set_epoch(epoch)
        assert_same(on_cpu(gpu), on_cpu(cpu))
    assert hardware(gpu)["files_decoded_there"] > 200


def test_first_epoch_is_the_cpus(tmp_path, pictures):
    root = make_set(tmp_path / "set", pictures, 512)
    loader = load(root, CROP, batch_size=64, num_workers=1)
    wait_for_hardware(loader)
    assert_same(on_cpu(loader), reference(root, CROP, batch_size=64))
    assert hardware(loader)["files_decoded_there"] == 0
    loader.set_epoch(0)
    assert_same(on_cpu(loader), reference(root, CROP, batch_size=64))
    assert hardware(loader)["files_decoded_there"] > 0 or hardware(loader)["jpeg_hardware_note"]


def test_knowledge_is_kept(tmp_path, pictures):
    """With index_dir, a second process (here: another dataset) starts with what the first has learnt."""
    root, index = make_set(tmp_path / "set", pictures, 512), tmp_path / "index"
    index.mkdir()
    os.utime(root / "all", (time.time() - 60,) * 2)

    def first_epoch():
        data = stoker.datasets.ImageFolder(root, CROP, index_dir=index)
        loader = stoker.DataLoader(data, batch_size=64, shuffle=True, seed=5, device="cuda", num_workers=1)
        wait_for_hardware(loader)
        got = on_cpu(loader)
        done = hardware(loader)["files_decoded_there"]
        note = hardware(loader)["jpeg_hardware_note"]
        del loader, data
        return got, done, note

    got, done, note = first_epoch()
    if note:
        pytest.skip(note)
    assert done == 0
    again, done, _ = first_epoch()
    assert done > 0 and list(index.glob("*.stoker-known"))
    assert_same(again, got)


def test_off(folder):
    loader = load(folder, jpeg_hardware="off")
    for epoch in range(2):
        loader.set_epoch(epoch)
        for _ in loader:
            pass
    loader.set_epoch(0)
    assert_same(on_cpu(loader), reference(folder))
    assert hardware(loader)["files_decoded_there"] == 0


def test_close_while_the_hardware_opens(folder):
    for wait in (0, 0.05, 0.4):
        loader = load(folder, jpeg_hardware="all")
        next(iter(loader))
        time.sleep(wait)
        del loader


def test_two_loaders(tmp_path, pictures):
    root = make_set(tmp_path / "set", pictures, 512)
    first, second = (load(root, CROP, batch_size=128, num_workers=1) for _ in range(2))
    warm(first)
    warm(second)
    first.set_epoch(0)
    second.set_epoch(0)
    for (a, _), (b, _) in zip(first, second, strict=True):
        assert torch.equal(a, b)


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
