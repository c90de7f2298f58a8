# SPDX-License-Identifier: Apache-2.0
"""Tensors that are on the CPU in name: whatever is done with one, the result is that of the tensor it stands for. The
GPU is played by memory; tests/gpu/test_device_batches.py has the real one."""

from __future__ import annotations

import copy
import functools
import importlib.util
import io
import multiprocessing
import os
import pickle
import sys
import threading
import types
import warnings
import weakref

import numpy as np
import pytest
import torch
from ranks import in_fresh_python
from stoker._engine.batch_tensor import BatchTensor

GPU = torch.device("cuda", 0)


class Script:
    """Counts what was done with its batches."""

    def __init__(self):
        self.devices, self.reads = [], 0

    def sent(self, device, layout):
        self.devices.append(device)

    def read(self):
        self.reads += 1


class Elsewhere:
    """Bytes that are on a GPU, as far as a BatchTensor can tell."""

    def __init__(self, tensor):
        self.usage, self.tensor, self.fetches = Script(), tensor, 0

    def meta(self):
        return tuple(self.tensor.shape), self.tensor.stride(), self.tensor.dtype

    def copied(self, device, dtype, non_blocking, layout):
        return self.tensor.to(dtype, copy=True, memory_format=layout) if device == GPU else None

    def is_pinned(self):
        return True

    def fetch(self, pinned):
        self.fetches += 1
        return self.tensor.clone(memory_format=torch.preserve_format)


def original():
    return torch.arange(96, dtype=torch.float32).reshape(2, 3, 4, 4) / 7


@pytest.fixture()
def source():
    return Elsewhere(original())


def test_what_is_said_of_it_costs_nothing(source):
    tensor, want = BatchTensor(source), original()
    assert isinstance(tensor, torch.Tensor) and torch.is_tensor(tensor) and isinstance(tensor, torch.FloatTensor)
    for name in ("shape", "dtype", "device", "layout", "ndim", "requires_grad", "is_leaf", "grad", "grad_fn", "itemsize",
                 "nbytes", "is_cpu", "is_cuda", "_version"):  # fmt: skip
        assert getattr(tensor, name) == getattr(want, name), name
    for name in ("size", "dim", "numel", "stride", "is_contiguous", "element_size", "is_floating_point", "get_device",
                 "storage_offset", "__len__"):  # fmt: skip
        assert getattr(tensor, name)() == getattr(want, name)(), name
    assert tensor.is_pinned() and hash(tensor) == hash(tensor) and torch.numel(tensor) == 96
    for same in (tensor.cpu(), tensor.to("cpu"), tensor.to(torch.float32), tensor.pin_memory(), tensor.contiguous()):
        assert same is tensor
    assert source.fetches == source.usage.reads == 0 and type(tensor) is BatchTensor


@pytest.mark.parametrize("last", [torch.contiguous_format, torch.channels_last])
def test_sent_to_its_device_it_is_copied_there(last):
    source = Elsewhere(original().contiguous(memory_format=last))
    tensor = BatchTensor(source)
    want = original().contiguous(memory_format=last)
    for asked in (
        lambda x: x.cuda(0), lambda x: x.cuda("cuda:0", non_blocking=True), lambda x: x.cuda(GPU, True),
        lambda x: x.to("cuda:0"), lambda x: x.to(device=GPU, non_blocking=True), lambda x: x.to(GPU, copy=True),
    ):  # fmt: skip
        got = asked(tensor)
        assert type(got) is torch.Tensor and torch.equal(got, want) and got.stride() == want.stride()
        got.zero_()  # is nobody else's
    half = tensor.to(GPU, torch.bfloat16, memory_format=torch.channels_last)
    assert torch.equal(half, want.to(torch.bfloat16)) and half.is_contiguous(memory_format=torch.channels_last)
    assert len(source.usage.devices) == 7 and set(source.usage.devices) == {GPU}
    assert source.fetches == source.usage.reads == 0 and torch.equal(tensor, want)
    assert type(tensor) is torch.Tensor and source.fetches == source.usage.reads == 1


def saved(tensor):
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file)


def unpickled(tensor):
    return pickle.loads(pickle.dumps(tensor))


def function_of(tensor):
    class Doubled(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Doubled():
        return tensor * 2


def on_default_device(tensor):
    torch.set_default_device("meta")
    try:
        return tensor + 1
    finally:
        torch.set_default_device(None)


def inferred(tensor):
    with torch.inference_mode():
        tensor.sum()
    weight = torch.ones((), requires_grad=True)
    (tensor * weight).sum().backward()
    return weight.grad


def cast(tensor):
    with torch.autocast("cpu", torch.bfloat16):
        return torch.nn.functional.conv2d(tensor, torch.ones(1, 3, 2, 2))


def wanting_gradients(tensor):
    tensor.requires_grad_()
    (tensor * tensor).sum().backward()
    return tensor.grad


OPERATIONS = [
    lambda x: x[0], lambda x: x[:, 1:, ::2], lambda x: x[x > 5], lambda x: x + x, lambda x: x.view(2, -1),
    lambda x: torch.stack([x, x]), lambda x: torch.cat((x, x)), lambda x: list(x)[1], lambda x: torch.as_tensor(x),
    lambda x: x.detach(), lambda x: x.data, lambda x: torch.from_numpy(x.numpy()),
    lambda x: torch.from_numpy(np.asarray(x)), lambda x: torch.tensor(np.asarray(x).tolist()), lambda x: copy.copy(x),
    copy.deepcopy, unpickled, saved, lambda x: x.to(torch.uint8), lambda x: x.half(), lambda x: x.double(),
    lambda x: x.to("meta").shape, lambda x: x.to("cpu", copy=True), lambda x: torch.empty(2, 3, 4, 4).copy_(x),
    lambda x: torch.ops.aten.add(x, 1), torch.zeros_like, lambda x: torch.nn.Parameter(x).data, lambda x: x.sum().item(),
    lambda x: torch.utils.dlpack.from_dlpack(x), lambda x: next(iter(torch.utils.data.default_collate([x, x]))),
    lambda x: x.contiguous(memory_format=torch.channels_last).stride(), lambda x: x.type("torch.DoubleTensor"),
    lambda x: torch.nn.functional.interpolate(x, scale_factor=2.0), lambda x: str(x), lambda x: x.tolist(),
    lambda x: x.untyped_storage().nbytes(),
    function_of, on_default_device, inferred, cast, wanting_gradients,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_everything_else_is_done_with_the_bytes(source, number):
    tensor, want = BatchTensor(source), OPERATIONS[number](original())
    got = OPERATIONS[number](tensor)
    if isinstance(want, torch.Tensor):
        assert got.dtype == want.dtype and got.stride() == want.stride()
        assert torch.equal(got, want) and type(got) is torch.Tensor
    else:
        assert got == want
    assert source.fetches == source.usage.reads == 1
    assert torch.equal(tensor.detach(), original()) and source.fetches == 1


def test_changed_in_place_it_is_the_changed_tensor(source):
    tensor = BatchTensor(source)
    before = tensor.cuda(0)
    assert tensor.add_(1) is tensor and type(tensor) is torch.Tensor
    assert torch.equal(tensor, original() + 1) and torch.equal(before, original())
    other = BatchTensor(Elsewhere(original()))
    other[0] = 5
    other.mul_(2).clamp_(max=9)
    assert torch.equal(other[0], torch.full((3, 4, 4), 9.0)) and torch.equal(other[1], (original()[1] * 2).clamp(max=9))
    third = BatchTensor(Elsewhere(original()))
    torch.add(original(), 1, out=third)
    assert torch.equal(third, original() + 1)
    third.mine = "kept"
    assert third.mine == "kept"


def test_attributes_of_the_script_stay(source):
    tensor = BatchTensor(source)
    tensor.mine = "kept"
    assert tensor.sum() == original().sum() and type(tensor) is torch.Tensor and tensor.mine == "kept"


def test_with_weak_references_it_stays_what_it_is(source):
    """torch cannot exchange such a tensor; its bytes are held beside it."""
    tensor = BatchTensor(source)
    reference = weakref.ref(tensor)
    assert tensor.add_(1) is tensor and torch.equal(tensor, original() + 1) and source.fetches == 1
    copied = copy.deepcopy(tensor)
    assert type(copied) is torch.Tensor and torch.equal(copied, original() + 1)
    tensor.resize_(3)
    assert tensor.shape == (3,) and len(tensor) == 3 and reference() is not None


def test_code_that_does_not_ask_gets_an_error(source):
    tensor = BatchTensor(source)
    with pytest.raises(RuntimeError):
        torch.utils.dlpack.to_dlpack(tensor)
    with pytest.raises(TypeError):
        memoryview(tensor)
    with pytest.raises(RuntimeError, match="cannot be traced"):
        torch.jit.trace(lambda x: x + 1, tensor)


def test_another_device_gets_a_copy_of_the_cpus(source, monkeypatch):
    """Seen by whom it is asked of: no GPU is needed to be asked for one."""
    tensor = BatchTensor(source)
    with pytest.raises((RuntimeError, AssertionError)):
        tensor.to("cuda:77")
    assert source.usage.devices == [torch.device("cuda", 77)] and source.fetches == 1
    assert torch.equal(tensor, original())


@pytest.mark.parametrize("wrong", [lambda x: x.cuda("cpu", 1, 2, 3), lambda x: x.to("nowhere"), lambda x: x.to("cpu", bad=1)])
def test_wrong_arguments_are_torchs_errors(source, wrong):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        wrong(original())
    with pytest.raises(type(theirs.value)) as ours:
        wrong(BatchTensor(source))
    assert str(ours.value) == str(theirs.value)


def test_read_by_several_threads_it_is_fetched_once(source):
    tensor, sums, start = BatchTensor(source), [], threading.Barrier(8)

    def read():
        start.wait()
        sums.append(float(tensor.sum()))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [float(original().sum())] * 8 and source.fetches == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_reads_its_parents_batch(source):
    tensor = BatchTensor(source)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(tensor, original()) and source.fetches == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert torch.equal(tensor.add_(1), original() + 1)


def test_sent_through_a_queue(source):
    queue = multiprocessing.get_context("fork").SimpleQueue()
    torch.multiprocessing.set_sharing_strategy("file_descriptor")
    queue.put(BatchTensor(source))
    assert torch.equal(queue.get(), original())


def test_dropped_it_lets_its_source_go():
    tensor = BatchTensor(Elsewhere(original()))
    reference = weakref.ref(tensor._held.source)
    copied = tensor.cuda(0)
    del tensor
    assert reference() is None and torch.equal(copied, original())


def test_compiled_code_calls_it_and_does_not_trace_it():
    """One compiled call does not decide what later ones do: an older torch went round in circles."""
    sent = torch.compile(lambda x: x.cuda(0) * 2, backend="eager")
    read = torch.compile(lambda x: x.double().sum() + x.shape[0], backend="eager")
    for dtype in (torch.float32, torch.float16, torch.uint8):
        bytes_ = original().to(dtype)
        assert torch.equal(sent(BatchTensor(Elsewhere(bytes_))), bytes_ * 2)
        assert torch.equal(read(BatchTensor(Elsewhere(bytes_))), bytes_.double().sum() + 2)
    found = torch._dynamo.utils.counters["graph_break"]
    assert found and not any("batch_tensor" in str(why) for why in found)


def test_ddp_sends_it_once_and_trains_on_its_bytes(source):
    """What DDP does with arguments on their way to a GPU, and its forward pass without one."""
    from torch.distributed.utils import _recursive_to

    ((sent, number),) = _recursive_to((BatchTensor(source), 3), GPU, False)
    assert torch.equal(sent, original()) and number == 3 and source.fetches == 0 and source.usage.devices == [GPU]
    assert in_fresh_python(weights_of_ddp, True) == in_fresh_python(weights_of_ddp, False)


def weights_of_ddp(in_name):
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Conv2d(3, 2, 3))
    images = BatchTensor(Elsewhere(original())) if in_name else original()
    model(images).sum().backward()
    torch.distributed.broadcast(images, 0)
    return [parameter.grad.tolist() for parameter in model.parameters()]


def test_huggingfaces_trainer_sends_it_once():
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    assert in_fresh_python(prepared_by_trainer) == [0, ["cuda:0"], True]


def prepared_by_trainer():
    sys.modules["torchaudio"] = None  # one of another age than torch cannot be imported, and transformers would
    from transformers import Trainer

    asker = types.SimpleNamespace(args=types.SimpleNamespace(device=GPU), is_deepspeed_enabled=False)
    asker._prepare_input = functools.partial(Trainer._prepare_input, asker)
    source = Elsewhere(original())
    images = Trainer._prepare_input(asker, {"pixel_values": BatchTensor(source), "labels": ["a"]})["pixel_values"]
    return [source.fetches, list(map(str, source.usage.devices)), torch.equal(images, original())]


def test_batches_come_and_go_while_a_process_forks(source):
    """Another thread makes tensors at that moment."""
    stop = threading.Event()

    def make():
        while not stop.is_set():
            BatchTensor(Elsewhere(original()))

    thread = threading.Thread(target=make)
    thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        tensor = BatchTensor(source)
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if source.fetches == 1 and torch.equal(tensor, original()) else 1)
            assert os.waitpid(child, 0)[1] == 0
    stop.set()
    thread.join()
