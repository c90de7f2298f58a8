# SPDX-License-Identifier: Apache-2.0
"""The part of a DataLoader that the engine does: epochs, engines, batches and their positions."""

from __future__ import annotations

import atexit
import functools
import os
import random
import sys
import weakref
from collections.abc import Callable
from typing import Any

from .. import _ext
from .._base.tensors import (
    current_stream,
    current_streams,
    default_seed,
    has_cuda,
    stream_asker,
    take_capsule,
    to_numpy,
    to_torch,
)
from .._base.warn import warn_user
from .._data.fields import INT, in_order, single, worked_on
from .._data.rescue import Rescue, rescue_for
from .._order import samplers
from .._order.place import Place
from .._order.ranks import Share
from .._plan.compile import Compiled
from .._steps.mix import mix
from . import gpu_queues
from .apart import columns_of
from .device_batches import DeviceBatches
from .epochs import EpochIterator
from .labels import labels_of, transformed
from .stats import Stats, engine_stats
from .views import in_views

_CONVERT: dict[str, Callable[[_ext.Tensor], Any]] = {
    "torch": to_torch,
    "numpy": to_numpy,
    "dlpack": lambda tensor: tensor,
}
_live: weakref.WeakSet[_ext.Loader] = weakref.WeakSet()
_NOT_PAIRS = "batches are not just a tensor of images and one of labels"
_LEDGER = 1024  # bad samples that are listed
_Key = tuple[int, int, int, int, str | None]  # process, seed, batch size, version of the dataset, device of its batches


@atexit.register
def _close_all() -> None:
    """Stop all threads before the interpreter ends."""
    for engine in list(_live):
        engine.close()


class Native:
    """The engine's part of a loader. Samplers are those of the arguments; None leaves the order to the engine."""

    def __init__(
        self,
        compiled: Compiled,
        *,
        batch_size: int | None,
        shuffle: bool,
        sampler: Any,
        batch_sampler: Any,
        order: str,
        seed: int | None,
        generator: Any,
        share: Share,
        sampler_epoch: Callable[[], int | None],
        output: str,
        device: str | None,
        pinned: bool,
        stacks: bool,
        own_limit: bool,
        batch_transforms: Any,
        keep_threads: bool,
        keeps_seed: bool,
        ahead: int,
        no_device_batches: str,
        options: dict[str, Any],
    ) -> None:
        self.compiled = compiled
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.order = order
        self.seed = seed
        self.generator = generator
        self.base_generator = generator  # draws the base seed that torch draws for each iterator
        self.rank = share.rank
        self.world_size = share.world_size
        self._share = share
        self._sampler_epoch = sampler_epoch
        self._sampler_epoch_seen: int | None = None  # when the latest epoch began, or a state was loaded
        self.output = output
        self.device = device
        self._pinned = pinned
        self._stacks = stacks  # images of different shapes are an error
        self._batch_transforms = batch_transforms
        self._keep_threads = keep_threads
        self.keeps_seed = keeps_seed  # persistent workers draw their base seed once
        self.ahead = ahead  # batches that an iterator of torch draws when it is made
        why_not = no_device_batches or ("" if self._gives_pairs() else _NOT_PAIRS)
        self.device_batches = DeviceBatches(why_not, options["prefetch"], options["layout"])
        self._options = {**options, "order": samplers.engine_kind(self), "stream_of": self._stream_of()}
        self._pipeline = _ext.Pipeline(compiled.text)
        self._own_limit = own_limit
        self.rescue = self._new_rescue()
        self.epoch = 0  # the epoch of the next iterator
        self._chosen_seed: int | None = None
        self._fallback_seed = random.SystemRandom().getrandbits(63)
        self._pending: Place | None = None  # a loaded state that no iterator has used yet
        self.left: Place | None = None  # the position at which the latest iterator was dropped
        self._current: Callable[[], EpochIterator | None] = lambda: None  # a weak reference to the latest iterator
        self.iterators = 0  # how many were made so far
        self._warned = False
        self._idle: list[tuple[Any, _ext.Loader]] = []
        self._version = 0  # counts changes of the dataset and its transforms: older engines cannot be reused
        self._history: dict[str, Any] = {"stats": None, "ledger": []}
        self._moved: dict[str, Any] = {"stats": {}, "ledger": []}  # of engines that others took over from in an epoch
        # Open an engine now, so that errors are raised here and the first batch arrives sooner.
        self._idle.append(self._open_engine(self._key(batch_size or 1)))
        if device is not None and output == "torch":
            self._begin_torch()
        self.take = take_capsule() if self._gives_pairs() else None

    def _new_rescue(self) -> Rescue | None:
        return rescue_for(
            self.compiled.handle, exif_rotate=self._options["exif_rotate"], own_limit=self._own_limit
        )

    def _begin_torch(self) -> None:
        """Initialize torch's CUDA, which importing tensors by DLPack does not do."""
        if not has_cuda():
            raise RuntimeError(
                f"device={self.device!r}: there is a GPU, but this torch cannot use it. Install torch with CUDA, or use "
                "output='dlpack' with another library"
            )
        sys.modules["torch"].cuda.init()

    def _gives_pairs(self) -> bool:
        """Return whether batches are images and labels as torch tensors and nothing else."""
        kinds = [kind for _, kind in self.compiled.handle.fields]
        return (
            self.output == "torch"
            and kinds == [worked_on(self.compiled.text), INT]
            and self.compiled.target_transform is None
            and not self._batch_transforms
            and not self._single_samples()
            and not self.compiled.is_apart
            and self.compiled.views == 1
        )

    def _single_samples(self) -> bool:
        return self.batch_size is None and self.batch_sampler is None

    def _stream_of(self) -> Callable[[], int | tuple[int, ...]] | None:
        """Return what the engine calls, when a tensor of a batch is gone, to get the streams that may still be reading
        it."""
        if self.device is None:
            return current_streams if self._pinned else None
        index = int(self.device.partition(":")[2] or 0)
        if self.output == "torch":
            return stream_asker(index)
        return functools.partial(current_stream, index)

    # ---- epochs ----

    def set_epoch(self, epoch: int) -> None:
        self.epoch = int(epoch)
        self.left = None
        if self._pending is not None and self._pending.epoch != epoch:
            self._pending = None

    def _follow_sampler(self) -> None:
        """Use the epoch that was set with the sampler's set_epoch, as if it had been set with the loader's. Otherwise
        epochs count up."""
        epoch = self._sampler_epoch()
        if epoch is not None and epoch != self._sampler_epoch_seen:
            self.set_epoch(epoch)
        self._sampler_epoch_seen = epoch

    def samples(self) -> int:
        return len(self.compiled.handle)

    def iterate(self) -> EpochIterator:
        self.iterators += 1
        iterator = EpochIterator(self, self.iterators)
        self._current = weakref.ref(iterator)
        return iterator

    def new_draws(self, again: bool) -> samplers.Draws:
        """Return the draws of a new iterator, for which was drawn what torch draws at this moment."""
        draws = samplers.Draws(self, self.keeps_seed and again)
        if self.ahead:
            draws.draw_early(self._pending)
        return draws

    def use(self, compiled: Compiled) -> None:
        """Use another dataset or other transforms from the next epoch on."""
        if compiled is self.compiled:
            return
        if compiled.handle is not self.compiled.handle or compiled.text != self.compiled.text:
            self._pipeline = _ext.Pipeline(compiled.text)
            self._version += 1
            self.close()
        self.compiled = compiled
        self.rescue = self._new_rescue()
        self.take = take_capsule() if self._gives_pairs() else None
        if self.take is None:
            self.device_batches.stop(_NOT_PAIRS)

    def succeed(self, other: Native) -> None:
        """Take over from another Native of the same loader that was opened with other options."""
        self.epoch, self.left, self._pending = other.epoch, other.left, other._pending
        self._sampler_epoch_seen = other._sampler_epoch_seen
        self._chosen_seed, self._fallback_seed = other._chosen_seed, other._fallback_seed
        self.iterators, self._current = other.iterators, other._current
        self._history, self._moved = other._history, other._moved
        other.close()

    def is_pending(self) -> bool:
        """Return whether a state was loaded that no iterator has used yet."""
        return self._pending is not None

    def close(self) -> None:
        """Stop the threads that wait for another epoch."""
        while self._idle:
            self._idle.pop()[1].close()

    def length(self) -> int:
        """Return the number of batches in an epoch."""
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        count = self.samples() if self.sampler is None else len(self.sampler)
        count = count // self.world_size if self._share.whole else -(-count // self.world_size)
        if self.batch_size is None:
            return count
        whole = self._options["drop_last"]
        return count // self.batch_size if whole else -(-count // self.batch_size)

    def begin(self, draws: samplers.Draws) -> tuple[Any, _ext.Loader, Place, samplers.Given]:
        """Return the key of an engine, the engine, which has started the next epoch or the next part of one, its
        position, and the order it was given."""
        pending = None
        if not draws.begun:
            self._follow_sampler()
            pending, self._pending = self._pending, None
            self._chosen_seed = self.seed_now() if pending is None else pending.seed
            draws.epoch = self.epoch if pending is None else pending.epoch
        given = draws.next(pending)
        key, engine = self._engine_for(given.largest)
        try:
            if pending is not None and pending.cursor is not None and not given.anew:
                engine.restore(pending.cursor, **given.start_arguments())
            else:
                engine.start(draws.epoch, **given.start_arguments())
        except BaseException:
            self.give_back(key, engine)
            raise
        self.epoch = draws.epoch + 1
        self.left = None
        return key, engine, Place(draws.epoch, key[1], None, given.origin, given.more), given

    # ---- engines: one for each iterator, reused by the next one when idle ----

    def _key(self, batch_size: int) -> _Key:
        return os.getpid(), self.seed_now(), batch_size, self._version, self.device_batches.place

    def seed_now(self) -> int:
        """Return the seed. Until the first epoch has begun, torch.manual_seed may still change it."""
        if self._chosen_seed is not None:
            return self._chosen_seed
        if self.seed is not None:
            return self.seed
        if self.world_size > 1:
            return 0  # as in DistributedSampler: all ranks must use the same one
        if self.generator is not None:
            return int(self.generator.initial_seed()) % 2**64
        return default_seed(self._fallback_seed)

    def _open_engine(self, key: _Key) -> tuple[Any, _ext.Loader]:
        engine = _ext.Loader(
            self.compiled.handle,
            self._pipeline,
            seed=key[1],
            batch_size=key[2],
            rescue=self.rescue,
            **(self._options if key[4] is None else self._options_on(key[4])),
        )
        _live.add(engine)
        return key, engine

    def _engine_for(self, batch_size: int) -> tuple[_Key, _ext.Loader]:
        key = self._key(batch_size)
        try:
            return key, self._take_engine(key)
        except _ext.StokerError as error:
            if key[4] is None:
                raise
            self.device_batches.refused_by_engine(error)
            return self._engine_for(batch_size)

    def _options_on(self, device: str) -> dict[str, Any]:
        """Return the options with which the engine makes the same batches on a GPU."""
        index = int(device.partition(":")[2])
        layout = "nhwc" if self.device_batches.is_channels_last else self._options["layout"]
        there = {"device": device, "layout": layout, "pin_memory": False, "stream_of": stream_asker(index)}
        return {**self._options, **there}

    def move(self, key: _Key, engine: _ext.Loader, given: samplers.Given) -> tuple[_Key, _ext.Loader] | None:
        """Return the key of an engine, and the engine, which continues an epoch where batches are to be made now. None: it
        cannot be opened, so they stay in memory."""
        wanted = (*key[:4], self.device_batches.place)
        try:
            new = self._open_engine(wanted)[1]
            new.restore(engine.save(), **given.start_arguments())
        except _ext.StokerError as error:
            if wanted[4] is None:
                raise
            self.device_batches.refused_by_engine(error)
            return None
        self._moved = {"stats": self._with_moved(engine.stats()), "ledger": self._moved["ledger"] + engine.ledger()}
        engine.close()
        return wanted, new

    def _with_moved(self, raw: dict[str, Any]) -> dict[str, Any]:
        counts = ("batches", "samples", "bytes", "bad", "wait_ns")
        return {**raw, **{name: raw[name] + self._moved["stats"].get(name, 0) for name in counts}}

    def _take_engine(self, key: _Key) -> _ext.Loader:
        while self._idle:
            found, engine = self._idle.pop()
            if found == key:
                return engine
            engine.close()
        return self._open_engine(key)[1]

    def give_back(self, key: Any, engine: _ext.Loader) -> None:
        if engine.closed or key[0] != os.getpid():
            return
        self._history = {"stats": engine.stats(), "ledger": engine.ledger()}
        if self._keep_threads and not self._idle and key[3] == self._version:
            self._idle.append((key, engine))
        else:
            engine.close()

    def engine(self) -> _ext.Loader | None:
        """Return the engine that statistics are about, if there is one."""
        iterator = self._current()
        if iterator is not None and iterator._engine is not None:
            return iterator._engine
        return self._idle[-1][1] if self._idle else None

    def threads(self) -> int:
        engine = self.engine()
        return 0 if engine is None else engine.workers

    # ---- batches ----

    def warn_of_slow_copies(self, engine: _ext.Loader) -> None:
        """Warn once if pinned memory was requested but could not be allocated, and if decoding and training share too
        few of the GPU's queues."""
        if self._warned or self.device is None and not self._pinned:
            return
        stats = engine.stats()
        decodes = stats["jpeg_hardware_open"] and self.device is not None
        pageable, queues = stats["pinned_note"], gpu_queues.note() if decodes else None
        self._warned = bool(pageable or queues)
        if pageable:
            warn_user(f"batches are in pageable memory, so copies take longer: {pageable}")
        if queues:
            warn_user(queues)

    def deliver(self, batch: _ext.Batch, seed: int, compiled: Compiled) -> list[Any]:
        """Return a batch as the user gets it. `compiled` is what the epoch began with."""
        convert = _CONVERT[self.output]
        images = batch.images
        if isinstance(images, list):
            if self._stacks and len(images) > 1 and compiled.views == 1:
                sys.modules["torch"].stack([to_torch(image) for image in images])  # raises what torch's loader raises
            finished: Any = [convert(image) for image in images]
        else:
            finished = None if images is None else convert(images)
        if compiled.views > 1:
            labels = convert(batch.labels)
            return [in_views(finished, compiled.views), labels[: len(labels) // compiled.views]]
        if compiled.is_apart:
            return self._apart(batch, finished, compiled)
        labels = convert(batch.labels) if compiled.target_transform is None else self._target(batch, compiled)
        if self._batch_transforms:
            number = batch.index * self.world_size + self.rank
            finished, labels = mix(
                self._batch_transforms, finished, labels, seed, batch.epoch, number
            )
            labels = labels.pin_memory() if self._pinned else labels
        made = [finished] if batch.lengths is None else [finished, convert(batch.lengths)]
        fields = compiled.shaped(in_order(compiled.handle, batch, compiled.text, made, labels, self.output))
        return [single(field) for field in fields] if self._single_samples() else fields

    def _apart(self, batch: _ext.Batch, images: Any, compiled: Compiled) -> Any:
        """Return a batch that a collate_fn transposes, or one whose samples have a dict."""
        columns = columns_of(batch, compiled, images, blanks=self._options["on_error"] == "replace")
        if compiled.transposes is not None:
            return compiled.transposes(columns)
        return [single(column) for column in columns] if self._single_samples() else [images, list(columns[1])]

    def _target(self, batch: _ext.Batch, compiled: Compiled) -> Any:
        blanks = self._options["on_error"] == "replace"
        return transformed(
            labels_of(batch, compiled.handle, blanks=blanks),
            compiled.target_transform,
            blanks=blanks,
            device=self.device,
            pinned=self._pinned,
            output=self.output,
        )

    # ---- resume ----

    def place(self) -> Place:
        iterator = self._current()
        if self._pending is None and iterator is not None and iterator.is_under_way():
            return iterator.place_now()
        self._follow_sampler()
        if self._pending is not None:
            return self._pending
        if self.left is not None:
            return self.left
        return Place(self.epoch, self.seed_now(), None, None if iterator is None else iterator.origin())

    def resume(self, place: Place) -> None:
        if self.seed is not None and place.seed != self.seed:
            raise ValueError(
                f"the state was saved with seed={place.seed}, but this loader has seed={self.seed}: use the same seed"
            )
        self._pending = place
        self.epoch = place.epoch
        self._sampler_epoch_seen = self._sampler_epoch()

    # ---- reports ----

    def stats(self) -> Stats:
        engine = self.engine()
        raw = engine.stats() if engine is not None and not engine.closed else self._history["stats"]
        return engine_stats(self._with_moved(raw), self.device or self.device_batches.place)

    def ledger(self) -> list[dict[str, Any]]:
        engine = self.engine()
        found = engine.ledger() if engine is not None and not engine.closed else self._history["ledger"]
        return [*self._moved["ledger"], *found][-_LEDGER:]
