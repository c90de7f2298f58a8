# SPDX-License-Identifier: Apache-2.0
"""pin_memory=True with device_batches: an unchanged script gets the bytes that it gets without, and its GPU copies."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import stoker
import torch
from conftest import SEED, assert_same, on_cpu, training
from stoker._engine.batch_tensor import BatchTensor

CYCLES = 20_000_000  # about 10 ms of a GPU that does nothing
LAST = torch.channels_last


def load(root, **options):
    options = {"batch_size": 4, "shuffle": True, "seed": SEED, "pin_memory": True, "device_batches": True, **options}
    options.setdefault("jpeg_hardware", "off")
    return stoker.DataLoader(stoker.datasets.ImageFolder(root, training()), **options)


def expected(root, epochs=1, **options):
    loader = load(root, **{**options, "device_batches": False})
    return [on_cpu(loader) for _ in range(epochs)]


def place(loader):
    return loader._native.device_batches.place


def moved(root, layout=torch.preserve_format, **options):
    """A loader whose batches are made on the GPU: its first epoch is over."""
    loader = load(root, **options)
    for images, _ in loader:
        images.cuda(non_blocking=True, memory_format=layout)
    assert place(loader) == "cuda:0", loader.explain()
    return loader


@pytest.fixture(scope="module")
def want(folder):
    """Two epochs."""
    return expected(folder, 2)


@pytest.mark.parametrize("hardware", ["off", "known", "all"])
@pytest.mark.parametrize("options", [{}, {"memory_format": "channels_last"}, {"dtype": "float16"}])
def test_the_bytes_are_those_of_pinned_batches(folder, options, hardware):
    loader = load(folder, jpeg_hardware=hardware, **options)
    for epoch in expected(folder, 3, **options):
        got = [(images.cuda(non_blocking=True), labels.cuda(non_blocking=True)) for images, labels in loader]
        strides = [(a.stride(), b.stride()) for (a, _), (b, _) in zip(got, epoch, strict=True)]
        assert_same(on_cpu(got), epoch) or all(a == b for a, b in strides)
    assert place(loader) == "cuda:0" and loader.stats()["device"]["name"] == "cuda:0"
    assert loader.stats()["device"]["copied_bytes"] > 0


@pytest.mark.parametrize("ask", [
    lambda x: x.to("cuda"), lambda x: x.to("cuda:0", non_blocking=True), lambda x: x.cuda(0),
    lambda x: x.to("cuda", torch.bfloat16), lambda x: x.to("cuda", torch.float64), lambda x: x.to("cuda", torch.uint8),
    lambda x: x.to("cuda", memory_format=LAST), lambda x: x.cuda(memory_format=LAST), lambda x: x.cuda().to(memory_format=LAST),
    lambda x: x.to("cuda", torch.float16, non_blocking=True, memory_format=LAST), lambda x: x.to(torch.ones((), device="cuda")),
])  # fmt: skip
@pytest.mark.parametrize("learned", [torch.preserve_format, LAST])
def test_every_way_to_send_gives_what_it_gives_today(folder, want, ask, learned):
    loader = moved(folder, learned)
    assert loader._native.device_batches.is_channels_last == (learned is LAST)
    for (images, labels), (a, b) in zip(loader, want[1], strict=True):
        got, today = ask(images), ask(a)
        assert type(got) is torch.Tensor and got.device == today.device and got.dtype == today.dtype
        assert got.stride() == today.stride() and torch.equal(labels, b)
        if got.dtype != torch.uint8:  # torch does not say what becomes of numbers that are out of range
            assert torch.equal(got, today)
    del images, got


def test_it_is_pinned_and_ordinary_once_it_is_read(folder, want):
    loader = moved(folder)
    for number, ((images, labels), (a, b)) in enumerate(zip(loader, want[1], strict=True)):
        assert images.is_pinned() and labels.is_pinned() and not images.is_cuda and type(labels) is torch.Tensor
        if number % 12:
            assert torch.equal(images.cuda().cpu(), a)
            continue
        assert type(images) is BatchTensor
        assert torch.equal(images, a) and type(images) is torch.Tensor and images.is_pinned()
        assert torch.equal(labels, b)
        assert images.add_(1) is images and torch.equal(images.cuda().cpu(), a + 1)
    assert place(loader) == "cuda:0"


def test_a_copy_is_the_scripts_own(folder, want):
    loader = moved(folder)
    for (images, _), (a, _) in zip(loader, want[1], strict=True):
        first = images.cuda()
        first.data.zero_()
        second = images.cuda()
        assert torch.equal(second.cpu(), a)
        first.resize_(1)


def test_read_from_another_layout(folder, want):
    for number, ((images, _), (a, _)) in enumerate(zip(moved(folder, LAST), want[1], strict=True)):
        assert images.stride() == a.stride()
        if number % 10 == 0:
            assert torch.equal(images, a) and type(images) is torch.Tensor and images.stride() == a.stride()


@pytest.mark.parametrize("stream", [False, True])
def test_late_kernels_read_what_was_sent(folder, stream):
    """Copies of a prefetching script: made in a side stream, used in another, let go early."""
    loader = moved(folder, prefetch_factor=1)
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    kept, epochs = [], expected(folder, 6)[1:]
    for _ in epochs:
        for images, labels in loader:
            with torch.cuda.stream(side if stream else None):
                torch.cuda._sleep(CYCLES)
                there, numbers = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
                del images
            main.wait_stream(side)
            there.record_stream(main)
            numbers.record_stream(main)
            torch.cuda._sleep(CYCLES // 4)
            kept.append((there.clone(), numbers.clone()))
            with torch.cuda.stream(side):
                del there, numbers
    torch.cuda.synchronize()
    assert_same(on_cpu(kept), [batch for epoch in epochs for batch in epoch])


def test_whoever_keeps_batches_has_them(folder, want):
    loader = moved(folder)
    kept = list(loader)
    assert place(loader) is None and "keeps" in str(loader._native.device_batches.why_not)
    del loader
    gc.collect()
    assert_same(on_cpu(kept), want[1])


def test_a_batch_outlives_its_loader(folder, want):
    loader = moved(folder)
    (images, labels), (other, _) = [batch for _, batch in zip(range(2), loader)]
    del loader
    gc.collect()
    assert torch.equal(images.cuda().cpu(), want[1][0][0]) and torch.equal(labels, want[1][0][1])
    assert torch.equal(copy.deepcopy(other), want[1][1][0])
    assert torch.equal(pickle.loads(pickle.dumps(images)), want[1][0][0])


def test_read_during_a_capture(folder, want):
    """The copy that is captured reads the batch that the script still has."""
    loader = moved(folder)
    images = next(iter(loader))[0]
    graph, static = torch.cuda.CUDAGraph(), torch.empty_like(want[1][0][0], device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        static.copy_(images.cuda(non_blocking=True))
    static.zero_()
    graph.replay()
    assert torch.equal(static.cpu(), want[1][0][0]) and torch.equal(images, want[1][0][0])


def test_saved_on_the_gpu_and_resumed_anywhere(folder, want):
    loader = moved(folder)
    batches, got = iter(loader), []
    for _ in range(5):
        images, labels = next(batches)
        got.append((images.cuda().cpu(), labels.clone()))
    state = loader.state_dict()
    for options in ({}, {"device_batches": False}):
        other = load(folder, **options)
        other.load_state_dict(state)
        assert_same(got + on_cpu(other), want[1])


def test_labels_of_substitutes(bad_folder):
    """Labels are looked up: those of samples that took the place of bad ones, too."""
    loader = load(bad_folder, batch_size=2, on_error="skip")
    for epoch in expected(bad_folder, 3, batch_size=2, on_error="skip"):
        assert_same(on_cpu((images.cuda(), labels) for images, labels in loader), epoch)
    assert place(loader) == "cuda:0" and len(loader.bad_samples()) == 6


def test_no_memory_on_the_gpu(folder, want):
    loader = load(folder)
    free, _ = torch.cuda.mem_get_info()
    hog = torch.empty(max(free - (2 << 30), 1), dtype=torch.uint8, device="cuda")
    got = [(images.cuda(), labels.clone()) for images, labels in loader]
    assert place(loader) is None and "MiB free" in loader._native.device_batches.why_not
    del hog
    torch.cuda.empty_cache()
    assert_same(on_cpu(got), want[0])


def test_trained_the_weights_are_the_same(folder):
    def trained(on):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, 4), torch.nn.Flatten(), torch.nn.LazyLinear(6)).cuda()
        loader = load(folder, drop_last=True, device_batches=on)
        model(torch.zeros(1, 3, 96, 96, device="cuda"))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            for images, labels in loader:
                with torch.autocast("cuda", torch.bfloat16):
                    scores = model(images.cuda(non_blocking=True).to(memory_format=LAST))
                    loss = torch.nn.functional.cross_entropy(scores, labels.cuda(non_blocking=True))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        assert place(loader) == ("cuda:0" if on else None)
        return [weight.detach().clone() for weight in model.parameters()]

    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        for a, b in zip(trained(True), trained(False), strict=True):
            assert torch.equal(a, b)
    finally:
        torch.use_deterministic_algorithms(False)


def test_read_in_compiled_code(folder, want):
    step = torch.compile(lambda x: x.cuda(non_blocking=True) * 2, backend="eager")
    loader = moved(folder)
    got = [(step(images), labels) for images, labels in loader]
    assert_same(on_cpu(got), [(a * 2, b) for a, b in want[1]])
    images = next(iter(moved(folder)))[0]
    doubled = torch.vmap(lambda x: x * 2)(images)
    assert torch.equal(doubled, want[1][0][0] * 2)


class Counted(torch.utils._python_dispatch.TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def test_read_in_a_mode_of_the_script(folder, want):
    """The script's mode sees its own calls, and not how the bytes are fetched."""
    images = next(iter(moved(folder)))[0]
    with Counted() as mode:
        doubled = images.mul(2)
    assert mode.count == 1 and torch.equal(doubled, want[1][0][0] * 2)


def test_it_is_the_default(folder, monkeypatch):
    monkeypatch.delenv("STOKER_DEVICE_BATCHES", raising=False)
    loader = load(folder, device_batches=None)
    for epoch in expected(folder, 2):
        assert_same(on_cpu((images.cuda(), labels) for images, labels in loader), epoch)
    assert place(loader) == "cuda:0"


def test_read_and_sent_in_other_threads(folder, want):
    loader = moved(folder)
    with ThreadPoolExecutor(4) as pool:
        for number, ((images, _), (a, _)) in enumerate(zip(loader, want[1], strict=True)):
            reads = number % 11 == 10
            ask = (lambda x=images: x.clone()) if reads else (lambda x=images: x.cuda(non_blocking=True).cpu())
            for got in [pool.submit(ask) for _ in range(4)]:
                assert torch.equal(got.result(), a)
            del images, ask


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_the_bytes(folder, want):
    images, _ = next(iter(moved(folder)))
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(images, want[1][0][0]) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert torch.equal(images.cuda().cpu(), want[1][0][0])


def test_with_another_default_device(folder, want):
    torch.set_default_device("cuda")
    try:
        loader = moved(folder)
        for number, ((images, labels), (a, b)) in enumerate(zip(loader, want[1], strict=True)):
            assert images.device.type == labels.device.type == "cpu" and images.is_pinned() and labels.is_pinned()
            assert torch.equal(images.mul(2), a * 2) if number == 3 else torch.equal(images.cuda().cpu(), a)
            assert torch.equal(labels, b)
    finally:
        torch.set_default_device(None)


def test_under_ddp_the_weights_are_the_same(folder):
    def trained(on):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, 4), torch.nn.Flatten(), torch.nn.Linear(8 * 23 * 23, 6)).cuda()
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
        optimizer, loader = torch.optim.SGD(model.parameters(), lr=0.01), load(folder, drop_last=True, device_batches=on)
        for _ in range(2):
            for images, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(images), labels.cuda()).backward()  # DDP sends the images
                optimizer.step()
        assert place(loader) == ("cuda:0" if on else None)
        return [weight.detach().clone() for weight in model.parameters()]

    torch.use_deterministic_algorithms(True, warn_only=True)
    for backend in ("nccl", "gloo"):
        if not getattr(torch.distributed, f"is_{backend}_available")():
            continue
        torch.distributed.init_process_group(backend, store=torch.distributed.HashStore(), rank=0, world_size=1)
        try:
            for a, b in zip(trained(True), trained(False), strict=True):
                assert torch.equal(a, b)
        finally:
            torch.distributed.destroy_process_group()
    torch.use_deterministic_algorithms(False)


def test_lightning_sends_it(folder, want):
    lightning = pytest.importorskip("lightning")
    loader, seen = moved(folder), []

    class Watched(lightning.LightningModule):
        def training_step(self, batch, number):
            seen.append((batch[0].cpu(), batch[1].cpu()))

        def configure_optimizers(self):
            return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)

    trainer = lightning.Trainer(
        max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_progress_bar=False, enable_checkpointing=False,
        enable_model_summary=False,
    )  # fmt: skip
    module = Watched()
    module.automatic_optimization = False
    trainer.fit(module, loader)
    assert_same(seen, want[1])
    assert place(loader) == "cuda:0"


def test_accelerate_sends_it(folder, want):
    accelerate = pytest.importorskip("accelerate")
    loader = accelerate.Accelerator().prepare(moved(folder))
    assert_same(on_cpu(loader), want[1])


# ---- datasets in Python: pinned batches that are copied early ----


class Noise(torch.utils.data.Dataset):
    """Its own code, and samples of a megabyte."""

    def __len__(self):
        return 60

    def __getitem__(self, index):
        return torch.rand(3, 300, 300, generator=torch.Generator().manual_seed(index)), index


def noise(workers, **options):
    options = {"batch_size": 4, "num_workers": workers, "pin_memory": True, "device_batches": True, **options}
    return stoker.DataLoader(Noise(), **options)


def decided(loader):
    return loader._epochs.device_batches


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_python_are_copied_early(workers):
    loader = noise(workers)
    want = [(images.clone(), labels.clone()) for images, labels in noise(0, pin_memory=False)]
    side = torch.cuda.Stream()
    for epoch in range(4):
        kept = []
        for number, (images, labels) in enumerate(loader):
            assert type(images) is BatchTensor and type(labels) is torch.Tensor and images.is_pinned()
            with torch.cuda.stream(side if epoch == 3 else None):
                torch.cuda._sleep(CYCLES // 8)
                there = images.cuda(non_blocking=True)
                again = images.cuda(non_blocking=True) if epoch == 2 and number == 7 else there
                del images
                kept.append((there.clone(), labels))
                assert torch.equal(again, there)
                there.zero_()
        torch.cuda.synchronize()
        assert_same(on_cpu(kept), want)
        assert decided(loader).place == "cuda:0"
    assert loader.explain().rows[-1].where.endswith("cuda:0")
    got = [(images.mul_(2), labels) for images, labels in loader]
    assert_same(got, [(a * 2, b) for a, b in want])
    assert decided(loader).place is None and "reads" in decided(loader).why_not


def test_early_copies_that_nobody_asks_for_leave_their_slots_alone():
    """A batch that is dropped unsent, and one that is sent and read, while the copying stream is late."""
    loader, want = noise(2, prefetch_factor=1), [images for images, _ in noise(0, pin_memory=False)]
    for images, _ in loader:
        images.cuda()
    for _ in range(4):
        kept = []
        for number, (images, _) in enumerate(loader):
            if number % 3 == 0:
                continue
            kept.append((number, images.cuda(non_blocking=True)))
        for number, there in kept:
            assert torch.equal(there.cpu(), want[number])
    assert decided(loader).place == "cuda:0"
