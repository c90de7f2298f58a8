# SPDX-License-Identifier: Apache-2.0
"""Loaders that are left half-way, nested, forked, interrupted, or alive when the interpreter ends."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path

import pytest
import stoker
import torch
from conftest import WITHOUT_TORCH, run_python
from stoker import _ext
from stoker import transforms as T


def make(tree, **options):
    options = {"batch_size": 4, "num_workers": 2, "seed": 1, **options}
    transform = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ToTensor()])
    return stoker.DataLoader(stoker.datasets.ImageFolder(tree, transform), shuffle=True, **options)


def threads():
    return len(os.listdir("/proc/self/task"))


def same(left, right):
    return len(left) == len(right) and all(
        torch.equal(a[0], b[0]) for a, b in zip(left, right, strict=True)
    )


def test_keeping_all_batches(tree):
    kept = list(make(tree))
    assert same(kept, [(images.clone(), labels) for images, labels in make(tree)])


def test_batches_outlive_the_loader(tree):
    loader = make(tree)
    batches = list(loader)
    copies = [(images.clone(), labels.clone()) for images, labels in batches]
    del loader
    gc.collect()
    again = list(make(tree))
    assert same(batches, copies) and same(batches, again)


def test_dropping_an_iterator_half_way(tree):
    loader = make(tree)
    first = list(loader)
    engine = loader._native._idle[0][1]
    for stop in range(6):
        for k, _ in enumerate(loader):
            if k == stop:
                break
    loader.set_epoch(0)
    assert same(list(loader), first)
    assert loader._native._idle[0][1] is engine  # the threads were used again


def test_nested_iteration_and_two_loaders(tree):
    loader = make(tree)
    expected = [list(make(tree)), None]
    second = make(tree)
    second.set_epoch(1)
    expected[1] = list(second)
    outer, inner = iter(loader), iter(loader)
    seen = [[], []]
    for a, b in zip(outer, inner, strict=True):
        seen[0].append(a)
        seen[1].append(b)
    assert same(seen[0], expected[0]) and same(seen[1], expected[1])
    for images, _ in make(tree):
        for again, _ in make(tree):
            assert again.shape[1:] == images.shape[1:]
            break


def test_threads_stay_between_epochs_and_go_with_the_loader(tree):
    gc.collect()
    before = threads()
    loader = make(tree)
    counts = set()
    for _ in range(3):
        list(loader)
        counts.add(threads())
    assert len(counts) == 1 and counts.pop() >= before + 2
    del loader
    gc.collect()
    assert threads() == before
    brief = make(tree, persistent_workers=False)
    list(brief)
    assert threads() == before and brief.stats()["samples"] == 23


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.full((4,), index)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("kind", ["engine", "sampler", "python", "workers"])
def test_a_loader_that_is_dropped_needs_no_garbage_collector(tree, kind, left):
    """Its threads, its workers and its memory, on a GPU too, go with the last reference."""
    if kind in ("engine", "sampler"):
        loader = make(tree, **({"order": "torch"} if kind == "sampler" else {}))
    else:
        loader = stoker.DataLoader(Numbers(), 4, num_workers=2 if kind == "workers" else 0)
    gc.collect()
    gc.disable()
    try:
        batches = iter(loader)
        next(batches)
        if not left:
            list(batches)
        held = [weakref.ref(loader), weakref.ref(batches)]
        if loader._native is not None:
            held.append(weakref.ref(loader._native))
        del loader, batches
        assert [reference() for reference in held] == [None] * len(held)
    finally:
        gc.enable()


def test_many_loaders_one_after_the_other(tree):
    gc.collect()
    before, files = threads(), len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        next(iter(make(tree)))
    gc.collect()
    assert threads() == before and len(os.listdir("/proc/self/fd")) == files


def test_iterators_in_several_threads(tree):
    loader = make(tree)
    expected = sorted(int(labels.sum()) for _, labels in make(tree, batch_size=23))
    results = []

    def work():
        results.append([int(sum(int(labels.sum()) for _, labels in loader))])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [expected] * 4


def test_the_interpreter_runs_while_next_waits(slow_image):
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(slow_image, T.ToTensor()), num_workers=1)
    beats = []
    done = threading.Event()

    def beat():
        while not done.wait(0.01):
            beats.append(time.monotonic())

    thread = threading.Thread(target=beat)
    thread.start()
    start = time.monotonic()
    next(iter(loader))
    waited = time.monotonic() - start
    done.set()
    thread.join()
    # 100 per second on an idle machine; none if next() kept the interpreter's lock
    assert len([b for b in beats if start <= b <= start + waited]) > 3


def test_one_loader_in_two_threads_at_once_is_refused(slow_image):
    engine = _ext.Loader(_ext.Dataset.open(slow_image), _ext.Pipeline("to_tensor"), workers=1)
    engine.start()
    refused = []

    def ask():
        try:
            engine.next()
        except RuntimeError as error:
            refused.append(str(error))

    both = [threading.Thread(target=ask) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert len(refused) == 1 and "another thread" in refused[0]


@pytest.mark.parametrize("how", ["interrupt", "close"])
def test_a_waiting_next_can_be_ended_from_another_thread(slow_image, how):
    engine = _ext.Loader(_ext.Dataset.open(slow_image), _ext.Pipeline("to_tensor"), workers=1)
    engine.start()
    timer = threading.Timer(0.05, getattr(engine, how))
    timer.start()
    start = time.monotonic()
    with pytest.raises(stoker.StokerError):
        engine.next()
    if how == "interrupt":
        waited = time.monotonic() - start
        assert engine.next() is not None
        assert waited < (time.monotonic() - start) / 2  # it was not ended by the batch
    else:
        assert engine.closed
    timer.join()


PREAMBLE = """
    import os, sys, time
    import stoker
    from stoker import transforms as T
    def make(root, **options):
        data = stoker.datasets.ImageFolder(root, T.Compose([T.RandomResizedCrop(24), T.ToTensor()]))
        return stoker.DataLoader(data, **{"batch_size": 4, "num_workers": 2, "shuffle": True, "seed": 1,
                                          "output": "numpy", **options})
    loader = make(sys.argv[1])
"""


def run(code, tree, before=WITHOUT_TORCH):
    result = run_python(before + textwrap.dedent(PREAMBLE) + textwrap.dedent(code), tree)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout.split()


def test_fork_after_use(tree):
    out = run(
        """
        import warnings

        warnings.filterwarnings("ignore", "This process", DeprecationWarning)  # Python 3.12: fork with threads
        first = [images.copy() for images, _ in loader]
        half = iter(loader)
        kept = next(half)
        for _ in range(2):
            child = os.fork()
            if child == 0:
                try:
                    next(half)
                    print("no error")
                except stoker.StokerError as err:
                    assert "process" in str(err), err
                assert kept[0].shape[0] == 4
                loader.set_epoch(0)
                again = [images.copy() for images, _ in loader]
                assert all((a == b).all() for a, b in zip(first, again, strict=True))
                del half, kept, loader
                print("child", flush=True)
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
        assert len(list(half)) == 5
        print("parent")
    """,
        tree,
    )
    assert out == ["child", "child", "parent"]


def test_multiprocessing_children_load(tree):
    out = run(
        """
        import multiprocessing
        def work(queue):
            queue.put(sum(len(labels) for _, labels in loader))
        list(loader)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        children = [context.Process(target=work, args=(queue,)) for _ in range(2)]
        for child in children: child.start()
        print(*(queue.get(timeout=300) for _ in children))
        for child in children: child.join()
        print(*(child.exitcode for child in children), "torch" in sys.modules)
    """,
        tree,
        before="",
    )
    assert out == ["23", "23", "0", "0", "True"]


@pytest.mark.parametrize(
    ("ending", "workers", "output"),
    [
        ("", 0, "numpy"),
        ("", 2, "numpy"),
        ("", 2, "torch"),
        ("sys.exit(0)", 2, "numpy"),
        ("os._exit(0)", 2, "numpy"),
        ("del stoker, T", 2, "numpy"),
    ],
)
def test_exit_with_a_live_loader(tree, ending, workers, output):
    out = run(
        f"""
        loader = make(sys.argv[1], num_workers={workers}, output={output!r})
        half = iter(loader)
        kept = [next(half), next(half)]
        memory = stoker.DataLoader(stoker.datasets.ImageBytes([open(path, "rb").read()
            for path, _ in loader.dataset.samples] * 20, transform=T.ToTensor()), num_workers={workers},
            output={output!r})
        other = iter(memory)
        next(other)
        print("alive", flush=True)
        {ending}
    """,
        tree,
        before="" if output == "torch" else WITHOUT_TORCH,
    )
    assert out == ["alive"]


@pytest.fixture()
def slow_batch(slow_image, tmp_path):
    """A folder of images that take a second or more each."""
    (tmp_path / "only").mkdir()
    for number in range(SLOW_BATCH):
        (tmp_path / "only" / f"{number}.jpg").symlink_to(slow_image / "only" / "0.jpg")
    return tmp_path


SLOW_BATCH = 60


def seconds_of_a_slow_image(slow_image):
    """CPU time, which does not depend on what else the machine does."""
    before = time.process_time()
    list(stoker.DataLoader(stoker.datasets.ImageFolder(slow_image, T.ToTensor()), num_workers=0))
    return time.process_time() - before


def test_exit_does_not_wait_for_the_batch(slow_image, slow_batch):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(
        f"""
        import threading
        half = iter(make(sys.argv[1], batch_size={SLOW_BATCH}, num_workers=1))
        threading.Thread(target=lambda: next(half), daemon=True).start()
        time.sleep(0.1)
    """,
        slow_batch,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < SLOW_BATCH / 2 * seconds_of_a_slow_image(slow_image)


def test_works_without_torch(tree):
    out = run(
        """
        loader = make(sys.argv[1], order="torch", seed=3, output=None)
        images, labels = next(iter(loader))
        print(type(images).__module__, images.shape[0], "torch" in sys.modules)
    """,
        tree,
    )
    assert out == ["numpy", "4", "False"]


INTERRUPTED = (
    PREAMBLE
    + """
    try:
        print("ready", flush=True)
        next(iter(make(sys.argv[1], batch_size=60, num_workers=1, shuffle=False)))
        print("finished")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    os._exit(0)
"""
)


def test_ctrl_c_while_next_waits(slow_image, slow_batch):
    """A batch of 60 images takes a minute or more."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_TORCH + textwrap.dedent(INTERRUPTED), str(slow_batch)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.15)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert process.wait(timeout=600) == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < SLOW_BATCH / 2 * seconds_of_a_slow_image(slow_image)
    process.stdout.close()


def test_a_signal_does_not_lose_the_batch(slow_image):
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(slow_image, T.ToTensor()), num_workers=1)
    heard = []
    previous = signal.signal(signal.SIGALRM, lambda *_: heard.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        _, labels = next(iter(loader))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert labels.tolist() == [0] and len(heard) >= 2


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_memory_stays_flat(even_tree):
    data = stoker.datasets.ImageFolder(even_tree, T.Compose([T.RandomResizedCrop(64), T.ToTensor()]))
    loader = stoker.DataLoader(data, 4, num_workers=1, seed=0)
    encoded = Path(data.samples[0][0]).read_bytes()
    indices = list(range(20))
    shuffled = stoker.DataLoader(data, 4, sampler=indices, num_workers=0)

    def work(times):
        for _ in range(times):
            assert len(list(loader)) == 5 == len(list(shuffled))
            stoker.decode(encoded, region=(1, 2, 30, 30))
            stoker.order_indices(5000, seed=1)
            loader.stats()
            loader.bad_samples()
            with pytest.raises(stoker.StokerError):
                stoker.decode(encoded[:100])
            with pytest.raises(TypeError):
                stoker.order_indices(5, colour=1)
            data[3]

    work(60)
    gc.collect()
    before = resident_bytes()
    work(240)
    gc.collect()
    assert resident_bytes() - before < 6e6  # every batch leaked would be 300 MB, every order 9 MB
