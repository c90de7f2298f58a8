# SPDX-License-Identifier: Apache-2.0
"""Slots of datasets written in Python, pinned for GPUs: none is used again while a stream may still copy from it. The
GPUs are made up: torch's part is played by counters."""

from __future__ import annotations

import os
import pickle
import sys
import threading

import numpy as np
import pytest
import torch
from stoker import _ext
from stoker._engine import gpu_copies
from stoker._workers.parcel import Room, pack, unpack

SLOTS = 8


class Stream:
    """A queue of copies: some were put into it, and the first `done` of them are through."""

    def __init__(self, device, number):
        self.device, self.cuda_stream = device, number
        self.put = self.done = 0

    def copy(self):
        self.put += 1

    def finish(self):
        self.done = self.put


class Event:
    """As strict as torch's: it belongs to the device in which it was recorded first."""

    made = 0

    def __init__(self):
        Event.made += 1
        self.stream = None

    def record(self, stream):
        if self.stream is not None and self.stream.device != stream.device:
            raise RuntimeError(f"event device {self.stream.device} is not the stream's {stream.device}")
        self.stream, self.point = stream, stream.put

    def query(self):
        return self.stream.done >= self.point

    def synchronize(self):
        self.stream.done = max(self.stream.done, self.point)


class GPUs:
    def __init__(self, count):
        self.default = [Stream(device, 0) for device in range(count)]
        self.used = list(range(count))
        self.capturing = False
        self._here = threading.local()

    def current(self, device=0):
        return getattr(self._here, "streams", {}).get(device, self.default[device])

    def use(self, *streams):
        """What `with torch.cuda.stream(...)` does, in this thread."""
        self._here.streams = {stream.device: stream for stream in streams}


@pytest.fixture()
def gpus(monkeypatch):
    made = GPUs(2)
    monkeypatch.setattr(gpu_copies, "_events", gpu_copies._Events())
    monkeypatch.setattr(Event, "made", 0)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(made.default))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "current_stream", made.current)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: made.capturing)
    monkeypatch.setattr(torch._C, "_cuda_hasPrimaryContext", made.used.__contains__)
    return made


class Pair:
    """An exchange and its slots, with the worker's part played here."""

    def __init__(self):
        self.exchange = _ext.Exchange(1, SLOTS)
        self.slots = gpu_copies.PinnedSlots(self.exchange)

    def batch(self, value):
        slot = self.exchange.free()
        assert slot >= 0
        self.exchange.send(0, slot, 0, 0, pickle.dumps(None))
        assert self.exchange.take(0, 1.0)[0] == slot
        self.exchange.post(slot, 0, *pack(Room(self.exchange, slot), value))
        _, _, offset, length, lease = self.exchange.collect(slot)
        return slot, unpack(lease, offset, length)

    def is_free(self, slot):
        self.slots.free_finished()
        return self.exchange.free() == slot


def three():
    return torch.ones(1000), torch.arange(4), np.ones(4000)


def test_a_copy_in_a_side_stream_is_waited_for_though_another_tensor_goes_later(gpus):
    pair, side = Pair(), Stream(0, 7)
    slot, (images, labels, array) = pair.batch(three())
    gpus.use(side)
    side.copy()
    del images
    gpus.use()
    del labels
    assert pair.exchange.lent() == 1
    gpus.default[0].copy()
    gpus.default[0].finish()
    del array
    assert not pair.is_free(slot)
    side.finish()
    assert pair.is_free(slot)


@pytest.mark.parametrize("late", [0, 1, 2])
@pytest.mark.parametrize("device", [0, 1])
def test_every_stream_in_which_a_tensor_goes_is_waited_for(gpus, late, device):
    pair, streams = Pair(), [Stream(device, 7 + k) for k in range(3)]
    slot, tensors = pair.batch(three())
    tensors = list(tensors)
    for stream in streams:
        gpus.use(stream)
        stream.copy()
        tensors.pop()
    for number, stream in enumerate(streams):
        if number != late:
            stream.finish()
    assert not pair.is_free(slot)
    streams[late].finish()
    assert pair.is_free(slot)


def test_views_of_a_tensor_keep_it(gpus):
    pair, side = Pair(), Stream(0, 7)
    slot, (images, labels, array) = pair.batch(three())
    part, both = images[10:20], (array[:5], torch.from_numpy(array))
    del images, labels, array
    assert not pair.is_free(slot)
    del both
    gpus.use(side)
    side.copy()
    del part
    assert not pair.is_free(slot)
    side.finish()
    assert pair.is_free(slot)


def test_tensors_that_go_in_another_thread(gpus):
    pair, side = Pair(), Stream(1, 7)
    slot, tensors = pair.batch(three())
    tensors = list(tensors)

    def drop():
        gpus.use(side)
        side.copy()
        tensors.pop(0)

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    tensors.clear()
    assert not pair.is_free(slot)
    side.finish()
    assert pair.is_free(slot)


def test_the_default_stream_of_a_gpu_that_is_not_current(gpus):
    """batch.to("cuda:1", non_blocking=True) while the current GPU is number 0."""
    pair = Pair()
    slot, tensors = pair.batch(three())
    gpus.default[1].copy()
    del tensors
    assert not pair.is_free(slot)
    gpus.default[1].finish()
    assert pair.is_free(slot)


@pytest.fixture()
def ignored(monkeypatch):
    """What was raised where nobody can catch it."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: found.append(what.exc_type))
    return found


def test_events_stay_with_their_gpu(gpus, ignored):
    """Two GPUs take turns: no slot is lost, and a few events are enough."""
    pair = Pair()
    side = [Stream(0, 7), Stream(1, 8)]
    for turn in range(10 * SLOTS):
        gpus.used[:] = [[0], [1], [0, 1]][turn % 3]
        stream = side[turn % 2]
        gpus.use(*(s for s in side if s.device in gpus.used))
        slot, tensors = pair.batch(three())
        stream.copy()
        del tensors
        stream.finish()
        pair.slots.free_finished()
    assert pair.exchange.lent() == 0
    assert Event.made <= 8
    assert ignored == []


def test_a_slot_that_is_late_holds_up_no_other(gpus):
    pair, slow = Pair(), Stream(0, 7)
    gpus.use(slow)
    late, tensors = pair.batch(three())
    slow.copy()
    del tensors
    gpus.use()
    for _ in range(3 * SLOTS):
        slot, tensors = pair.batch(three())
        assert slot != late
        del tensors
        pair.slots.free_finished()
    taken = [pair.batch(three()) for _ in range(SLOTS - 1)]
    assert pair.exchange.free() < 0
    pair.slots.free_finished(wait=True)
    assert pair.exchange.free() == late and slow.done == slow.put and len(taken) == SLOTS - 1


def test_a_stream_that_is_captured_is_not_marked(gpus):
    pair = Pair()
    slot, tensors = pair.batch(three())
    gpus.capturing = True
    gpus.default[0].copy()
    gpus.default[1].copy()
    del tensors
    assert not pair.is_free(slot)
    gpus.default[1].finish()
    assert pair.is_free(slot)


def test_a_slot_whose_reader_is_unknown_is_never_used_again(gpus, monkeypatch, ignored):
    pair = Pair()
    slot, (images, *rest) = pair.batch(three())
    with monkeypatch.context() as broken:
        broken.setattr(Event, "record", lambda *_: 1 / 0)
        del images
    rest.clear()
    assert ignored == [ZeroDivisionError]
    assert not pair.is_free(slot) and pair.exchange.lent() == 1


def test_a_batch_without_tensors_is_free_at_once(gpus):
    pair = Pair()
    slot, (text,) = pair.batch(("text",))
    assert text == "text" and pair.is_free(slot) and Event.made == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_marks_nothing(gpus):
    pair = Pair()
    slot, tensors = pair.batch(three())
    child = os.fork()
    if child == 0:
        del tensors
        os._exit(Event.made)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    del tensors
    assert not pair.is_free(slot)  # the child might still read it


def test_every_copy_is_waited_for_before_the_memory_goes(gpus, monkeypatch):
    class Runtime:
        forgotten = 0

        def cudaHostUnregister(self, address):
            Runtime.forgotten += side.done == side.put

    monkeypatch.setattr(torch.cuda, "cudart", Runtime)
    pair, side = Pair(), Stream(1, 7)
    slot, tensors = pair.batch(three())
    pair.slots._registered[pair.exchange.address(slot)] = 1
    gpus.use(side)
    side.copy()
    del tensors, pair
    assert side.done == side.put == Runtime.forgotten == 1


def test_arrays_and_tensors_that_share_memory_still_do(gpus):
    pair = Pair()
    whole = torch.arange(100)
    _, (first, second) = pair.batch((whole, whole[50:]))
    first[50] = 7
    assert second[0] == 7
