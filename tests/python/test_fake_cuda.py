# SPDX-License-Identifier: Apache-2.0
"""From device= in Python through the engine to a driver and back; the driver's GPU is ordinary memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import sources
from conftest import WITHOUT_TORCH

HERE = Path(__file__).resolve().parent

BEGIN = """
    import ctypes, sys, warnings
    import numpy as np
    import stoker
    from stoker import _ext, transforms as T

    cuda = ctypes.CDLL("libcuda.so.1")
    room = (ctypes.c_size_t * 4096)()
    def log(name):
        return list(room[: getattr(cuda, name)(room)])

    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    def look(tensor, **options):
        '''The memory that the capsule points to; it is the CPU's after all.'''
        capsule = tensor.__dlpack__(**options)
        data = ctypes.c_void_p.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor")).value
        kind = {"float32": ctypes.c_float, "int64": ctypes.c_int64}[tensor.dtype]
        array = np.ctypeslib.as_array((kind * int(np.prod(tensor.shape))).from_address(data))
        strides = [s * array.itemsize for s in tensor.stride]
        return np.lib.stride_tricks.as_strided(array, tensor.shape, strides).copy()

    data = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.RandomResizedCrop(24), T.ToTensor()]))
    options = {"batch_size": 4, "shuffle": True, "seed": 3}
    want = [(i.copy(), t.copy()) for i, t in stoker.DataLoader(data, output="numpy", **options)]
"""


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("fake")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", folder / "libcuda.so.1", HERE / "fake_cuda.c"], check=True
    )
    return folder


@pytest.fixture()
def run(fake, tree):
    def run_code(code, torch=False):
        paths = [str(fake), os.environ.get("LD_LIBRARY_PATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths)),
        }
        whole = ("" if torch else WITHOUT_TORCH) + textwrap.dedent(BEGIN) + textwrap.dedent(code)
        command = [sys.executable, "-c", whole, tree]
        got = subprocess.run(
            command, timeout=600, capture_output=True, text=True, env=environment, check=False
        )
        assert got.returncode == 0 and "Exception ignored" not in got.stderr, got.stdout + got.stderr
        return got.stdout.split()

    return run_code


@pytest.mark.parametrize("layout", ["contiguous_format", "channels_last"])
@pytest.mark.parametrize("where", ["auto", "cpu"])
def test_batches_are_those_of_the_cpu(run, layout, where):
    assert run(f"""
        loader = stoker.DataLoader(data, output="dlpack", device="cuda", augment_on={where!r},
                                   memory_format={layout!r}, **options)
        for epoch in range(3):
            loader.set_epoch(0)
            got = [(look(i), look(t)) for i, t in loader]
            assert all((a == b).all() and (c == d).all() for (a, c), (b, d) in zip(got, want, strict=True))
        report = loader.stats()
        assert report["device"]["name"] == "cuda" and report["device"]["copied_bytes"] > 0
        assert report["memory"]["pinned_bytes"] > 0 and report["memory"]["batches_lent"] == 0
        print("same")
    """) == ["same"]


@pytest.mark.parametrize(("given", "seen"), [(None, "32"), ("1", "1")])
def test_cuda_starts_with_more_queues_unless_the_user_decided(run, given, seen):
    """The first loader with a device asks for them, and leaves no trace of that to child processes."""
    assert run(f"""
        import os, subprocess
        name, given = "CUDA_DEVICE_MAX_CONNECTIONS", {given!r}
        os.environ.pop(name, None)
        if given is not None:
            os.environ[name] = given
        def of_a_child():
            return subprocess.run(["printenv", name], capture_output=True, text=True).stdout.strip() or None
        seen = lambda: (ctypes.c_char * 16).in_dll(cuda, "fake_queues").value.decode()
        list(stoker.DataLoader(data, output="dlpack", **options))
        assert seen() == "" and os.environ.get(name) == of_a_child() == given  # nothing of CUDA is needed here
        for _ in range(2):
            list(stoker.DataLoader(data, output="dlpack", device="cuda", **options))
            assert seen() == {seen!r} and os.environ.get(name) == of_a_child() == given
        print("done")
    """) == ["done"]


def test_streams_wait_and_are_marked(run):
    assert run("""
        loader = stoker.DataLoader(data, output="dlpack", device="cuda:0", num_workers=0, **options)
        batches = iter(loader)
        images, labels = next(batches)
        assert images.__dlpack_device__() == labels.__dlpack_device__() == (2, 0)
        assert repr(images) == "<stoker Tensor float32 (4, 3, 24, 24) on cuda:0>"
        log("fake_waits"), log("fake_marks")
        images.__dlpack__(stream=9876)
        assert log("fake_waits") == []  # the batch is there
        late = ctypes.c_int.in_dll(cuda, "fake_late")
        late.value = 1
        for stream, waits in ((None, [1]), (1, [1]), (2, [2]), (9876, [9876]), (-1, [])):
            images.__dlpack__(stream=stream, max_version=(1, 0), dl_device=(2, 0), copy=False)
            assert log("fake_waits") == waits, stream
        for wrong in (0, -2):
            try:
                images.__dlpack__(stream=wrong)
                print("taken")
            except ValueError as error:
                assert "not a CUDA stream" in str(error)
        for options in ({"dl_device": (1, 0)}, {"dl_device": (2, 1)}, {"copy": True}):
            try:
                labels.__dlpack__(**options)
                print("taken")
            except BufferError as error:
                assert "CUDA memory" in str(error)
        late.value = 0
        try:
            memoryview(images)
            print("looked")
        except BufferError as error:
            assert "GPU's memory" in str(error)
        assert log("fake_marks") == []
        del images
        assert log("fake_marks") == []
        del labels
        assert set(log("fake_marks")) == {1, 9876}  # the legacy stream waits for those of threads
        print("done")
    """, torch=True) == ["done"]


def test_the_stream_at_the_end_is_marked_too(run):
    assert run("""
        loader = _ext.Loader(data._engine(), _ext.Pipeline("resize(size=[24,24]); to_tensor"), batch_size=4,
                             device="cuda", workers=0, stream_of=lambda: 4242)
        loader.start()
        batch = loader.next()
        assert batch.device == (2, 0)
        batch.sync()
        log("fake_marks")
        del batch
        assert 4242 in log("fake_marks")
        print("done")
    """) == ["done"]


def test_pinned_memory(run):
    assert run("""
        text = _ext.Pipeline("resize(size=[24,24]); to_tensor")
        plain = _ext.Loader(data._engine(), text, batch_size=4)
        plain.start()
        pinned = _ext.Loader(data._engine(), text, batch_size=4, pin_memory=True, stream_of=lambda: 4242)
        pinned.start()
        while (batch := pinned.next()) is not None:
            assert batch.device[0] == 3 and batch.images.__dlpack_device__() == (1, 0)
            assert (np.asarray(batch.images) == np.asarray(plain.next().images)).all()
            log("fake_marks")
            del batch
            assert 4242 in log("fake_marks")
        assert pinned.stats()["pinned_bytes"] > 0 and pinned.stats()["pinned_note"] is None
        print("done")
    """) == ["done"]


PINNED = """
    import gc, threading, torch
    current = [5001]
    text = _ext.Pipeline("resize(size=[24,24]); to_tensor")
    pinned = _ext.Loader(data._engine(), text, batch_size=4, pin_memory=True, stream_of=lambda: current[0])
    pinned.start()
    def take(how=torch.from_dlpack):
        batch = pinned.next()
        return [how(batch.images), how(batch.labels)]
"""


def test_each_pinned_tensor_marks_the_stream_in_which_it_goes(run):
    """Images that a side stream copies, and labels that are dropped later."""
    assert run(PINNED + """
    for how in (torch.from_dlpack, np.asarray, lambda tensor: torch.from_numpy(np.asarray(tensor))):
        current[0] = 5001
        images, labels = take(how)
        log("fake_marks")
        del images
        assert log("fake_marks") == [5001]
        current[0] = 5002
        del labels
        assert sorted(log("fake_marks")) == [1, 5002]

        images, labels = take(how)
        part, other = images[1:], images[:2]
        log("fake_marks")
        del images
        assert log("fake_marks") == []  # others share its memory
        current[0] = 5003
        del labels, part
        assert log("fake_marks") == [5003]  # of the labels
        current[0] = 5004
        del other
        assert sorted(log("fake_marks")) == [1, 5004]
    print("done")
    """, torch=True) == ["done"]


def test_pinned_tensors_that_go_in_other_threads_and_on_other_gpus(run):
    assert run(PINNED + """
    ctypes.c_int.in_dll(cuda, "fake_devices").value = 2
    images, labels = take()
    log("fake_marks")
    current[0] = 5001, 1005001
    held = [images]
    del images
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert log("fake_marks") == [5001, 1005001]
    current[0] = ()
    del labels
    assert log("fake_marks") == [1, 1000001]  # the default streams of both

    images, labels = take()
    current[0] = "nonsense"
    del images
    assert log("fake_marks") == [1, 1000001]
    try:
        held = labels
        del labels
        raise ValueError("in the middle of an exception")
    except ValueError as error:
        del held
        assert "in the middle" in str(error)
    assert set(log("fake_marks")) == {1, 1000001}
    print("done")
    """, torch=True) == ["done"]


def test_pinned_tensors_that_are_left_when_python_ends(run):
    assert run(PINNED + """
    kept = take()
    cycle = [take()]
    cycle.append(cycle)
    sys.modules["kept"] = kept[0]
    print("done")
    """, torch=True) == ["done"]


def test_a_pinned_loader_asks_for_the_streams_of_every_gpu(run):
    """torch's answers are made up."""
    assert run("""
        import torch
        streams = {0: 0, 1: 0}
        torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
        torch.cuda.device_count, torch.cuda.current_device = lambda: 2, lambda: 0
        torch._C._cuda_getCurrentRawStream = streams.__getitem__
        ctypes.c_int.in_dll(cuda, "fake_devices").value = 2
        batches = iter(stoker.DataLoader(data, pin_memory=True, device_batches=False, **options))
        for on_first, on_second in ((0, 0), (5001, 0), (0, 1005001), (5001, 1005001)):
            images, labels = next(batches)
            assert type(images) is torch.Tensor
            streams[0], streams[1] = on_first, on_second
            log("fake_marks")
            del images
            assert log("fake_marks") == [s for s in (on_first, on_second) if s], (on_first, on_second)
            streams[0] = streams[1] = 0
            del labels
            assert log("fake_marks") == [1, 1000001]
        print("done")
    """, torch=True) == ["done"]


def test_each_tensor_on_the_device_marks_its_stream(run):
    assert run("""
        current = [5001]
        text = _ext.Pipeline("resize(size=[24,24]); to_tensor")
        loader = _ext.Loader(data._engine(), text, batch_size=4, device="cuda", workers=0, stream_of=lambda: current[0])
        loader.start()
        batch = loader.next()
        api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
        deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def use(tensor):  # as a library that takes the capsule over; returns what ends its use
            capsule = tensor.__dlpack__(stream=9876)
            managed = api.PyCapsule_GetPointer(capsule, b"dltensor")
            used = ctypes.c_char_p(b"used_dltensor")
            api.PyCapsule_SetName(capsule, used)
            end = ctypes.c_void_p.from_address(managed + 56).value  # behind struct DLTensor and the context
            return lambda: (used, deleter(end)(managed))
        images, labels = use(batch.images), use(batch.labels)
        del batch
        log("fake_marks")
        images()
        assert log("fake_marks") == [5001]
        current[0] = 9876
        labels()
        assert log("fake_marks") == [9876]  # as it joined
        print("done")
    """) == ["done"]


def test_one_warning_where_memory_is_not_pinned(run):
    assert run("""
        loader = stoker.DataLoader(data, output="dlpack", device="cuda", pinned_limit=1, **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for epoch in range(2):
                loader.set_epoch(0)
                got = [(look(i), look(t)) for i, t in loader]
        assert all((a == b).all() and (c == d).all() for (a, c), (b, d) in zip(got, want, strict=True))
        said = [str(w.message) for w in caught if "pageable" in str(w.message)]
        assert len(said) == 1, said
        assert loader.stats()["memory"]["pinned_bytes"] == 0
        print("done")
    """) == ["done"]


def test_errors_are_sentences(run):
    assert run("""
        def said(**more):
            try:
                list(stoker.DataLoader(data, output="dlpack", **{**options, **more}))
            except (stoker.StokerError, ValueError, MemoryError) as error:
                return str(error)
        assert "cuda:7" in said(device="cuda:7")
        assert "kernel" in said(device="cuda", augment_on="cuda")
        large = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.Resize((4096, 4096)), T.ToTensor()]))
        try:
            list(stoker.DataLoader(large, 16, output="dlpack", device="cuda", max_memory=1 << 40))
        except (stoker.StokerError, MemoryError) as error:
            assert "memory" in str(error), error
            print("done")
        ragged = stoker.datasets.ImageFolder(sys.argv[1], T.ToTensor())
        try:
            stoker.DataLoader(ragged, 4, output="dlpack", device="cuda")
        except ValueError as error:
            assert "vary in size" in str(error)
            print("done")
    """) == ["done", "done"]


def test_fork_is_refused(run):
    assert run("""
        import os
        warnings.simplefilter("ignore")
        loader = stoker.DataLoader(data, output="dlpack", device="cuda", **options)
        batches = iter(loader)
        kept = next(batches)
        child = os.fork()
        if child == 0:
            try:
                next(batches)
            except stoker.StokerError as error:
                os._exit(0 if "fork" in str(error) else 2)
            os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(list(batches)) == len(want) - 1)
    """) == ["0", "True"]


def test_fields_beside_the_image_stay_with_the_cpu(run, tmp_path):
    url = sources.make_tar(tmp_path)
    assert run(f"""
        data = stoker.datasets.WebDataset({url!r}, ("txt", "png", "cls", "npy"),
                                          T.Compose([T.RandomCrop(16), T.ToTensor()]))
        want = list(stoker.DataLoader(data, output="numpy", **options))
        got = list(stoker.DataLoader(data, output="dlpack", device="cuda", **options))
        assert len(got) == len(want) == 6
        for ours, theirs in zip(got, want, strict=True):
            text, images, labels, arrays = ours
            assert images.__dlpack_device__() == labels.__dlpack_device__() == (2, 0)
            assert arrays.__dlpack_device__()[0] == 1 and text == theirs[0]
            assert (look(images) == theirs[1]).all() and (look(labels) == theirs[2]).all()
            assert (arrays == theirs[3]).all()
        print("good")
    """) == ["good"]


def test_target_transform_reads_no_label_from_the_device(run):
    pytest.importorskip("torchvision")
    assert run("""
        import torchvision
        from torchvision.transforms import CenterCrop, Compose, ToTensor
        data = torchvision.datasets.ImageFolder(sys.argv[1], Compose([CenterCrop(24), ToTensor()]), target_transform=str)
        options = {**options, "output": "dlpack"}
        want = [list(labels) for _, labels in stoker.DataLoader(data, **options)]
        loader = stoker.DataLoader(data, device="cuda", **options)
        got = []
        for images, labels in loader:
            assert images.__dlpack_device__() == (2, 0)
            got.append(labels)
        assert loader._native is not None and got == want and len({word for each in got for word in each}) > 1
        print("good")
    """, torch=True) == ["good"]


def test_arrays_of_one_size_need_no_resize(run, tmp_path):
    rng = np.random.default_rng(1)
    np.save(tmp_path / "small.npy", rng.integers(0, 256, (11, 20, 24, 3), np.uint8))
    np.save(tmp_path / "large.npy", rng.integers(0, 256, (5, 30, 24, 3), np.uint8))
    assert run(f"""
        flips = T.Compose([T.RandomHorizontalFlip(), T.ToTensor()])
        small, large = (stoker.datasets.Npy(f"{tmp_path}/{{name}}.npy", transform=flips) for name in ("small", "large"))
        want = [i.copy() for i, in stoker.DataLoader(small, output="numpy", **options)]
        loader = stoker.DataLoader(small, output="dlpack", device="cuda", **options)
        got = [look(i) for i, in loader]
        assert all((a == b).all() for a, b in zip(got, want, strict=True)) and len(got) == 3
        both = stoker.datasets.Concat([small, large], transform=flips)
        images, = next(iter(stoker.DataLoader(both, 16, output="numpy", seed=1, shuffle=True)))
        assert isinstance(images, list) and len(set(image.shape for image in images)) == 2
        for other in (T.Resize(16), T.Pad(2), T.RandomApply([T.CenterCrop(10)])):
            data = stoker.datasets.Npy(f"{tmp_path}/small.npy", transform=T.Compose([other, T.ToTensor()]))
            images, = next(iter(stoker.DataLoader(data, 8, output="numpy", seed=1)))
            assert len(images) == 8
        try:
            stoker.DataLoader(both, device="cuda", output="dlpack")
            print("taken")
        except ValueError as error:
            assert "size" in str(error)
        print("done")
    """) == ["done"]
