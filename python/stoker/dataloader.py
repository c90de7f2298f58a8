# SPDX-License-Identifier: Apache-2.0
"""stoker.DataLoader: torch's DataLoader, with the engine inside."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ._blockers import Blocked, Blocker
from ._checks import check_arguments
from ._convert import device_name, has_cuda, torch_if_installed
from ._dataset import EngineDataset
from ._engine import Requested, described, open_engine, settings, warn_of_pinning
from ._explain import Plan, engine_plan, gather_plan, log_once, python_plan
from ._frameworks import attach
from ._native import Native
from ._options import (
    ENGINE_ONLY,
    refuse_what_needs_the_engine,
    refused_in_python,
    required,
    resolved,
    worker_count,
)
from ._ranks import (
    engine_sampler,
    epoch_told,
    find_share,
    share_sampler,
    tell_epoch,
    warn_of_shuffling_alone,
)
from .compile import Compiled, blockers_in_python, compile_loader
from .state import Place
from .stats import Stats

if torch_if_installed() is not None:
    from torch.utils.data import DataLoader as _Base

    from ._gather import Gather, gather
    from ._python_epoch import Epochs, SingleIterator
    from ._workers import WorkerIterator
else:
    from ._standin import DataLoader as _Base  # type: ignore[assignment]

__all__ = ["DataLoader"]

_T_co = TypeVar("_T_co", covariant=True)

class DataLoader(_Base[_T_co]):  # type: ignore[misc]
    """Batches of images and labels, as torch.utils.data.DataLoader gives them. Of data sets whose
    samples have other fields a batch is a list of these: images; tensors of whole numbers (int64) and of
    floats (float64); arrays stacked, or a list of them where their shapes differ; and lists of str,
    bytes, or what JSON says.

    Arguments that torch's has mean the same:

    dataset: one of stoker.datasets, or torchvision's DatasetFolder, ImageFolder, ImageNet, CIFAR10, CIFAR100, MNIST,
        FashionMNIST or KMNIST with transforms that the engine has, and torch's Subset and ConcatDataset of
        these: the engine does the work. They are taken as they are at iter(): what was set in the meantime
        counts. Of a TensorDataset, and Subset and ConcatDataset of it, whole batches are taken in this
        process. Any other Dataset or IterableDataset, and one whose methods somebody has overridden, is run
        in Python, in this process or in worker processes, as torch runs it; images that it opens by Pillow are
        lazy there (stoker.lazy_images).
    batch_size, shuffle, sampler, batch_sampler, drop_last: as in torch. batch_size=None gives single
        samples. A sampler is iterated as far as the epoch has come.
    num_workers: threads that decode, or processes that run a data set written in Python. "auto" takes
        as threads the CPUs this process may use (affinity and cgroup quota), all of them, divided by the
        ranks on this machine under torchrun (LOCAL_WORLD_SIZE), or none for data so small that threads
        would not pay; and no processes (torch's default). 0 works in the calling thread. Of "auto" threads
        those rest that are not needed to have every batch ready; a number is never changed.
    timeout: seconds to wait for a batch; 0 waits for ever.
    generator: for order="torch" it draws the order, as in torch; otherwise its seed is the default seed.
    prefetch_factor: batches kept ready ahead: in all by threads, by each worker process. By default 2; threads keep up
        to 8 where that is what keeps next() from waiting, and max_memory has room for it (not with device or
        pin_memory). stats()["tuning"] says what it came to.
    persistent_workers: threads stay for the next epoch unless this is False, processes if it is True.
    in_order: whether batches of worker processes come in order; those of threads always do.
    pin_memory: batches are made in pinned memory where there is a GPU, so that
        .to("cuda", non_blocking=True) overlaps; drop them where the copying stream is the current one.
        With device= it has no effect.
    collate_fn, worker_init_fn: as in torch; with one of your own the data set runs in Python.

    Not in torch:

    compile: True lets the engine do what it can, "require" raises NotImplementedError with all that keeps
        it from doing so, False leaves all to Python. explain() says what is done where, and why.
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
    seed: of the shuffling and of all random draws of the transforms. By default torch.initial_seed() where
        torch is in use (so torch.manual_seed makes runs repeatable), 0 with shard or world_size > 1, else
        random.
    seed_by: of data sets written in Python. "worker" seeds random, NumPy and torch in each worker as torch
        does; "sample" seeds them before each sample from the seed, the epoch and the sample, so that what is
        drawn is the same for any number of workers and after any resume. The engine always does that.
    snapshot_every_n_steps: how often the workers ask an iterable data set for its state_dict; by default as
        often as that takes less than 2 % of their time. The state is exact whatever this is: batches between
        are passed over on resume.
    order: how shuffle=True shuffles. "stoker", the default for stoker.datasets, needs no array and starts at
        once; "torch", the default for all others, gives exactly torch's order: that of RandomSampler (by the
        same draws from torch's generator), or with a seed or ranks (shard, world_size) that of
        DistributedSampler.
    shard: True gives each rank its share of the samples, as a DistributedSampler does, which loader.sampler
        then is. Rank and world size are those of torch.distributed if it is initialised, else those in
        torchrun's environment (RANK, WORLD_SIZE). With drop_last=True the last samples are dropped where they
        are no multiple of the world size; otherwise some are repeated. Without it, and without a sampler,
        every rank gets everything.
    rank, world_size: the same with numbers of your own; samples are repeated, never dropped.
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
    read_ahead, pixel_limit: bounds on samples being read (by default 64 or more, by URL 320, moved up to four
        times that where it helps), and on pixels of an image.

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
        compile: bool | str = True,
        dtype: Any = None,
        memory_format: Any = None,
        seed: int | None = None,
        seed_by: str = "worker",
        order: str | None = None,
        snapshot_every_n_steps: int | None = None,
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
        shard: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in ENGINE_ONLY}
        if order is None:
            order = "stoker" if isinstance(dataset, EngineDataset) else "torch"
        check_arguments(num_workers, compile, order, output, seed_by, on_error)
        share = find_share(shard, rank, world_size, sampler, batch_sampler, drop_last)
        compiled, why = self._compile(compile, dataset, collate_fn, worker_init_fn)
        if compiled is None:
            given |= refused_in_python(dataset, seed if share is None else None, seed_by, on_error)
            refuse_what_needs_the_engine(why, given)
        self._why_python = why
        own_sampler = None
        if share is not None:
            own_sampler = share_sampler(dataset, share, shuffle, seed)
        elif compiled is not None and sampler is None and batch_sampler is None:
            own_sampler = engine_sampler(dataset, shuffle, generator)
        super().__init__(
            dataset,
            batch_size,
            shuffle if own_sampler is None else None,
            sampler if own_sampler is None else own_sampler,
            batch_sampler,
            worker_count(num_workers, compiled),
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=bool(persistent_workers),
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
        # Frameworks make a loader anew from the attributes that its arguments are named after.
        self.shuffle = bool(shuffle)
        self.order = order
        self.compile = compile
        self.seed = seed
        self.seed_by = seed_by
        self.on_error = on_error
        self.device = device
        self.error_limit = error_limit
        self.snapshot_every_n_steps = snapshot_every_n_steps
        self._epochs = None if torch_if_installed() is None else Epochs()
        for name, value in given.items():
            setattr(self, name, value)
        self._share = share
        self._told: int | None = None  # the sampler's epoch, when the latest iterator was made
        self._requested = Requested(sampler, batch_sampler, num_workers, prefetch_factor, persistent_workers)
        self._defaults = self.collate_fn, self.worker_init_fn
        self._gather: Gather | None = None
        self._native = None if compiled is None else open_engine(self, compiled, self._requested)
        if compile == "require" and compiled is None and self._gathered() is None:
            raise required(why)
        if compile is not False:
            log_once(self)
        if self._native is not None and num_workers == "auto":
            self.num_workers = max(1, self._native.threads())
        self._opened = settings(self)
        attach(DataLoader)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native": None, "_gather": None, "_iterator": None, "_epochs": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._epochs = None if torch_if_installed() is None else Epochs()
        if not self._why_python:
            compiled, self._why_python = compile_loader(self.dataset, None, None)
            self._native = None if compiled is None else open_engine(self, compiled, self._requested)
            self._opened = settings(self)

    @staticmethod
    def _compile(
        compile: bool | str, dataset: Any, collate_fn: Any, worker_init_fn: Any
    ) -> tuple[Compiled | None, list[Blocker]]:
        if compile is False:
            return None, [Blocker("", "compile=False")]
        return compile_loader(dataset, collate_fn, worker_init_fn)

    def check_worker_number_rationality(self) -> None:
        """torch's warning of more processes than CPUs: threads are no processes."""
        if self._why_python:
            super().check_worker_number_rationality()

    def _options_beyond_torch(self) -> dict[str, Any]:
        """The arguments that torch's DataLoader has not, or has with other values: for frameworks that make a
        loader anew from torch's attributes. Shares are for their samplers."""
        own = ("compile", "device", "error_limit", "on_error", "order", "seed", "seed_by", "snapshot_every_n_steps")
        options = {name: getattr(self, name) for name in (*own, *ENGINE_ONLY)}
        if self._native is not None:
            names = ("num_workers", "prefetch_factor", "persistent_workers")
            options |= {name: getattr(self._requested, name) for name in names}
        return options

    @property
    def rank(self) -> int | None:
        return None if self._share is None else self._share.rank

    @property
    def world_size(self) -> int | None:
        return None if self._share is None else self._share.world_size

    # ---- epochs ----

    def set_epoch(self, epoch: int) -> None:
        """The number of the next epoch, which decides its order and its randomness. Without it epochs
        count up from 0. A sampler that has set_epoch is told as well."""
        if epoch < 0:
            raise ValueError(f"epoch={epoch} should be non-negative")
        if self._native is not None:
            self._native.set_epoch(epoch)
        else:
            self._epochs.set(int(epoch))
        tell_epoch(epoch, self.sampler, self.batch_sampler)

    def __len__(self) -> int:
        self._compile_again()
        return super().__len__() if self._native is None else self._native.length()

    def __iter__(self) -> Iterator[Any]:
        self._compile_again()
        if self.shuffle and self._share is None and not self._is_iterable():
            warn_of_shuffling_alone()
        if self._native is None:
            self._settle_epoch()
            if self._epochs.pending is not None:
                self._iterator = None  # its workers are elsewhere in the data
            return super().__iter__()
        self._heed_settings()
        warn_of_pinning(self, self._native)
        self._native.base_generator = self.generator
        return self._native.iterate()

    def _compile_again(self) -> None:
        """The data set as it is now: others may have set its transform, or its samples."""
        if self._native is None:
            return
        try:
            if (self.collate_fn, self.worker_init_fn) != self._defaults:
                raise Blocked(blockers_in_python(self.collate_fn, self.worker_init_fn))
            self._native.use(self._native.compiled.renewed(self.dataset))
        except Blocked as reasons:
            self._go_on_in_python(self._native, reasons.blockers)

    def _go_on_in_python(self, native: Native, why: list[Blocker]) -> None:
        """The engine cannot do the data set any more."""
        if self.compile == "require":
            raise required(why)
        seed = self.seed if self._share is None else None
        asked = {name: getattr(self, name) for name in ENGINE_ONLY}
        asked |= refused_in_python(self.dataset, seed, self.seed_by, self.on_error)
        refuse_what_needs_the_engine(why, asked)
        if native.is_pending():
            raise NotImplementedError(
                "the state that was loaded is the engine's, which cannot run this data set any more: " + "; ".join(why)
            )
        native.close()
        self._epochs.set(native.epoch)
        self._native, self._why_python = None, why
        if self._requested.num_workers == "auto":
            self.num_workers = 0

    def _heed_settings(self) -> None:
        """The engine anew, for an epoch whose attributes are others than those it was opened with."""
        before, now = self._native, settings(self)
        changed = {name for name, value in now.items() if value is not self._opened[name]}
        if before is None or not changed:
            return
        asked = {name: now[name] for name in ("num_workers", "prefetch_factor") if name in changed}
        self._requested = self._requested._replace(**asked)
        self._native = open_engine(self, before.compiled, self._requested)
        self._native.succeed(before)
        self._opened = now

    def _is_iterable(self) -> bool:
        return self._native is None and isinstance(self.dataset, sys.modules["torch"].utils.data.IterableDataset)

    def _settle_epoch(self) -> None:
        """Of a data set in Python: a sampler whose epoch was set decides the next one, and what of a state is of
        another is dropped. The sampler of a share follows the count of epochs."""
        told = epoch_told(self.sampler, self.batch_sampler)
        if told is not None and told != self._told:
            self._epochs.set(told)
        if self._share is not None:
            pending = self._epochs.pending
            told = self._epochs.next if pending is None else int(pending["epoch"])
            self.sampler.set_epoch(told)
        self._told = told

    def _get_iterator(self) -> Any:
        """For torch's __iter__: an epoch of a data set written in Python."""
        if self.num_workers == 0 or self._gathered() is not None:
            return SingleIterator(self)
        self.check_worker_number_rationality()
        return WorkerIterator(self)

    def _gathered(self) -> Gather | None:
        """What takes whole batches of a data set of tensors at once, which no worker would do faster."""
        if self.compile is False or not self._auto_collation or self.num_workers and self.worker_init_fn:
            return None
        if self._gather is None or self._gather.changed():
            self._gather = gather(self.dataset, self.collate_fn)
        return self._gather

    def _device_of_python(self) -> str | None:
        """Where batches of a data set written in Python go."""
        device = resolved(device_name(self.device))
        if device is not None and not has_cuda():
            raise RuntimeError(f"device={self.device!r}: torch finds no GPU, or is a build without CUDA")
        return device

    def _sample_seed(self) -> int | None:
        """Where each sample is seeded by itself: what its seeds follow from."""
        if self.seed_by != "sample":
            return None
        if self.seed is not None:
            return self.seed
        return int((self.generator or torch_if_installed()).initial_seed())

    # ---- resume ----

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands: a small dict of plain values, the same on every rank. It is valid for
        any number of threads afterwards and, without a sampler, for any world_size.

        Of a data set written in Python it holds what the sampler needs to draw the same order, and the states
        of data sets (or iterators of iterable ones) that have state_dict and load_state_dict. Iterable data
        sets need the same num_workers again.

        After an exception from next it names the batch that failed, so that load_state_dict tries that batch
        again; next goes on with the one behind it."""
        if self._native is None:
            return self._epochs.state(self)
        return self._native.place().as_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iterator resumes where the state was taken. A sampler of yours is drawn again, and must
        give what it gave then (or have state_dict and load_state_dict itself, which are then called)."""
        if self._native is None:
            self._epochs.resume(state)
            self._told = epoch_told(self.sampler, self.batch_sampler)
        else:
            self._native.resume(Place.from_dict(state))

    # ---- what happened ----

    def stats(self) -> Stats:
        """Where the time went, since the threads were started: seconds in each stage (summed over the
        workers) and its share, waiting, memory, the first batch, and what a device was given. "tuning" says how
        many workers work, batches are kept ready and samples read ahead now, how often that was moved, what
        limits the loader, and the last move in words. "notes" are
        sentences on what is slower than it could be, and why. Of a data set written in Python: batches,
        samples that failed, and how long next() took in all and for the first batch."""
        if self._native is None:
            return self._epochs.stats(self.num_workers)
        return self._native.stats()

    def bad_samples(self) -> list[dict[str, Any]]:
        """The samples that failed (the latest 1,024): sample, epoch, status and reason of each."""
        return list(self._epochs.bad) if self._native is None else self._native.ledger()

    def explain(self) -> Plan:
        """The plan as a table, to be printed: what runs in the engine, what in Python, why, and what would
        change that. Its `rows` have the same as values: stage, where, why, remedy."""
        if self._native is not None:
            return engine_plan(self)
        return python_plan(self) if self._gathered() is None else gather_plan(self)

    def __repr__(self) -> str:
        native = self._native
        if native is None:
            return f"{type(self).__name__}({type(self.dataset).__name__}, in Python, num_workers={self.num_workers})"
        return described(self, native)


if "_stoker_watch" in sys.modules:  # under `stoker run`
    sys.modules["_stoker_watch"].attach()
