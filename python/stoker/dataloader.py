# SPDX-License-Identifier: Apache-2.0
"""stoker.DataLoader: torch's DataLoader, with the engine inside."""

from __future__ import annotations

import atexit
import functools
import os
import random
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import _ext
from . import order as _order
from ._checks import check_bytes, check_device, check_order, check_workers
from ._convert import (
    current_stream,
    default_seed,
    device_name,
    dtype_name,
    has_cuda,
    layout_name,
    stream_asker,
    take_capsule,
    to_numpy,
    to_torch,
    torch_if_installed,
)
from ._epoch import EpochIterator
from ._fields import INT, in_order, single, worked_on
from ._mix import compile_batches, mix
from .compile import compile_collate, compile_dataset
from .state import Place
from .stats import friendly

__all__ = ["DataLoader"]

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
_CONVERT: dict[str, Callable[[_ext.Tensor], Any]] = {
    "torch": to_torch,
    "numpy": to_numpy,
    "dlpack": lambda tensor: tensor,
}
_live: weakref.WeakSet[_ext.Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Threads end before the interpreter does."""
    for engine in list(_live):
        engine.close()


class DataLoader:
    """Batches of images and labels, as torch.utils.data.DataLoader gives them. Of data sets whose
    samples have other fields a batch is a list of these: images; tensors of whole numbers (int64) and of
    floats (float64); arrays stacked, or a list of them where their shapes differ; and lists of str,
    bytes, or what JSON says.

    Arguments that torch's has mean the same:

    dataset: one of stoker.datasets, a torchvision.datasets.ImageFolder with transforms that can be
        compiled, or a torch.utils.data.Subset of either.
    batch_size, shuffle, sampler, batch_sampler, drop_last: as in torch. batch_size=None gives single
        samples. A sampler is iterated when an epoch begins.
    num_workers: threads that decode. "auto" takes the CPUs this process may use (affinity and cgroup
        quota), all of them, divided by the ranks on this machine under torchrun (LOCAL_WORLD_SIZE); 0
        works in the calling thread, and is what "auto" takes for data so small that threads would not
        pay. There are no worker processes, so multiprocessing_context has no effect.
    timeout: seconds to wait for a batch; 0 waits for ever.
    generator: for order="torch" it draws the order, as in torch; otherwise its seed is the default seed.
    prefetch_factor: batches kept ready ahead, in all (2).
    persistent_workers: threads stay for the next epoch unless this is False.
    in_order: batches always come in order.
    pin_memory: batches are made in pinned memory where there is a GPU, so that
        .to("cuda", non_blocking=True) overlaps; drop them where the copying stream is the current one.
        With device= it has no effect.
    collate_fn, worker_init_fn: refused, with a sentence.

    What torch's has not:

    device: "cuda", "cuda:1" or a torch.device: batches arrive in that GPU's memory. Copies and kernels
        go in a stream of the loader's own, next() waits for none of them, and the stream that is
        torch's current one in next() goes on behind them: use the tensors in that stream as any others.
        Their memory is used again when all of them are gone, after the work which that stream, and the
        one that is current where the last of them goes, hold by then. A third stream waits for the
        first before it reads them, and the first for it before they go (Stream.wait_stream);
        record_stream has no effect. Of samples with several fields the image and the first whole number
        go to the GPU, and all others stay in the CPU's memory.
    augment_on: where images are resized, coloured and finished: "cpu", "cuda", or "auto", the device
        where it can. The bytes are the same.
    pinned_limit: bytes of pinned memory; beyond it batches lie in ordinary memory, after one warning.
    batch_transforms: MixUp, CutMix or RandomChoice of them (stoker.transforms, or torchvision's v2),
        one or a list, applied to each batch. What they draw follows from the seed, the epoch and the
        batch.
    dtype, memory_format: "uint8", "float32", "float16", "bfloat16"; "channels_last".
    seed: of the shuffling and of all chance in the transforms. By default torch.initial_seed() where
        torch is in use (so torch.manual_seed makes runs repeatable), 0 with world_size > 1, else random.
    order: how shuffle=True shuffles. "stoker" needs no array and starts at once; "torch" gives exactly
        torch's order: that of RandomSampler (by the same draws from torch's generator), or with a seed
        or world_size > 1 that of DistributedSampler.
    rank, world_size: this process gets its share, as with DistributedSampler.
    on_error: for a sample that cannot be read or decoded: "raise"; "skip" puts another sample in its
        place; "replace" gives zeros with the label -100. More than error_limit bad samples in an epoch
        end it all the same. bad_samples() lists them. A failure of the machine or the network (no
        connection, a server's 5xx, EIO, no more files) is none of these: it is tried again, and then
        stoker.TransientError ends the epoch; load_state_dict(state_dict()) resumes at that batch.
    fidelity: "exact", or "fast": JPEGs whose crop is at least twice the output are decoded at a half, a
        quarter or an eighth. On photographs that lies about 1 level of 255 from exact on the average.
        With device=, a GPU's JPEG engines decode part of each batch, and a run is then not repeatable bit
        for bit; stats()["device"] says how many files they decoded, or why they do not.
    pillow: 13 or 12, whose way of resizing to match.
    exif_rotate: turn images as their EXIF orientation says.
    ragged: images of different shapes come as a "list", or are padded ("pad").
    output: "torch" or "numpy"; by default torch's tensors if torch is installed. "dlpack" gives objects
        for the from_dlpack of any library, on CPU and GPU.
    max_memory: bytes that the loader may hold, in all: a number, or "256MiB". Where that is short, fewer
        workers decode at once and fewer batches are kept ready, and the batches are the same. Batches,
        also those you keep, may take a half of it. By default a quarter of what the cgroup allows (or the
        machine has available), divided by LOCAL_WORLD_SIZE. stats()["memory"] says what it came to.
    read_ahead, pixel_limit: bounds on samples being read, and on pixels of an image.

    >>> loader = stoker.DataLoader(stoker.datasets.ImageFolder("images", T.ToTensor()), batch_size=5)
    >>> len(loader)
    3
    >>> images, labels = next(iter(loader))
    >>> labels.tolist()
    [0, 0, 0, 0, 0]

    An epoch can be left and taken up again, in another process, with other numbers of threads and ranks:

    >>> loader = stoker.DataLoader(stoker.datasets.ImageFolder("images", T.ToTensor()), batch_size=5)
    >>> batches = iter(loader)
    >>> first = next(batches)
    >>> state = loader.state_dict()
    >>> other = stoker.DataLoader(stoker.datasets.ImageFolder("images", T.ToTensor()), batch_size=5)
    >>> other.load_state_dict(state)
    >>> [labels.tolist() for images, labels in other]
    [[0, 1, 1, 1, 1], [1, 1]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int | str = "auto",
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool | None = None,
        in_order: bool = True,
        pin_memory_device: str = "",
        dtype: Any = None,
        memory_format: Any = None,
        seed: int | None = None,
        order: str = "stoker",
        device: Any = None,
        augment_on: str = "auto",
        pinned_limit: int | None = None,
        batch_transforms: Any = None,
        on_error: str = "raise",
        error_limit: int | None = None,
        fidelity: str = "exact",
        pillow: int = 13,
        exif_rotate: bool = False,
        ragged: str = "list",
        output: str | None = None,
        read_ahead: int | None = None,
        max_memory: int | str | None = None,
        pixel_limit: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        check_order(batch_size, shuffle, sampler, batch_sampler, drop_last, order, rank, world_size)
        compile_collate(collate_fn)
        if worker_init_fn is not None:
            raise NotImplementedError(
                f"worker_init_fn={worker_init_fn!r} cannot be called: the workers are "
                "threads of the engine, without Python. Chance comes from seed="
            )
        if output not in (None, "torch", "numpy", "dlpack"):
            raise ValueError(f"output={output!r} is neither 'torch' nor 'numpy' nor 'dlpack'")
        if output is None or output == "torch":
            output = self._torch_output(output)

        self.dataset = dataset
        self.batch_size = None if batch_sampler is not None else batch_size
        self.shuffle = bool(shuffle)
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers != 0 else prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.order = order
        self.seed = seed
        self.rank = rank or 0
        self.world_size = world_size or 1
        self.output = output
        self.device = self._resolve(device_name(device))
        check_device(self.device, augment_on, output, batch_size, batch_transforms)
        self._compiled = compile_dataset(dataset)
        self._batch_transforms = compile_batches(batch_transforms, len(self._compiled.handle.classes))
        self._pinned = bool(pin_memory) and self.device is None and has_cuda()
        self._options: dict[str, Any] = {
            "workers": -1 if num_workers == "auto" else num_workers,
            "prefetch": max(1, self.prefetch_factor or 2),
            "read_ahead": read_ahead,
            "drop_last": drop_last,
            "rank": self.rank,
            "world": self.world_size,
            "order": _order.engine_kind(self),
            "dtype": dtype_name(dtype),
            "layout": layout_name(memory_format),
            "ragged": ragged,
            "on_error": on_error,
            "error_limit": error_limit,
            "fidelity": fidelity,
            "pillow": pillow,
            "exif_rotate": exif_rotate,
            "pixel_limit": pixel_limit,
            "max_memory": check_bytes("max_memory", max_memory),
            "device": self.device,
            "augment_on": augment_on,
            "pin_memory": self._pinned,
            "pinned_limit": pinned_limit,
            "stream_of": self._stream_of(),
            "timeout_ms": round(timeout * 1000),
        }
        self._pipeline = _ext.Pipeline(self._compiled.text)
        self._forget()
        # Opened at once, so that what cannot work is refused here and the first batch comes sooner.
        self._idle.append(self._open_engine(self._key(batch_size or 1)))
        if self.device is not None and self.output == "torch":
            self._begin_torch()
        self._take = take_capsule() if self._gives_pairs() else None
        self._initialized = True

    @staticmethod
    def _torch_output(output: str | None) -> str:
        if torch_if_installed() is not None:
            return "torch"
        if output == "torch":
            raise ModuleNotFoundError("output='torch' needs torch, which is not installed")
        return "numpy"

    def _begin_torch(self) -> None:
        """Tensors by DLPack do not make torch begin to use the GPU, as those of its own would."""
        if not has_cuda():
            raise RuntimeError(
                f"device={self.device!r}: there is a GPU, but this torch cannot use it. Install a torch with "
                "CUDA, or take output='dlpack' to another library"
            )
        sys.modules["torch"].cuda.init()

    def _gives_pairs(self) -> bool:
        """Whether batches are, as a rule, images and labels as torch's tensors and nothing else."""
        kinds = [kind for _, kind in self._compiled.handle.fields]
        single_samples = self.batch_size is None and self.batch_sampler is None
        return (
            self.output == "torch"
            and kinds == [worked_on(self._compiled.text), INT]
            and not self._batch_transforms
            and not single_samples
        )

    def _resolve(self, device: str | None) -> str | None:
        """torch's current GPU, where the number is left open."""
        torch: Any = sys.modules.get("torch")
        if device != "cuda" or torch is None or not torch.cuda.is_available():
            return device
        return f"cuda:{torch.cuda.current_device()}"

    def _stream_of(self) -> Callable[[], int] | None:
        """Whom the engine asks, when a batch is let go, for the stream that may still be reading it."""
        if self.device is None:
            return current_stream if self._pinned else None
        index = int(self.device.partition(":")[2] or 0)
        if self.output == "torch":
            return stream_asker(index)
        return functools.partial(current_stream, index)

    def _forget(self) -> None:
        """Everything that belongs to a run in this process."""
        self._epoch = 0  # of the next iterator
        self._chosen_seed: int | None = None
        self._fallback_seed = random.SystemRandom().getrandbits(63)
        self._pending: Place | None = None  # loaded, not begun
        self._left: Place | None = None  # where the latest iterator was dropped
        self._current: Callable[[], EpochIterator | None] = lambda: (
            None
        )  # weak reference to the latest iterator
        self._iterators = 0  # made so far
        self._warned_of_pageable = False
        self._idle: list[tuple[Any, _ext.Loader]] = []
        self._history: dict[str, Any] = {"stats": None, "ledger": []}

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__dict__.get("_initialized"):
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            "a DataLoader belongs to its process: pickle the data set and make a new one, and "
            "carry on with state_dict"
        )

    # ---- epochs ----

    def set_epoch(self, epoch: int) -> None:
        """The number of the next epoch, which decides its order and its chance. Without it epochs count
        up from 0. A sampler that has set_epoch is told as well."""
        if epoch < 0:
            raise ValueError(f"epoch={epoch} should be non-negative")
        self._epoch = int(epoch)
        self._left = None
        if self._pending is not None and self._pending.epoch != epoch:
            self._pending = None
        told: tuple[Any, ...] = (
            self.sampler,
            self.batch_sampler,
            getattr(self.batch_sampler, "sampler", None),
        )
        for sampler in told:
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # type: ignore[arg-type]
        count = len(self._compiled.handle) if self.sampler is None else len(self.sampler)  # type: ignore
        count = -(-count // self.world_size)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[list[Any]]:
        self._warn_of_pinning()
        self._iterators += 1
        iterator = EpochIterator(self, self._iterators)
        self._current = weakref.ref(iterator)
        self._left = None
        return iterator

    def _begin(self) -> tuple[Any, _ext.Loader, Place]:
        """An engine that has started the next epoch, with its key, and the place where it stands."""
        pending, self._pending = self._pending, None
        self._chosen_seed = self._seed_now() if pending is None else pending.seed
        epoch = self._epoch if pending is None else pending.epoch
        given = _order.draw(self, pending)
        key = self._key(given.largest)
        engine = self._take_engine(key)
        try:
            if pending is not None and pending.cursor is not None:
                engine.restore(pending.cursor, given.indices, given.sizes)
            else:
                engine.start(epoch, given.indices, given.sizes)
        except BaseException:
            self._give_back(key, engine)
            raise
        self._epoch = epoch + 1
        return key, engine, Place(epoch, key[1], None, given.origin)

    # ---- engines: one for each iterator, kept for the next when idle ----

    def _key(self, batch_size: int) -> tuple[int, int, int]:
        return os.getpid(), self._seed_now(), batch_size

    def _seed_now(self) -> int:
        """The seed; until the first epoch has begun torch.manual_seed may still change it."""
        if self._chosen_seed is not None:
            return self._chosen_seed
        if self.seed is not None:
            return self.seed
        if self.world_size > 1:
            return 0  # as DistributedSampler's: all ranks must agree
        if self.generator is not None:
            return int(self.generator.initial_seed()) % 2**64
        return default_seed(self._fallback_seed)

    def _open_engine(self, key: tuple[int, int, int]) -> tuple[Any, _ext.Loader]:
        engine = _ext.Loader(
            self._compiled.handle, self._pipeline, seed=key[1], batch_size=key[2], **self._options
        )
        _live.add(engine)
        return key, engine

    def _take_engine(self, key: tuple[int, int, int]) -> _ext.Loader:
        while self._idle:
            found, engine = self._idle.pop()
            if found == key:
                return engine
            engine.close()
        return self._open_engine(key)[1]

    def _give_back(self, key: Any, engine: _ext.Loader) -> None:
        if engine.closed or key[0] != os.getpid():
            return
        self._history = {"stats": engine.stats(), "ledger": engine.ledger()}
        if self.persistent_workers is False or self._idle:
            engine.close()
        else:
            self._idle.append((key, engine))

    def _engine(self) -> _ext.Loader | None:
        """The engine that statistics are about."""
        iterator = self._current()
        if iterator is not None and iterator._engine is not None:
            return iterator._engine
        return self._idle[-1][1] if self._idle else None

    # ---- batches ----

    def _warn_of_pinning(self) -> None:
        if not self.pin_memory or self.device is not None:
            return
        if self.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the device,"
                f"ignore pin_memory_device='{self.pin_memory_device}'.",
                stacklevel=3,
            )
        if not self._pinned:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=3,
            )

    def _warn_of_pageable(self, engine: _ext.Loader) -> None:
        """Says once that pinned memory was asked for and could not be had."""
        if self._warned_of_pageable or self.device is None and not self._pinned:
            return
        note = engine.stats()["pinned_note"]
        if note:
            self._warned_of_pageable = True
            warnings.warn(f"batches lie in pageable memory, copies take longer: {note}", stacklevel=3)

    def _deliver(self, batch: _ext.Batch, seed: int) -> list[Any]:
        convert = _CONVERT[self.output]
        images = batch.images
        labels = convert(batch.labels)
        if isinstance(images, list):
            finished: Any = [convert(image) for image in images]
        else:
            finished = None if images is None else convert(images)
        if self._batch_transforms:
            number = batch.index * self.world_size + self.rank
            finished, labels = mix(
                self._batch_transforms, finished, labels, seed, batch.epoch, number
            )
            labels = labels.pin_memory() if self._pinned else labels
        made = [finished] if batch.lengths is None else [finished, convert(batch.lengths)]
        fields = in_order(self._compiled.handle, batch, self._compiled.text, made, labels, self.output)
        if self.batch_size is None and self.batch_sampler is None:
            return [single(field) for field in fields]
        return fields

    # ---- resume ----

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands: a small dict of plain values, the same on every rank. It is valid for
        any number of threads afterwards and, without a sampler, for any world_size.

        After an exception from next it names the batch that failed, so that load_state_dict tries that batch
        again; next goes on with the one behind it."""
        return self._place().as_dict()

    def _place(self) -> Place:
        if self._pending is not None:
            return self._pending
        iterator = self._current()
        if iterator is not None and not iterator._done:
            return iterator._place_now()
        if self._left is not None:
            return self._left
        return Place(self._epoch, self._seed_now(), None, None)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iterator goes on where the state was taken."""
        place = Place.from_dict(state)
        if self.seed is not None and place.seed != self.seed:
            raise ValueError(
                f"the state was saved with seed {place.seed}; this loader has seed {self.seed}"
            )
        self._pending = place
        self._epoch = place.epoch

    # ---- what happened ----

    def stats(self) -> dict[str, Any]:
        """Where the time went, since the threads were started: seconds in each stage (summed over the
        workers) and its share, waiting, memory, the first batch, and what a device was given. "notes" are
        sentences on what is slower than it could be, and why."""
        engine = self._engine()
        raw = engine.stats() if engine is not None and not engine.closed else self._history["stats"]
        return friendly(raw, self.device)

    def bad_samples(self) -> list[dict[str, Any]]:
        """The samples that failed (the latest 1,024): sample, epoch, status and reason of each."""
        engine = self._engine()
        return engine.ledger() if engine is not None and not engine.closed else self._history["ledger"]

    def __repr__(self) -> str:
        how = (
            "sampler"
            if self.sampler is not None
            else "batch_sampler"
            if self.batch_sampler is not None
            else f"shuffle={self.shuffle}"
        )
        engine = self._engine()
        threads = "" if engine is None or engine.closed else f" ({engine.workers} threads)"
        device = f", device={self.device!r}" if self.device is not None else ""
        rank = f", rank={self.rank}, world_size={self.world_size}" if self.world_size > 1 else ""
        return (
            f"{type(self).__name__}({type(self.dataset).__name__} of {len(self._compiled.handle)}, "
            f"batch_size={self.batch_size}, {how}, num_workers={self.num_workers!r}{threads}, "
            f"order={self.order!r}{device}{rank}, next epoch {self._epoch})"
        )
