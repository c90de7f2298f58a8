# SPDX-License-Identifier: Apache-2.0
"""Nothing is read before it is there, and nothing overwritten before it has been read, however late the
consumer's kernels run."""

from __future__ import annotations

import gc
import threading

import pytest
import stoker
import torch
from conftest import assert_same, load, on_cpu, reference, wait_for_hardware
from stoker import _ext

CYCLES = 20_000_000  # about 10 ms of a GPU that does nothing
ROUNDS = 5  # epochs: many more batches than slots


def delayed_copies(loader, epochs=ROUNDS, stream=None):
    """Takes batches as fast as they come, and copies each by a kernel that runs long after it was let go."""
    kept = []
    with torch.cuda.stream(stream):
        for epoch in range(epochs):
            loader.set_epoch(epoch)
            for images, labels in loader:
                torch.cuda._sleep(CYCLES)
                kept.append((images.clone(), labels.clone()))
                del images, labels
    torch.cuda.synchronize()
    return on_cpu(kept)


def reference_epochs(folder, epochs=ROUNDS, **options):
    loader = load(folder, **{**options, "device": None})
    out = []
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        out += on_cpu(loader)
    return out


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_delayed_kernels_on_the_default_stream(folder, where):
    got = delayed_copies(load(folder, batch_size=8, prefetch_factor=1, augment_on=where))
    assert_same(got, reference_epochs(folder, batch_size=8))


def test_delayed_kernels_after_the_jpeg_hardware(folder):
    """The hardware writes to a slot's memory without regard to streams."""
    loader = load(folder, batch_size=8, prefetch_factor=1, num_workers=1, jpeg_hardware="all")
    wait_for_hardware(loader)
    assert_same(delayed_copies(loader), reference_epochs(folder, batch_size=8))
    device = loader.stats()["device"]
    assert device["files_decoded_there"] or device["jpeg_hardware_note"]


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_delayed_kernels_on_a_stream_of_its_own(folder, where):
    loader = load(folder, batch_size=8, prefetch_factor=1, augment_on=where)
    got = delayed_copies(loader, stream=torch.cuda.Stream())
    assert_same(got, reference_epochs(folder, batch_size=8))


def test_the_stress_would_notice(folder):
    """The same without telling the loader of the stream: batches are overwritten under the copies."""
    data = stoker.datasets.ImageFolder(folder)
    text = "random_resized_crop(size=96); to_tensor"
    loader = _ext.Loader(data._engine(), _ext.Pipeline(text), batch_size=8, prefetch=1, device="cuda:0")
    plain = _ext.Loader(data._engine(), _ext.Pipeline(text), batch_size=8)
    stream = torch.cuda.Stream()
    got, want = [], []
    for epoch in range(ROUNDS):
        plain.start(epoch)
        while (batch := plain.next()) is not None:
            want.append(torch.from_dlpack(batch.images).clone())
        loader.start(epoch)
        while (batch := loader.next()) is not None:
            batch.sync()
            with torch.cuda.stream(stream):
                images = torch.from_dlpack(batch.images.__dlpack__(stream=-1))
                torch.cuda._sleep(CYCLES)
                got.append(images.clone())
            del images, batch
    torch.cuda.synchronize()
    assert any(not torch.equal(a.cpu(), b) for a, b in zip(got, want, strict=True))


def test_taken_in_one_stream_and_let_go_in_another(folder):
    """The stream that is current where the last tensor goes counts too."""
    loader = load(folder, batch_size=8, prefetch_factor=1)
    side = torch.cuda.Stream()
    kept = []
    for epoch in range(ROUNDS):
        loader.set_epoch(epoch)
        for images, labels in loader:
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(CYCLES)
                kept.append((images.clone(), labels.clone()))
                del images, labels
    torch.cuda.synchronize()
    assert_same(on_cpu(kept), reference_epochs(folder, batch_size=8))


def test_a_third_stream_that_the_first_waits_for(folder):
    """What the documentation asks of a consumer with several streams."""
    loader = load(folder, batch_size=8, prefetch_factor=1)
    first, third = torch.cuda.current_stream(), torch.cuda.Stream()
    kept = []
    for images, labels in loader:
        third.wait_stream(first)
        with torch.cuda.stream(third):
            torch.cuda._sleep(CYCLES)
            kept.append((images.clone(), labels.clone()))
        first.wait_stream(third)
        del images, labels
    torch.cuda.synchronize()
    assert_same(on_cpu(kept), reference(folder, batch_size=8))


def test_several_streams_each_join(folder):
    """One batch read from many streams, each of which asked by DLPack."""
    loader = load(folder, batch_size=8, prefetch_factor=1, output="dlpack")
    streams = [torch.cuda.Stream() for _ in range(5)]
    kept = []
    for images, labels in loader:
        copies = []
        for stream in streams:
            with torch.cuda.stream(stream):
                taken = torch.from_dlpack(images)
                torch.cuda._sleep(CYCLES // 4)
                copies.append((taken.clone(), torch.from_dlpack(labels).clone()))
                del taken
        del images, labels
        kept.append(copies)
    torch.cuda.synchronize()
    want = reference(folder, batch_size=8)
    for number in range(len(streams)):
        assert_same(on_cpu(copies[number] for copies in kept), want)


def test_writing_into_a_batch_harms_no_other(folder):
    loader = load(folder, batch_size=8, prefetch_factor=1)
    kept = []
    for images, labels in loader:
        kept.append((images.clone(), labels.clone()))
        torch.cuda._sleep(CYCLES)
        images.fill_(7)
        labels.fill_(7)
        del images, labels
    torch.cuda.synchronize()
    assert_same(on_cpu(kept), reference(folder, batch_size=8))


def test_kept_batches_stay_as_they_are(folder):
    loader = load(folder, batch_size=8)
    kept = list(loader)
    loader.set_epoch(0)
    more = list(loader)
    assert_same(on_cpu(kept), reference(folder, batch_size=8))
    assert_same(on_cpu(more), on_cpu(kept))
    assert loader.stats()["memory"]["batches_lent"] >= 2 * len(kept)
    del kept, more
    gc.collect()
    assert loader.stats()["memory"]["batches_lent"] == 0


# ---- pinned memory ----


def test_pinned_batches_are_pinned_and_the_same(folder):
    loader = load(folder, device=None, pin_memory=True)
    for images, labels in loader:
        assert images.is_pinned() and labels.is_pinned() and images.device.type == "cpu"
    assert loader.stats()["memory"]["pinned_bytes"] > 0
    assert_same(on_cpu(load(folder, device=None, pin_memory=True)), reference(folder))


@pytest.mark.parametrize("own_stream", [False, True])
def test_pinned_batches_outlive_delayed_copies(folder, own_stream):
    loader = load(folder, device=None, pin_memory=True, batch_size=8, prefetch_factor=1)
    kept = []
    with torch.cuda.stream(torch.cuda.Stream() if own_stream else None):
        for epoch in range(ROUNDS):
            loader.set_epoch(epoch)
            for images, labels in loader:
                torch.cuda._sleep(CYCLES)
                kept.append((images.to("cuda", non_blocking=True), labels.to("cuda", non_blocking=True)))
                del images, labels
    torch.cuda.synchronize()
    assert_same(on_cpu(kept), reference_epochs(folder, batch_size=8))


def test_pinned_tensors_that_go_in_two_streams_while_a_third_stays(folder):
    """Images are copied in one side stream and labels in another, both late. A third tensor of the batch stays until the
    next one, and goes in the main stream, which waits for neither."""
    torch.cuda.init()  # before that, torch calls no memory pinned
    loader = load(folder, device=None, pin_memory=True, batch_size=8, prefetch_factor=1, output="dlpack")
    sides, kept, third = [torch.cuda.Stream(), torch.cuda.Stream()], [], None
    for epoch in range(ROUNDS):
        loader.set_epoch(epoch)
        for images, labels in loader:
            batch, copies = [torch.from_dlpack(images), torch.from_dlpack(labels)], []
            assert all(tensor.is_pinned() for tensor in batch)
            third = torch.from_dlpack(labels)  # the one before goes here
            del images, labels
            for side in sides:
                with torch.cuda.stream(side):
                    torch.cuda._sleep(CYCLES)
                    copies.append(batch[0].to("cuda", non_blocking=True))
                    del batch[0]
            kept.append(copies)
    del third
    torch.cuda.synchronize()
    assert_same(on_cpu(kept), reference_epochs(folder, batch_size=8))


def test_labels_that_stay_longer_than_the_images(folder):
    """The images are copied in a side stream; the labels go later, in the main stream."""
    loader = load(folder, device=None, pin_memory=True, batch_size=8, prefetch_factor=1)
    side, kept = torch.cuda.Stream(), []
    for epoch in range(ROUNDS):
        loader.set_epoch(epoch)
        for images, labels in loader:
            with torch.cuda.stream(side):
                torch.cuda._sleep(CYCLES)
                there = images.to("cuda", non_blocking=True)
                del images
            kept.append((there, labels.clone()))
            del labels
    torch.cuda.synchronize()
    assert_same(on_cpu(kept), reference_epochs(folder, batch_size=8))


def test_on_the_device_images_go_in_a_side_stream_and_labels_later(folder):
    loader = load(folder, batch_size=8, prefetch_factor=1)
    side, kept = torch.cuda.Stream(), []
    for epoch in range(ROUNDS):
        loader.set_epoch(epoch)
        for images, labels in loader:
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(CYCLES)
                there = images.clone()
                del images
            kept.append((there, labels.clone()))
            del labels
    torch.cuda.synchronize()
    assert_same(on_cpu(kept), reference_epochs(folder, batch_size=8))


def test_pinned_copies_do_not_wait(folder):
    """A copy from pinned memory returns while the stream is still busy. On a busy machine, not the first time."""
    images, _ = next(iter(load(folder, device=None, pin_memory=True)))
    busy = False
    for _ in range(20):
        torch.cuda.synchronize()
        torch.cuda._sleep(40 * CYCLES)
        copy = images.to("cuda", non_blocking=True)
        busy = busy or not torch.cuda.current_stream().query()
        torch.cuda.synchronize()
        assert torch.equal(copy.cpu(), images)
        if busy:
            break
    assert busy


def test_beyond_the_limit_memory_is_pageable_with_one_warning(folder):
    loader = load(folder, device=None, pin_memory=True, pinned_limit=1)
    with pytest.warns(UserWarning, match="pageable") as caught:
        first, second = on_cpu(loader), on_cpu(loader)
    assert len([w for w in caught if "pageable" in str(w.message)]) == 1
    assert_same(first, reference(folder))
    assert len(second) == len(first)
    on_gpu = load(folder, pinned_limit=1)
    with pytest.warns(UserWarning, match="pageable"):
        assert_same(on_cpu(on_gpu), reference(folder))


def test_pinning_beside_a_device_changes_nothing(folder):
    assert_same(on_cpu(load(folder, pin_memory=True)), reference(folder))


# ---- beside others ----


def test_beside_a_busy_allocator(folder):
    """torch allocates, frees and computes in the same context all the while."""
    stop = threading.Event()
    failure = []

    def churn():
        try:
            stream = torch.cuda.Stream()
            generator = torch.Generator().manual_seed(0)
            with torch.cuda.stream(stream):
                while not stop.is_set():
                    sizes = torch.randint(64, 1500, (6,), generator=generator).tolist()
                    parts = [torch.ones(n, n, device="cuda") for n in sizes]
                    total = sum((p @ p).double().sum() for p in parts).item()
                    assert abs(total - sum(n**3 for n in sizes)) < 1
                    del parts
                    torch.cuda.empty_cache()
        except (AssertionError, RuntimeError) as error:
            failure.append(error)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for where in ("cpu", "cuda"):
            got = delayed_copies(load(folder, batch_size=8, augment_on=where), epochs=2)
            assert_same(got, reference_epochs(folder, epochs=2, batch_size=8))
        pinned = load(folder, device=None, pin_memory=True, batch_size=8)
        assert_same(on_cpu((i.cuda(non_blocking=True), t) for i, t in pinned), reference(folder, batch_size=8))
    finally:
        stop.set()
        thread.join()
    assert not failure


def test_two_loaders_at_once(folder):
    one, other = load(folder, batch_size=8), load(folder, batch_size=8, seed=77)
    pairs = [(a, b) for a, b in zip(one, other, strict=True)]
    assert_same(on_cpu(a for a, _ in pairs), reference(folder, batch_size=8))
    assert_same(on_cpu(b for _, b in pairs), reference(folder, batch_size=8, seed=77))


def test_threads_with_loaders_and_streams_of_their_own(folder):
    results = {}

    def work(seed):
        loader = load(folder, batch_size=8, seed=seed, prefetch_factor=1)
        results[seed] = delayed_copies(loader, epochs=2, stream=torch.cuda.Stream())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        assert_same(results[seed], reference_epochs(folder, epochs=2, batch_size=8, seed=seed))


def test_let_go_by_autograd(folder):
    """Tensors saved for backward die in its thread."""
    weight = torch.ones(3, 96, 96, device="cuda", requires_grad=True)
    loader = load(folder, batch_size=8, prefetch_factor=1)
    sums = []
    for images, _ in loader:
        loss = (images * weight).square().sum()
        del images
        loss.backward()
        sums.append(loss.detach())
        del loss
    want = [images.double().square().sum() for images, _ in reference(folder, batch_size=8)]
    for a, b in zip(sums, want, strict=True):
        assert abs(a.item() - b.item()) < 1e-4 * abs(b.item())


# ---- DLPack ----


def test_dlpack_streams(folder):
    images, labels = next(iter(load(folder, output="dlpack")))
    assert images.__dlpack_device__() == labels.__dlpack_device__() == (2, 0)
    assert "on cuda:0" in repr(images)
    for stream in (None, 1, 2, -1, torch.cuda.Stream().cuda_stream):
        assert images.__dlpack__(stream=stream) is not None
        assert labels.__dlpack__(stream=stream, max_version=(1, 0), dl_device=(2, 0), copy=False) is not None
    for wrong in (0, -2):
        with pytest.raises(ValueError, match="not a CUDA stream"):
            images.__dlpack__(stream=wrong)
    with pytest.raises(TypeError):
        images.__dlpack__(stream="1")
    for options in ({"dl_device": (1, 0)}, {"dl_device": (2, 9)}, {"copy": True}):
        with pytest.raises(BufferError, match="CUDA memory"):
            images.__dlpack__(**options)
    with pytest.raises(BufferError, match="GPU's memory"):
        memoryview(images)


def test_tensors_outlive_the_loader(folder):
    loader = load(folder, batch_size=8)
    batches = iter(loader)
    images, labels = next(batches)
    part = images[2:5]
    del images, batches, loader
    gc.collect()
    for _ in range(2):
        list(load(folder, batch_size=8))
    want = reference(folder, batch_size=8)[0]
    assert torch.equal(part.cpu(), want[0][2:5]) and torch.equal(labels.cpu(), want[1])
