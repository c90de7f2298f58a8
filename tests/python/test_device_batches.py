# SPDX-License-Identifier: Apache-2.0
"""Loaders whose batches move to the GPU that the script sends them to, and back. The GPU is played by memory; with a
real one: tests/gpu/test_device_batches.py."""

from __future__ import annotations

import os

import pytest
import stoker
import torch
from stoker import _ext
from stoker import transforms as T
from stoker._engine import batch_sources, device_batches, gpu_queues, native
from stoker._engine.batch_tensor import BatchTensor
from stoker._engine.device_batches import DeviceBatches
from stoker._loader.frameworks import options_beyond_torch
from stoker._workers import early_copies

BATCH = 2
OPTIONS = {"seed": 3, "shuffle": True, "pin_memory": True, "device_batches": True}
pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator")


def data(tree):
    return stoker.datasets.ImageFolder(
        tree, T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ToTensor()])
    )


def layout_of(self, device):
    return {**self._options, **({"layout": "nhwc"} if self.device_batches.is_channels_last else {})}


@pytest.fixture()
def gpu(monkeypatch):
    """Loaders with device_batches=True take memory for cuda:0's. Returns what torch says of its free memory."""
    room = [10 << 30, 16 << 30]
    monkeypatch.setattr(
        device_batches, "why_no_device_batches", lambda loader, pinned, **_: device_batches.refused(loader.device_batches)
    )
    monkeypatch.setattr(native.Native, "_options_on", layout_of)
    monkeypatch.setattr(batch_sources, "_stream", lambda device: None)
    monkeypatch.setattr(batch_sources, "_empty", lambda *args: torch.empty_strided(*args[:2], dtype=args[2]))
    monkeypatch.setattr(
        batch_sources.InMemory, "copied", lambda self, device, dtype, _, layout: self._tensor.to(dtype, copy=True, memory_format=layout)
    )
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: tuple(room))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    return room


def load(tree, **options):
    return stoker.DataLoader(data(tree), BATCH, **{**OPTIONS, **options})


def reference(tree, epochs=1, **options):
    loader = load(tree, **{**options, "device_batches": False})
    return [[(images.clone(), labels.clone()) for images, labels in loader] for _ in range(epochs)]


def there(images, device=0):
    """What the script sends. An ordinary tensor stays: there is no GPU."""
    return images.cuda(device, non_blocking=True) if type(images) is BatchTensor else images.clone()


def sent(loader):
    """A script that trains on a GPU."""
    return [(there(images), labels.clone()) for images, labels in loader]


def assert_same(got, want):
    assert len(got) == len(want) > 0
    for (a, b), (c, d) in zip(got, want, strict=True):
        assert torch.equal(a, c) and torch.equal(b, d) and a.stride() == c.stride() and a.dtype == c.dtype


def place(loader):
    return loader._native.device_batches.place


def why_not(loader):
    return loader._native.device_batches.why_not


@pytest.mark.parametrize("options", [
    {}, {"shuffle": False}, {"num_workers": 0}, {"seed": None, "sampler": "given"}, {"memory_format": "channels_last"},
    {"drop_last": True}, {"on_error": "skip", "persistent_workers": False},
])  # fmt: skip
def test_what_is_sent_moves_there_with_the_same_bytes(tree, gpu, options):
    if options.get("sampler"):
        options = {**options, "sampler": torch.utils.data.SequentialSampler(range(21)), "shuffle": None, "seed": 3}
    loader = load(tree, **options)
    assert "so far 0 were" in loader.explain().rows[-1].why
    for number, want in enumerate(reference(tree, 3, **options)):
        assert place(loader) == (None if number == 0 else "cuda:0")
        assert_same(sent(loader), want)
    assert place(loader) == "cuda:0" and loader.stats()["device"]["name"] == "cuda:0"
    if options.get("persistent_workers") is not False:
        assert loader.stats()["samples"] == sum(len(labels) for _, labels in want) * 3
    assert loader.explain().rows[-1].where == "none: batches are made on cuda:0"


def test_it_moves_in_the_middle_of_an_epoch(tree, gpu):
    loader, seen = load(tree), []
    for images, labels in loader:
        seen.append((place(loader), type(images), images.cuda(), labels))
    assert [where for where, *_ in seen] == [None] * 8 + ["cuda:0"] * 4
    assert {kind for _, kind, *_ in seen} == {BatchTensor}
    assert_same([(images, labels) for *_, images, labels in seen], reference(tree)[0])


@pytest.mark.parametrize("memory_format", [None, "channels_last"])
def test_batches_have_the_layout_that_is_asked_for(tree, gpu, memory_format):
    """And strides of the CPU's tensor for everything else."""
    last, loader = torch.channels_last, load(tree, memory_format=memory_format)
    for epoch, want in enumerate(reference(tree, 3, memory_format=memory_format)):
        for number, ((images, labels), (a, b)) in enumerate(zip(loader, want, strict=True)):
            assert images.stride() == a.stride() and torch.equal(labels, b)
            got, today = images.cuda(memory_format=last), a.contiguous(memory_format=last)
            assert torch.equal(got, today) and got.stride() == today.stride()
            if epoch == 2:
                got = images.cuda() if number % 5 else images.clone()
                assert torch.equal(got, a) and got.stride() == a.stride()
        assert loader._native.device_batches.is_channels_last == (memory_format is None)
    assert place(loader) == "cuda:0"


@pytest.mark.parametrize("batches", [3, 8, 9, 11])
def test_saved_before_or_after_the_move_and_resumed(tree, gpu, batches):
    want = reference(tree, 1)[0]
    loader = load(tree)
    iterator, got = iter(loader), []
    for _ in range(batches):
        images, labels = next(iterator)
        got.append((there(images), labels.clone()))
        del images
    state = loader.state_dict()
    for other in (load(tree), load(tree, device_batches=False)):
        other.load_state_dict(state)
        assert_same(got + [(images.cpu().clone(), labels) for images, labels in other], want)


def test_a_script_that_reads_on_the_cpu_is_left_alone(tree, gpu):
    loader = load(tree)
    got = [(images + 0, labels) for images, labels in loader]
    assert_same(got, reference(tree)[0])
    assert place(loader) is None and "reads" in loader.explain().rows[-1].why
    assert all(type(images) is torch.Tensor for images, _ in loader)


def test_a_script_that_begins_to_read_returns_to_memory(tree, gpu):
    loader = load(tree)
    want = reference(tree, 2)
    assert_same(sent(loader), want[0])
    assert place(loader) == "cuda:0"
    got = [(images + 0, labels) for images, labels in loader]
    assert_same(got, want[1]) and place(loader) is None
    assert loader.stats()["batches"] == 24


def test_a_look_now_and_then_changes_nothing(tree, gpu):
    loader = load(tree)
    want, number = reference(tree, 4), 0
    for epoch in want:
        got = []
        for images, labels in loader:
            number += 1
            got.append(((images[:] if number % 11 == 0 else images.cuda(0)).clone(), labels))
        assert_same(got, epoch)
    assert place(loader) == "cuda:0"


@pytest.mark.parametrize("from_the_first", [False, True])
def test_a_script_that_keeps_its_batches_has_them(tree, gpu, from_the_first):
    loader = load(tree)
    want = reference(tree, 2)
    if not from_the_first:
        assert_same(sent(loader), want.pop(0))
    kept = [(images, labels, there(images)) for images, labels in loader]
    assert_same([(copied, labels) for _, labels, copied in kept], want[0])
    assert_same([(images, labels) for images, labels, _ in kept], want[0])
    assert place(loader) is None and "keeps" in why_not(loader)


def test_batches_outlive_their_loader(tree, gpu):
    loader = load(tree)
    sent(loader)
    (first, _), (second, _) = [batch for _, batch in zip(range(2), loader)]
    del loader
    want = reference(tree, 2)[1]
    assert torch.equal(first.cuda(0), want[0][0]) and torch.equal(first, want[0][0])
    assert torch.equal(second, want[1][0])


def test_changed_in_place_no_other_batch_changes(tree, gpu):
    loader, want = load(tree), reference(tree, 2)
    for number, epoch in enumerate(want):
        for (images, labels), (a, b) in zip(loader, epoch, strict=True):
            copied = images.cuda(0)
            assert torch.equal(copied, a) and torch.equal(labels, b)
            copied.zero_()
            if number and labels[0] == 0:
                assert torch.equal(images.mul_(0), a * 0)


def test_several_gpus_are_left_to_the_script(tree, gpu):
    loader = load(tree)
    want = reference(tree)[0]
    got = [(there(images, number % 2), labels.clone()) for number, (images, labels) in enumerate(loader)]
    assert_same(got, want)
    assert place(loader) is None and "several" in why_not(loader)


def test_a_gpu_that_is_nearly_full_is_left_alone(tree, gpu):
    gpu[0] = 1 << 30
    loader = load(tree)
    assert_same(sent(loader), reference(tree)[0])
    assert place(loader) is None and "1,024 MiB free" in why_not(loader)


def test_out_of_memory_in_the_middle_of_an_epoch(tree, gpu, monkeypatch):
    """One warning, no batch lost, none twice."""
    made = []

    class Full:
        """An engine that has no memory after its second batch."""

        def __init__(self, engine):
            self._engine, self._left = engine, 2

        def __getattr__(self, name):
            return getattr(self._engine, name)

        def next(self):
            self._left -= 1
            if self._left < 0:
                raise _ext.OutOfMemory("cuda: out of memory")
            return self._engine.next()

    opened = native.Native._open_engine

    def open_engine(self, key):
        key, engine = opened(self, key)
        made.append(key[4])
        return key, Full(engine) if key[4] else engine

    monkeypatch.setattr(native.Native, "_open_engine", open_engine)
    loader = load(tree)
    with pytest.warns(UserWarning, match="no memory for batches") as warned:
        got = sent(loader)
    assert sum("no memory" in str(one.message) for one in warned) == 1 and made == [None, "cuda:0", None]
    assert_same(got, reference(tree)[0])
    assert place(loader) is None and "no memory" in why_not(loader)


def test_an_engine_that_cannot_be_opened_there(tree, gpu, monkeypatch):
    monkeypatch.setattr(native.Native, "_options_on", lambda self, device: {**self._options, "workers": 10**6})
    loader = load(tree)
    assert_same(sent(loader), reference(tree)[0])
    assert place(loader) is None and "workers" in why_not(loader)


def test_an_engine_that_cannot_be_opened_there_again(tree, gpu, monkeypatch):
    """At the beginning of an epoch: with persistent_workers=False each has an engine of its own."""
    loader, want = load(tree, persistent_workers=False), reference(tree, 2)
    assert_same(sent(loader), want[0])
    assert place(loader) == "cuda:0"
    monkeypatch.setattr(native.Native, "_options_on", lambda self, device: {**self._options, "workers": 10**6})
    assert_same(sent(loader), want[1])
    assert place(loader) is None and "workers" in why_not(loader)


def test_two_iterators_of_one_loader(tree, gpu):
    loader, want = load(tree), reference(tree, 2)
    got = [[], []]
    for pair in zip(loader, loader, strict=True):
        for into, (images, labels) in zip(got, pair, strict=True):
            into.append((images.cuda(0), labels))
    assert_same(got[0], want[0])
    assert_same(got[1], want[1])
    assert place(loader) == "cuda:0"


def test_batches_that_are_no_pairs_stay(tree, gpu):
    folder = stoker.datasets.ImageFolder(tree, T.PILToTensor())
    loader = stoker.DataLoader(folder, BATCH, device_batches=True)
    assert len(list(loader)) == 12 and place(loader) is None
    loader = stoker.DataLoader(data(tree), BATCH, device_batches=True, batch_transforms=T.MixUp(num_classes=3))
    assert "not just" in why_not(loader) and type(next(iter(loader))[0]) is torch.Tensor


def test_how_it_is_switched_off(tree, monkeypatch):
    monkeypatch.delenv(device_batches.VARIABLE, raising=False)
    assert device_batches.refused(None) == device_batches.refused(True) == "" and "False" in device_batches.refused(False)
    monkeypatch.setenv(device_batches.VARIABLE, "0")
    assert "DEVICE_BATCHES=0" in device_batches.refused(None) and device_batches.refused(True) == ""
    monkeypatch.setenv(device_batches.VARIABLE, "1")
    assert device_batches.refused(None) == ""
    if not torch.cuda.is_available():
        assert "no GPU" in why_not(load(tree))
    assert "pin_memory" in why_not(load(tree, pin_memory=False))
    assert options_beyond_torch(load(tree))["device_batches"] is True


def test_scripts_start_with_more_queues_unless_a_number_is_set(monkeypatch):
    name = "CUDA_DEVICE_MAX_CONNECTIONS"
    monkeypatch.setenv(name, "1")
    gpu_queues.more_for_script()
    assert os.environ[name] == "1"
    monkeypatch.delenv(name)
    gpu_queues.more_for_script()
    assert os.environ[name] == "32"
    monkeypatch.setenv(name, "32")  # so that it is removed again


# ---- datasets in Python: pinned batches that are copied early ----


def big(*shape):
    return torch.zeros(shape or (2, 1 << 19))


@pytest.mark.parametrize("make", [
    lambda a: [a, a], lambda a: [a, a[1]], lambda a: {"x": a, "y": [a[0]]}, lambda a: [a, {"y": 1}], lambda a: [a, a.numpy()],
    lambda a: [a, [[1]]], lambda a: [a[:, :8]], lambda a: (a, 1), lambda a: a, lambda a: [a.requires_grad_()],
    lambda a: [a.to_sparse()], lambda a: [torch.nn.Parameter(a)],
])  # fmt: skip
def test_what_is_shared_or_unknown_or_small_is_left_alone(make, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: True)
    batch = make(big())
    before = list(map(id, batch)) if type(batch) is list else None
    got = early_copies.lent(batch, DeviceBatches("", 0))
    assert got is batch and (before is None or before == list(map(id, got)))
    assert type(batch) is not dict or type(batch["x"]) is torch.Tensor


@pytest.mark.parametrize("labels", [torch.arange(2), ["a", "b"], [1, 2], None, "name"])
def test_large_tensors_are_watched(labels, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: True)
    decided = DeviceBatches("", 0)
    for batch in ([big(), labels, big()], {"x": big(), "y": labels, "z": big()}):
        got = early_copies.lent(batch, decided)
        values = list(got.values()) if type(got) is dict else got
        assert [type(value) is BatchTensor for value in values] == [True, False, True] and values[1] is labels
    values[0].add_(1)
    decided.decide()
    assert "reads" in decided.why_not and type(early_copies.lent([big()], decided)[0]) is torch.Tensor
