# SPDX-License-Identifier: Apache-2.0
"""Loaders on a GPU: resuming, bad samples, errors, processes, and how long next() takes."""

from __future__ import annotations

import importlib.util
import itertools
import os
import statistics
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import stoker
import torch
from conftest import assert_same, load, on_cpu, reference, training, wait_for_hardware
from stoker import transforms as T

ROOT = Path(__file__).resolve().parents[2]


def python(code, *args, timeout=180, launcher=()):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, *launcher, *([] if launcher else ["-c", textwrap.dedent(code)]), *map(str, args)],
        timeout=timeout, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("before, after", [("cuda", "cuda"), ("cuda", None), (None, "cuda")])
def test_resume_on_either(folder, before, after):
    want = reference(folder, batch_size=8)
    for stop in (0, 1, 5, len(want)):
        first = load(folder, batch_size=8, device=before)
        batches = iter(first)
        for _ in range(stop):
            next(batches)
        second = load(folder, batch_size=8, device=after, num_workers=3)
        second.load_state_dict(first.state_dict())
        got = on_cpu(second)
        assert_same(got, want[stop:] if stop < len(want) else got)


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_bad_samples_are_replaced(bad_folder, where):
    options = {"on_error": "replace", "shuffle": False}
    loader = load(bad_folder, augment_on=where, **options)
    got = on_cpu(loader)
    assert_same(got, reference(bad_folder, **options))
    labels = torch.cat([labels for _, labels in got])
    images = torch.cat([images for images, _ in got])
    assert (labels == -100).sum() == 2 and len(loader.bad_samples()) == 2
    assert (images[labels == -100] == 0).all() and (images[labels >= 0] != 0).any()


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_bad_samples_are_skipped_or_raised(bad_folder, where):
    assert_same(on_cpu(load(bad_folder, on_error="skip", augment_on=where)), reference(bad_folder, on_error="skip"))
    loader = load(bad_folder, batch_size=4, shuffle=False, augment_on=where)
    good = bad = 0
    batches = iter(loader)
    while True:
        try:
            images, _ = next(batches)
            good += images.is_cuda
        except StopIteration:
            break
        except stoker.StokerError:
            bad += 1
    assert (good, bad) == (4, 2)


def test_statistics(folder):
    loader = load(folder)
    batches = len(list(loader))
    report = loader.stats()
    assert report["batches"] == batches
    device = report["device"]
    assert device["name"] == "cuda:0" and device["copied_bytes"] > 0
    assert device["augment_on"] == "cuda"
    assert device["rows_resized_there"] + device["rows_resized_by_workers"] >= 87
    assert report["memory"]["pinned_bytes"] > 0
    assert "device='cuda:0'" in repr(loader)


@pytest.mark.parametrize("target", [{k: 9 - k for k in range(10)}.get, lambda y: {"y": y, "name": str(y)}])
def test_target_transform_does_not_wait_for_the_gpu(folder, target):
    datasets, V1 = (pytest.importorskip(f"torchvision.{name}") for name in ("datasets", "transforms"))
    photos = datasets.ImageFolder(folder, V1.Compose([V1.CenterCrop(24), V1.ToTensor()]), target_transform=target)
    want = [labels for _, labels in stoker.DataLoader(photos, 4)]
    batches = iter(stoker.DataLoader(photos, 4, device="cuda"))
    got = [next(batches)[1]]
    torch.cuda.set_sync_debug_mode("error")
    try:
        got += [labels for _, labels in batches]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for ours, theirs in zip(got, want, strict=True):
        if isinstance(theirs, dict):
            assert list(ours["name"]) == list(theirs["name"])
            ours, theirs = ours["y"], theirs["y"]
        assert ours.is_cuda and ours.tolist() == theirs.tolist()


def test_no_room_on_the_gpu_is_a_sentence(folder):
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    hoard = torch.empty(free - (300 << 20), dtype=torch.uint8, device="cuda")
    try:
        with pytest.raises((stoker.StokerError, MemoryError), match=r"(?i)memory"):
            list(load(folder, training(512), batch_size=256))
    finally:
        del hoard
        torch.cuda.empty_cache()
    assert_same(on_cpu(load(folder)), reference(folder))


def test_absurd_batches_are_a_sentence(folder):
    with pytest.raises((stoker.StokerError, MemoryError, ValueError)) as caught:
        list(load(folder, training(4096), batch_size=2_000_000))
    assert len(str(caught.value)) > 20


def test_absent_gpu_is_a_sentence(folder):
    with pytest.raises((stoker.StokerError, ValueError), match="cuda:99"):
        load(folder, device="cuda:99", output="dlpack")


def test_the_current_gpu_is_torchs(folder):
    loader = load(folder, device="cuda")
    current = f"cuda:{torch.cuda.current_device()}"
    assert str(next(iter(loader))[0].device) == current and f"device={current!r}" in repr(loader)


def test_first_use_before_torch_has_used_the_gpu(folder):
    got = python("""
        import sys
        import stoker, torch
        from stoker import transforms as T
        data = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.RandomResizedCrop(32), T.ToTensor()]))
        loader = stoker.DataLoader(data, 8, device="cuda", output="dlpack")
        batches = [torch.from_dlpack(images) for images, labels in loader]
        total = sum(b.sum().item() for b in batches)
        cpu = sum(i.sum().item() for i, _ in stoker.DataLoader(data, 8, seed=loader._native.seed_now()))
        print(abs(total - cpu) < 1e-3 * abs(cpu) + 1)
    """, folder)
    assert got.returncode == 0 and got.stdout.strip() == "True", got.stderr


def test_nothing_is_touched_without_asking(folder):
    got = python("""
        import sys
        sys.modules["torch"] = None
        import stoker
        from stoker import transforms as T
        data = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.RandomResizedCrop(32), T.ToTensor()]))
        assert len(list(stoker.DataLoader(data, 8, output="numpy")))
        maps = open("/proc/self/maps").read()
        print([name for name in ("libcuda.so", "libnvidia-ml", "libnvjpeg") if name in maps])
        assert len(list(stoker.DataLoader(data, 8, device="cuda", output="dlpack")))
        print("libcuda.so" in open("/proc/self/maps").read())
    """, folder)
    assert got.returncode == 0 and got.stdout.split("\n")[:2] == ["[]", "True"], got.stdout + got.stderr


@pytest.mark.parametrize("ending", ["kept", "half way", "dropped in a thread", "unfinished kernels"])
def test_exit_is_clean(folder, ending):
    got = python("""
        import sys, threading
        import stoker, torch
        from stoker import transforms as T
        data = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.RandomResizedCrop(32), T.ToTensor()]))
        loader = stoker.DataLoader(data, 8, device="cuda")
        batches = iter(loader)
        images, labels = next(batches)
        if sys.argv[2] == "kept":
            sys.kept = images
        elif sys.argv[2] == "dropped in a thread":
            box = [images]
            del images
            thread = threading.Thread(target=box.clear)
            thread.start(), thread.join()
        elif sys.argv[2] == "unfinished kernels":
            torch.cuda._sleep(500_000_000)
            images.sum()
        print("end")
    """, folder, ending)
    assert got.returncode == 0 and got.stdout == "end\n", got.stdout + got.stderr
    assert not got.stderr


def test_fork_is_refused(folder):
    got = python("""
        import os, sys, warnings
        warnings.simplefilter("ignore")
        import stoker, torch
        from stoker import transforms as T
        data = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.RandomResizedCrop(32), T.ToTensor()]))
        loader = stoker.DataLoader(data, 8, device="cuda")
        batches = iter(loader)
        kept = next(batches)
        child = os.fork()
        if child == 0:
            said = 0
            for action in (lambda: next(batches), lambda: next(iter(loader))):
                try:
                    action()
                except (stoker.StokerError, RuntimeError) as error:
                    said += len(str(error)) > 10
            os._exit(0 if said == 2 else 1)
        _, status = os.waitpid(child, 0)
        rest = len(list(batches))
        print(os.waitstatus_to_exitcode(status), rest == len(loader) - 1)
    """, folder)
    assert got.returncode == 0 and got.stdout.split() == ["0", "True"], got.stdout + got.stderr


RANKS = """
import sys, zlib
import torch
import torch.distributed as dist
import stoker
from stoker import transforms as T

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank % torch.cuda.device_count())
data = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.RandomResizedCrop(48), T.ToTensor()]))
options = dict(batch_size=8, shuffle=True, seed=9, rank=rank, world_size=world)
loader = stoker.DataLoader(data, device="cuda", **options)
ours = [(i.cpu(), t.cpu()) for i, t in loader]
want = [(i.clone(), t.clone()) for i, t in stoker.DataLoader(data, **options)]
same = all(torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in zip(ours, want, strict=True))
sums = [None] * world
dist.all_gather_object(sums, (same, zlib.crc32(b"".join(t.numpy().tobytes() for _, t in ours)), len(ours)))
if rank == 0:
    print(all(s[0] for s in sums), len({s[2] for s in sums}) == 1)
dist.destroy_process_group()
"""


def test_two_processes_under_torchrun(folder, tmp_path):
    (tmp_path / "ranks.py").write_text(RANKS)
    got = python("", "--nproc-per-node", 2, "--standalone", tmp_path / "ranks.py", folder,
                 launcher=("-m", "torch.distributed.run"))
    assert got.returncode == 0 and "True True" in got.stdout, got.stdout + got.stderr


@pytest.mark.parametrize("hardware", ["off", "all"])
def test_memory_stays_flat(folder, hardware):
    loader = load(folder, batch_size=8, jpeg_hardware=hardware)
    if hardware != "off":
        wait_for_hardware(loader)
    free, warm = [], 6  # epochs until every slot has been used, by the CPUs at least
    for epoch in range(100):
        for images, labels in loader:
            del images, labels
        torch.cuda.synchronize()
        free.append(torch.cuda.mem_get_info()[0])
    fell = [before - after for before, after in itertools.pairwise(free[warm:]) if after < before]
    # The hardware gets memory of a slot when it first meets it, for at most twice the slots in use, and nvJPEG has some allocated
    # for images of a new size. Both come late where the CPUs are quick, but not again and again.
    assert len(fell) <= (1 if hardware == "off" else 20), fell
    del loader
    for _ in range(4):
        list(load(folder, batch_size=8, jpeg_hardware=hardware))
    torch.cuda.synchronize()
    assert torch.cuda.mem_get_info()[0] >= free[warm] - (64 << 20)


@pytest.mark.parametrize("size", [32, 224])
def test_next_is_quick_when_a_batch_is_ready(folder, size, capsys):
    """From next() to tensors that may be used, the batch being ready."""
    transform = T.Compose([T.RandomResizedCrop(size), T.ToTensor()])
    loader = load(folder, transform, batch_size=4, prefetch_factor=8, dtype="bfloat16", memory_format="channels_last")
    taken, work = [], torch.zeros(1024, device="cuda")
    for _ in range(8):
        batches = iter(loader)
        next(batches)
        time.sleep(0.3)
        for _ in range(6):
            begin = time.perf_counter()
            images, labels = next(batches)
            taken.append(1e6 * (time.perf_counter() - begin))
            del images, labels
            until = time.perf_counter() + 0.02
            while time.perf_counter() < until:  # what a thread that trains does; one that sleeps wakes up slowly
                work.add_(1)
        del batches
    middle, most = statistics.median(taken), sorted(taken)[len(taken) * 9 // 10]
    with capsys.disabled():
        print(f"\n[next(), {size} x {size}: median {middle:.0f} us, nine in ten below {most:.0f} us; wanted: 50]")
    assert middle < 200


def example(name, *args):
    return python("", ROOT / "examples" / name / "train.py", *args, launcher=("-u",))


def test_the_training_example(folder, tmp_path):
    arguments = [folder, "--model", "resnet18", "--size", 64, "--batch-size", 16, "--epochs", 1]
    checkpoint = tmp_path / "checkpoint.pt"
    got = example("imagenet", *arguments, "--checkpoint", checkpoint, "--stop-after", 3)
    assert got.returncode == 0 and "on cuda:0" in got.stdout, got.stdout + got.stderr
    got = example("imagenet", *arguments, "--checkpoint", checkpoint)
    assert got.returncode == 0 and "resuming at step 3" in got.stdout, got.stdout + got.stderr
    got = python("", "--nproc-per-node", 2, "--standalone", ROOT / "examples" / "imagenet" / "train.py", *arguments,
                 "--backend", "gloo", launcher=("-m", "torch.distributed.run"))
    assert got.returncode == 0 and "2 processes" in got.stdout, got.stdout + got.stderr


def test_the_jax_example(folder):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    got = example("jax", folder, "--device", "cuda")
    if "no GPU" in got.stdout:
        pytest.skip("this jax has no GPU")
    assert got.returncode == 0 and "loss" in got.stdout, got.stdout + got.stderr


def test_the_lightning_example(folder):
    if importlib.util.find_spec("lightning") is None:
        pytest.skip("lightning is not installed")
    got = example("lightning", folder)
    assert got.returncode == 0 and "loss" in got.stdout, got.stdout + got.stderr
