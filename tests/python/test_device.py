# SPDX-License-Identifier: Apache-2.0
"""device= and pin_memory= as far as they go without a GPU; tests/gpu has the rest."""

from __future__ import annotations

import gc
import threading
import warnings

import numpy as np
import pytest
import stoker
import torch
from conftest import run_python
from stoker import _ext
from stoker import transforms as T
from stoker._base.tensors import current_stream, current_streams, device_name

needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


def data(tree):
    return stoker.datasets.ImageFolder(tree, T.Compose([T.Resize((24, 24)), T.ToTensor()]))


def engine(tree, **options):
    out = _ext.Loader(
        _ext.Dataset.open(tree), _ext.Pipeline("resize(size=[24,24]); to_tensor"), batch_size=4, **options
    )
    out.start()
    return out


# ---- what is refused, and how ----


def test_device_names():
    assert device_name(None) is None and device_name("cpu") is None
    assert device_name(torch.device("cpu")) is None
    assert device_name("cuda") == "cuda" and device_name("cuda:3") == "cuda:3"
    assert device_name(torch.device("cuda", 1)) == "cuda:1" and device_name(2) == "cuda:2"
    for wrong in ("gpu", "cuda:", "cuda:x", "mps", "", -1, True, 1.5):
        with pytest.raises(ValueError, match="neither"):
            device_name(wrong)


@needs_no_gpu
@pytest.mark.parametrize("output", ["torch", "dlpack"])
def test_without_a_gpu_the_engine_says_so(tree, output):
    with pytest.raises(stoker.StokerError, match=r"(?i)cuda|driver|gpu"):
        stoker.DataLoader(data(tree), 4, device="cuda", output=output)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"device": "cuda", "output": "numpy"}, "NumPy arrays are in CPU memory"),
        ({"device": "tpu"}, "neither 'cpu' nor 'cuda'"),
        ({"augment_on": "gpu"}, "not one of 'auto', 'cpu', 'cuda'"),
        ({"augment_on": "cuda"}, "needs device"),
        ({"output": "jax"}, "'dlpack'"),
    ],
)
def test_refusals(tree, options, text):
    with pytest.raises(ValueError, match=text):
        stoker.DataLoader(data(tree), 4, **options)


def test_cpu_by_name_is_no_device(tree):
    loader = stoker.DataLoader(data(tree), 4, device="cpu", augment_on="cpu")
    assert loader.device == "cpu" and "device" not in repr(loader)
    assert next(iter(loader))[0].device.type == "cpu"
    images, labels = next(iter(loader))
    assert images.device.type == labels.device.type == "cpu"
    report = loader.stats()
    assert report["device"] == {
        "name": "cpu",
        "augment_on": "cpu",
        "copied_bytes": 0,
        "rows_resized_there": 0,
        "rows_resized_by_workers": 0,
        "files_decoded_there": 0,
        "files_hardware_failed": 0,
        "jpeg_hardware_open": 0,
        "files_known": 0,
        "jpeg_hardware_note": None,
        "engines_open": 0,
        "engines_note": None,
    }
    assert report["memory"]["pinned_bytes"] == 0


@needs_no_gpu
def test_pinning_without_a_gpu_warns_and_goes_on(tree):
    loader = stoker.DataLoader(data(tree), 4, pin_memory=True)
    with pytest.warns(UserWarning, match="no accelerator is found"):
        images, _ = next(iter(loader))
    assert not images.is_pinned()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(iter(stoker.DataLoader(data(tree), 4)))


# ---- CUDA is left alone until it is asked for ----

LOAD = """
    import sys
    {before}
    import stoker
    from stoker import transforms as T
    data = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.Resize((24, 24)), T.ToTensor()]))
    loader = stoker.DataLoader(data, 4, shuffle=True, output={output!r})
    assert len(list(loader)) == 6
    loader.stats()
    maps = open("/proc/self/maps").read()
    print([name for name in ("libcuda.so", "libnvidia-ml", "libnvjpeg") if name in maps])
"""


def test_nothing_of_cuda_is_opened_for_the_cpu(tree):
    got = run_python(LOAD.format(before="sys.modules['torch'] = None", output="numpy"), tree)
    assert got.returncode == 0, got.stderr
    assert got.stdout.strip() == "[]"


def test_nothing_of_cuda_is_initialised_beside_torch(tree):
    code = LOAD.format(before="import torch", output="torch")
    got = run_python(code + "\n    assert not torch.cuda.is_initialized()", tree)
    assert got.returncode == 0, got.stderr


# ---- DLPack ----


def test_dlpack_output(tree):
    loader = stoker.DataLoader(data(tree), 4, output="dlpack")
    want = list(stoker.DataLoader(data(tree), 4))
    for (images, labels), (a, b) in zip(loader, want, strict=True):
        assert images.__dlpack_device__() == labels.__dlpack_device__() == (1, 0)
        assert torch.equal(torch.from_dlpack(images), a) and torch.equal(torch.from_dlpack(labels), b)
        assert np.array_equal(np.from_dlpack(images), a.numpy())
    assert "Tensor float32" in repr(images)


def test_pair_is_what_the_tensors_are(tree):
    first, second = engine(tree), engine(tree)
    while (batch := second.next()) is not None:
        images, labels = first.next_pair(torch.from_dlpack)
        assert torch.equal(images, torch.from_dlpack(batch.images)) and images.stride() == batch.images.stride
        assert torch.equal(labels, torch.from_dlpack(batch.labels)) and labels.dtype == torch.int64
        assert first.stats()["slots_lent"] == 1
    assert first.next_pair(torch.from_dlpack) is None
    del images
    assert first.stats()["slots_lent"] == 1  # kept by the labels
    del labels
    assert first.stats()["slots_lent"] == 0


@pytest.mark.parametrize("take", [lambda capsule: None, lambda capsule: 1 / 0, None])
def test_pair_that_nobody_takes_is_given_back(tree, take):
    loader = engine(tree)
    try:
        assert loader.next_pair(take) == [None, None]
    except (ZeroDivisionError, TypeError) as error:
        assert take is None or isinstance(error, ZeroDivisionError)
    assert loader.stats()["slots_lent"] == 0


def test_no_pair_of_other_batches(tree):
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(tree, T.PILToTensor()), 4)
    images, labels = next(iter(loader))
    assert isinstance(images, list) and len(images) == len(labels) == 4


def test_streams_are_for_devices_alone(tree):
    batch = engine(tree).next()
    assert batch.device == (1, 0)
    assert batch.sync() is None
    for stream in (0, 1, 2, -1, 12345):
        with pytest.raises(BufferError, match="no stream"):
            batch.images.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="no other device"):
        batch.labels.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="no copy"):
        batch.images.__dlpack__(copy=True)
    assert batch.images.__dlpack__(dl_device=(1, 0), copy=False, max_version=(1, 0)) is not None


# ---- whom the engine asks when a batch is let go ----


def test_the_stream_is_asked_for_when_each_tensor_goes(tree):
    asked = []

    def stream_of():
        asked.append(threading.get_ident())
        return 0

    loader = engine(tree, stream_of=stream_of)
    batch = loader.next()
    images, labels = torch.from_dlpack(batch.images), torch.from_dlpack(batch.labels)
    view = images[1:]
    del batch, images
    gc.collect()
    assert not asked  # a view of it is left
    del labels
    assert asked == [threading.get_ident()]
    del view
    assert asked == [threading.get_ident()] * 2
    assert loader.stats()["slots_lent"] == 0


@pytest.mark.parametrize("answer", [lambda: 1 / 0, lambda: "text", lambda: -5])
def test_a_failing_answer_harms_nobody(tree, answer):
    loader = engine(tree, stream_of=answer)
    try:
        with pytest.raises(KeyError, match="own"):
            batch = loader.next()
            try:
                raise KeyError("own")
            finally:
                del batch
    finally:
        assert loader.stats()["slots_lent"] == 0


def test_let_go_in_a_thread_of_torch_without_the_interpreter(tree):
    """A tensor saved for backward dies in autograd's thread or in this one, which holds no lock then."""
    asked = []
    loader = engine(tree, stream_of=lambda: asked.append(1) or 0)
    for _ in range(3):
        weight = torch.ones(3, 24, 24, requires_grad=True)
        loss = (torch.from_dlpack(loader.next().images) * weight).square().sum()
        loss.backward()
        del loss
        gc.collect()
    assert len(asked) == 3


@pytest.mark.parametrize("keep", ["module", "thread"])
def test_exit_with_a_batch_still_lent(tree, keep):
    code = """
        import sys, threading, time
        import stoker, torch
        from stoker import _ext
        loader = _ext.Loader(_ext.Dataset.open(sys.argv[1]),
                             _ext.Pipeline("resize(size=[24,24]); to_tensor"), batch_size=4,
                             stream_of=lambda: 0)
        loader.start()
        kept = torch.from_dlpack(loader.next().images)
        if sys.argv[2] == "thread":
            def hold(tensor):
                while tensor is not None:
                    time.sleep(0.01)
            threading.Thread(target=hold, args=(kept,), daemon=True).start()
        sys.kept = kept
        print("end")
    """
    got = run_python(code, tree, keep)
    assert got.returncode == 0 and got.stdout == "end\n", got.stderr
    assert not got.stderr


def test_current_stream_without_cuda():
    if not torch.cuda.is_initialized():
        assert current_stream() == current_stream(0) == 1
        assert current_streams() == ()
