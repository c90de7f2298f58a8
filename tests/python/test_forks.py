# SPDX-License-Identifier: Apache-2.0
"""Forks while other threads hold the package's locks, or are in the middle of what these guard."""

from __future__ import annotations

import ast
import os
import pathlib
import signal
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import pytest
import stoker
import torch
import torch.utils.data as tud
from PIL import Image
from stoker._base import locks
from stoker._lazy import compose
from stoker._lazy import switch as lazy
from stoker._loader import frameworks
from stoker._workers import pool, process
from torchvision import transforms as V


def in_child(work):
    """What `work` returns in a forked child, or its exception, as text. A child that hangs is killed by SIGALRM."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(300)
            out = repr(work())
        except BaseException as error:
            out = f"{type(error).__name__}: {error}"
        os.write(write, out.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        out = file.read()
    assert os.waitpid(child, 0)[1] == 0, "the child hangs"
    return out


class Paused:
    """A thread that runs `work`, and pauses where `here()` is called in it."""

    def __init__(self, work):
        self._arrived, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=work, args=(self.here,))

    def here(self):
        self._arrived.set()
        assert self._go.wait(600)

    def __enter__(self):
        self._thread.start()
        assert self._arrived.wait(600)

    def __exit__(self, *args):
        self._go.set()
        self._thread.join()


def modules():
    return sorted(pathlib.Path(stoker.__file__).parent.rglob("*.py"))


def test_every_lock_of_a_module_is_one_that_children_can_use():
    """A plain lock at the level of a module, or of a class, would stay locked in a child."""
    kinds = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier", "ThreadPoolExecutor"}
    kinds |= {"Queue", "SimpleQueue", "Pool", "ThreadPool", "allocate_lock"}
    found, allowed = [], []
    for path in modules():
        tree = ast.parse(path.read_text())
        ours = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "_base.locks"]
        inside = {id(n) for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.Lambda)) for n in ast.walk(f)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and id(node) not in inside:
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in kinds:
                    (allowed if ours and isinstance(node.func, ast.Name) else found).append(f"{path.name}:{node.lineno}")
    assert found == []
    assert sorted(place.split(":")[0] for place in allowed) == ["batch_tensor.py", "frameworks.py", "switch.py"]


LOCKS = {"lazy": lazy._lock, "frameworks": frameworks._lock}


def use(name):
    if name == "lazy":
        with stoker.lazy_images():
            return Image.open.__globals__["__name__"]
    with LOCKS[name].held():
        return "held"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_another_thread_holds_is_free_in_a_child(name):
    def hold(here):
        with LOCKS[name].held():
            here()

    wanted = use(name)
    with Paused(hold):
        for _ in range(3):
            assert in_child(lambda: use(name)) == repr(wanted)
            assert in_child(lambda: in_child(lambda: use(name))) == repr(repr(wanted))  # in a child's child, too
    assert use(name) == wanted


def test_a_thread_that_forks_keeps_its_lock():
    lock = locks.Lock(lambda: pytest.fail("repaired what is in use"))

    def work():
        with lock.held():
            pass
        return "done"

    with lock.held():
        assert in_child(work) == "'done'"
    assert in_child(lambda: locks.Lock().held().__enter__()) == "None"


def is_patched(module=V.transforms):
    return Image.open.__globals__["__name__"], [
        kind.__name__ for kind in (module.Compose, module.PILToTensor, module.ToTensor) if is_ours(kind)
    ]


def is_ours(kind):
    return (kind.forward if hasattr(kind, "forward") else kind.__call__).__globals__["__name__"] == "stoker._lazy.compose"


def contexts():
    return lazy._contexts, sorted(lazy._undo), is_patched()


def lazy_is_consistent():
    """Lazy images can be turned on and off, and nothing is left of them."""
    assert contexts() == (0, [], ("PIL.Image", [])), contexts()
    with stoker.lazy_images():
        lazy.look()
        assert is_patched() == ("stoker._lazy.files", ["Compose", "PILToTensor", "ToTensor"]), contexts()
    assert contexts() == (0, [], ("PIL.Image", [])), contexts()
    return "consistent"


def test_a_fork_in_the_middle_of_patching_or_unpatching_leaves_a_child_consistent():
    """At every line that a thread executes in the modules that patch."""
    lazy_is_consistent()
    files = {lazy.__file__, compose.__file__}
    said, lines = set(), []

    def stop_at(number):
        def work(here):
            count = 0

            def trace(frame, event, argument):
                nonlocal count
                if frame.f_code.co_filename not in files:
                    return None
                if event == "line":
                    count += 1
                    if count == number:
                        lines.append((frame.f_code.co_name, frame.f_lineno))
                        here()
                return trace

            sys.settrace(trace)
            try:
                with stoker.lazy_images():
                    lazy.look()
            finally:
                sys.settrace(None)
                if count < number:
                    here()

        return work

    number, step = 1, 1
    while True:
        before = len(lines)
        with Paused(stop_at(number)):
            said.add(in_child(lazy_is_consistent))
        if len(lines) == before:
            break
        number += step
        step = 1 + number // 25  # all lines of the beginning, and many of the others
    assert said == {"'consistent'"} and len({name for name, _ in lines}) > 5
    lazy_is_consistent()


def test_contexts_of_other_threads_are_not_a_childs():
    def hold(here):
        with stoker.lazy_images():
            lazy.look()
            here()

    with Paused(hold):
        assert in_child(lazy_is_consistent) == "'consistent'"
        with stoker.lazy_images():
            # The thread that forks keeps its own.
            assert in_child(lambda: (lazy._contexts, Image.open.__globals__["__name__"])) == "(1, 'stoker._lazy.files')"
    lazy_is_consistent()


def test_imports_are_not_made_under_the_lock(monkeypatch):
    """A thread that holds an import's lock may open an image, and then waits for the other one."""
    held = []
    import_module = lazy.importlib.import_module
    monkeypatch.setattr(
        lazy.importlib, "import_module", lambda *a: (held.append(lazy._lock._holder), import_module(*a))[1]
    )
    with stoker.lazy_images():
        lazy.look()
    assert len(held) >= 2 and set(held) == {None}


def test_a_name_that_a_thread_has_replaced_is_restored_in_a_child():
    module = types.ModuleType("accelerate.data_loader")
    module.DataLoader = tud.DataLoader
    loader = stoker.DataLoader([1, 2, 3])

    def prepare(here):
        def prepare_data_loader(dataloader):
            here()
            return dataloader

        frameworks._hooked(module, prepare_data_loader)(loader)

    with Paused(prepare):
        assert module.DataLoader is not tud.DataLoader
        assert in_child(lambda: module.DataLoader is tud.DataLoader) == "True"
    assert module.DataLoader is tud.DataLoader


class Opened(tud.Dataset):
    def __init__(self, root):
        self.paths = [path for path, _ in stoker.datasets.ImageFolder(root).samples]
        self.transform = V.Compose([V.Resize(8), V.CenterCrop(8), V.ToTensor()])

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB"))


def test_workers_are_forked_while_other_threads_turn_lazy_images_on_and_off(tree):
    """Each of these hung after about fifty forks."""
    stop = threading.Event()

    def hammer():
        while not stop.is_set():
            with stoker.lazy_images():
                lazy.look()

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(hammer) for _ in range(3)]
        try:
            for _ in range(20):
                loader = stoker.DataLoader(Opened(tree), 2, num_workers=2, timeout=300)
                assert len(list(loader)) == 2
                assert in_child(lambda: use("lazy")) == "'stoker._lazy.files'"
        finally:
            stop.set()
        for one in running:
            one.result()
    lazy_is_consistent()


def stuck_workers(monkeypatch, epoch):
    """How many workers of an epoch were replaced because they could not be seeded, while another thread draws."""
    replaced = []
    replace = pool.Pool.replace
    monkeypatch.setattr(pool.Pool, "replace", lambda self, number, start: [replaced.append(number), replace(self, number, start)])
    monkeypatch.setattr(process, "_SEEDING_MOST", 0.5)
    stop = threading.Event()

    def draw():
        numbers = torch.empty(20_000_000)
        while not stop.is_set() and not replaced:
            numbers.normal_()  # torch's generator stays locked meanwhile, and the GIL is free

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for _ in range(20):  # in case that no fork happened during a draw
            epoch()
            if replaced:
                break
    finally:
        stop.set()
        thread.join()
    return len(replaced)


@pytest.mark.parametrize("iterable", [False, True])
def test_workers_that_inherit_a_locked_generator_are_replaced(monkeypatch, iterable):
    class Numbers(tud.IterableDataset if iterable else tud.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return index, torch.rand(())

        def __iter__(self):
            mine = range(tud.get_worker_info().id, 8, 2)
            return ((n, torch.rand(())) for n in mine)

    def epoch():
        generator = torch.Generator().manual_seed(5)  # the loader itself does not wait for torch's
        return [[t.tolist() for t in b] for b in stoker.DataLoader(Numbers(), 2, num_workers=2, generator=generator)]

    expected = epoch()

    def compared():
        assert epoch() == expected

    assert stuck_workers(monkeypatch, compared)


def test_a_handler_of_alarms_is_kept_in_workers():
    class Handler(tud.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return signal.getsignal(signal.SIGALRM) is handler, signal.getitimer(signal.ITIMER_REAL)[0]

    def handler(number, frame):
        pass

    before = signal.signal(signal.SIGALRM, handler)
    try:
        assert list(stoker.DataLoader(Handler(), num_workers=1, collate_fn=lambda batch: batch[0])) == [(True, 0.0)]
    finally:
        signal.signal(signal.SIGALRM, before)
