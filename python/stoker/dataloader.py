# SPDX-License-Identifier: Apache-2.0
"""stoker.DataLoader: torch's DataLoader, with the engine inside."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeVar

from ._base.suggest import suggests_keywords
from ._base.tensors import torch_if_installed
from ._data.base import EngineDataset
from ._engine.opening import Requested, described, open_engine, settings, warn_of_pinning
from ._engine.stats import Stats
from ._loader.before_epoch import compile_again, open_again, reopen_if_changed, settle_epoch
from ._loader.frameworks import attach
from ._order.place import Place
from ._order.ranks import (
    engine_sampler,
    find_share,
    sampler_epoch,
    set_sampler_epoch,
    share_sampler,
    warn_of_shuffling_alone,
)
from ._plan.checks import check_arguments, check_dataset, check_shuffle, check_threads, check_workers
from ._plan.compile import compile_loader
from ._plan.explain import Plan, engine_plan, gather_plan, log_once, python_plan
from ._plan.options import (
    ENGINE_ONLY,
    refuse_what_needs_the_engine,
    refused_in_python,
    renamed,
    required,
    worker_count,
)

if torch_if_installed() is not None:
    from torch.utils.data import DataLoader as _Base

    from ._workers.epoch import Epochs, SingleIterator
    from ._workers.iterator import WorkerIterator
    from ._workers.measure import in_engine, measured
    from ._workers.tensor_datasets import Gather, gather
else:
    from ._loader.without_torch import DataLoader as _Base  # type: ignore[assignment]

__all__ = ["DataLoader"]

_T_co = TypeVar("_T_co", covariant=True)


class DataLoader(_Base[_T_co]):  # type: ignore[misc]
    """Load batches, with the arguments of torch.utils.data.DataLoader and the engine inside.

    A batch is a list of images and labels. For datasets whose samples have other fields it is a list of these:
    images; tensors of integers (int64) and of floats (float64); arrays, stacked, or a list of them if their
    shapes differ; and lists of str, bytes or parsed JSON.

    The engine does all the work for stoker.datasets, and for torchvision's DatasetFolder, ImageFolder, ImageNet,
    CIFAR10, CIFAR100, MNIST, FashionMNIST, KMNIST and EMNIST with transforms that the engine has, for its segmentation
    datasets in wrap_dataset_for_transforms_v2, and torch's Subset and ConcatDataset of these. They are read as they are
    at `iter()`: changes made in the meantime count. From a TensorDataset, and Subset and ConcatDataset of it, whole
    batches are gathered in this process. Any other Dataset or IterableDataset, and one with overridden methods, runs in
    Python, in this process or in worker processes, as in torch; images that it opens with Pillow are lazy there
    (`stoker.lazy_images`). `explain()` shows what runs where, and why.

    Args (data and batches):
        dataset: The dataset.
        batch_size: Samples per batch. None gives single samples.
        drop_last: Drop the last batch if it is incomplete.
        collate_fn: As in torch. With a function other than default_collate and `lambda batch: tuple(zip(*batch))` (or list,
            or such a function with a name) the dataset runs in Python.
        batch_transforms: MixUp, CutMix or RandomChoice of them (of stoker.transforms or torchvision's v2), one or a
            list, applied to each batch. Their draws follow from the seed, the epoch and the batch.
        ragged: What to do with images of different shapes in a batch: "list" gives a list, "pad" pads them. By default
            stoker.datasets give lists; for all others torch's error is raised.

    Args (order and randomness):
        shuffle: Visit the samples in a new random order in each epoch.
        sampler: An iterable of sample numbers. It is consumed only as far as the epoch has advanced.
        batch_sampler: An iterable of batches of sample numbers.
        order: How shuffle=True shuffles. "stoker", the default for stoker.datasets, needs no array and starts at once.
            "torch", the default for all others, gives exactly torch's order: that of RandomSampler (with the same
            draws from torch's generator), or with a seed or ranks (`shard`, `world_size`) that of DistributedSampler.
        seed: Seed of the shuffling and of all random draws of the transforms. By default `torch.initial_seed()` if
            torch is in use (so that `torch.manual_seed` makes runs repeatable), 0 with `shard` or world_size > 1,
            and otherwise random.
        seed_by: For datasets that run in Python. "worker", the default for all but stoker.datasets, seeds random, NumPy and
            torch in each worker as torch does. "sample", the default for stoker.datasets, seeds them before each sample
            from the seed, the epoch and the sample, so that the draws do not depend on the number of workers and survive
            a resume. The engine always does that.
        generator: With order="torch" it draws the order, as in torch. Else its initial seed is the default of `seed`.
        shard: True gives each rank its share of the samples, like a DistributedSampler, which loader.sampler then is.
            Rank and world size are those of torch.distributed if it is initialized, otherwise those in torchrun's
            environment (RANK, WORLD_SIZE). With drop_last=True the last samples are dropped if the world size does not
            divide their number; otherwise some are repeated. Without `shard` or a sampler, every rank gets all samples.
        rank, world_size: As `shard`, with explicit numbers. Samples are repeated, never dropped.

    Args (workers and memory):
        num_workers: Threads that decode, or processes that run a dataset written in Python. "auto" uses as many
            threads as this process may use CPUs (affinity and cgroup quota), divided by the ranks on this machine
            under torchrun (LOCAL_WORLD_SIZE), no threads for data so small that they would not pay off, and no
            processes (torch's default). 0 works in the calling thread. Threads of "auto" that are not needed to
            keep batches ready are paused; a number that you give is never changed.
        prefetch_factor: Batches to keep ready: in total for threads, for each worker for processes. By default 2;
            threads keep up to 8 if that stops `next()` from waiting and `max_memory` has room (not with `device` or
            `pin_memory`). `stats()["tuning"]` shows the current number.
        persistent_workers: Threads stay for the next epoch unless this is False, processes only if it is True.
        in_order: Whether worker processes deliver batches in order. Threads always do.
        timeout: Seconds to wait for a batch; 0 waits without limit.
        worker_init_fn: As in torch. With one, the dataset runs in Python.
        multiprocessing_context: As in torch, for worker processes.
        snapshot_every_n_steps: How often workers ask an iterable dataset for its state_dict. By default as often as
            that takes less than 2 % of their time. The saved state is exact in any case: on resume, batches between the
            latest snapshot and the saved position are fetched and dropped.
        read_ahead: Samples being read at once. By default 64 or more, 320 for URLs, up to four times that if it helps.
        max_memory: Bytes that the loader may hold in total: a number, or a string such as "256MiB". If that is short,
            fewer workers decode at once and fewer batches are kept ready; the batches are the same. A sample that
            does not fit even alone is a bad sample (`on_error`). Batches, including those that you keep, may take half
            of it. By default a quarter of what the cgroup allows (or the machine has available), divided by
            LOCAL_WORLD_SIZE, and at most a quarter of what `ulimit -v` and `-d` leave. `stats()["memory"]` shows what
            is held.

    Args (errors):
        on_error: What to do with a sample that cannot be read or decoded: "raise"; "skip" puts another sample in its
            place; "replace" gives zeros with the label -100. `bad_samples()` lists them. A failure of the machine or
            the network (no connection, a 5xx status, EIO, too many open files) is none of these: it is retried, and
            then stoker.TransientError ends the epoch; load_state_dict(state_dict()) resumes at that batch.
        error_limit: More bad samples than this in one epoch raise an error, whatever `on_error` is.
        pixel_limit: Images with more pixels are bad samples. By default as Pillow's Image.MAX_IMAGE_PIXELS says.

    Args (device and output):
        device: "cuda", "cuda:1" or a torch.device: batches arrive in the memory of that GPU. Copies and kernels run in
            the loader's own stream, `next()` waits for none of them, and the stream that is current in `next()` is
            made to wait for them: use the tensors in that stream like any others. Their memory is reused when all of
            them are gone, and the work that is then queued in this stream, and in the one that is current where the
            last of them is dropped, has finished. A third stream must wait for the first before it reads the tensors,
            and the first for the third before they are dropped (Stream.wait_stream); record_stream has no effect. For
            samples with several fields, the image and the first integer go to the GPU, and all others stay in CPU
            memory.
        device_batches: With `pin_memory`, for images and labels that the engine makes: make them on the GPU to which the
            script sends them, once it has sent the first eight, so that `.cuda()` and `.to("cuda")` copy them there. On the
            CPU, such images are tensors whose bytes are fetched when they are used; everything else is as it was. Large
            tensors of datasets that run in Python are copied there before the script asks. None: yes, unless
            STOKER_DEVICE_BATCHES=0 is set. `explain()` says where batches are made, and why.
        augment_on: Where images are resized, rotated, coloured and normalized: "cpu", "cuda", or "auto": on the device as
            far as it can. The bytes are the same.
        jpeg_hardware: Which JPEGs the decoders of `device` decode, if it has any; the CPU's threads decode the rest.
            The pixels are the same bit for bit, but the hardware does not report damaged data. "known" therefore
            leaves a file to the CPU until its decoder has decoded the file completely once, in the first epoch; with
            `index_dir`, or for tar and TFRecord files, later runs know it too. "all": every baseline file from the
            first batch on; damage in them goes unnoticed. "off": none. `stats()["device"]` shows how many files the
            hardware decoded, or why none.
        engines: The former name of `jpeg_hardware`; deprecated.
        pin_memory: Make batches in pinned memory if there is a GPU, so that `.to("cuda", non_blocking=True)`
            overlaps with other work. Drop them while the copying stream is current. No effect with `device`.
        pin_memory_device: As in torch, where it is deprecated.
        pinned_limit: Bytes of pinned memory. Beyond it batches are in ordinary memory, with one warning.
        output: "torch", "numpy", or "dlpack" for objects that `from_dlpack` of any library accepts, on CPU and GPU. By
            default torch tensors if torch is installed, otherwise NumPy arrays.
        dtype: "uint8", "float32", "float16" or "bfloat16", also as torch's or NumPy's type. By default the result of
            the transforms.
        memory_format: "channels_last" or "contiguous_format".

    Args (engine):
        compile: True translates the dataset for the engine, as far as it can. "require" raises NotImplementedError
            with every reason why it cannot. False leaves everything to Python.
        fidelity: "exact", or "fast": JPEGs whose crop is at least twice the size of the output are decoded at a half,
            a quarter or an eighth. On photographs the result differs from exact by about 1 level of 255 on average.
            With `device`, "fast" gives exact pixels too and means jpeg_hardware="all".
        pillow: 12 or 13, the version of Pillow whose resizing to match.
        exif_rotate: Rotate images as their EXIF orientation says.

    Raises:
        ValueError, TypeError: An argument has a wrong value or type; the message names it and what is allowed.
        NotImplementedError: An option needs the engine, and the engine cannot run this dataset; or compile="require".
        StokerError: The engine cannot be opened. Those of samples are also what Pillow or Python raises for the file.

    >>> loader = stoker.DataLoader(stoker.datasets.ImageFolder("images", T.ToTensor()), batch_size=5)
    >>> len(loader)
    3
    >>> images, labels = next(iter(loader))
    >>> labels.tolist()
    [0, 0, 0, 0, 0]

    An epoch can be interrupted and resumed, in another process and with other numbers of threads and ranks:

    >>> batches = iter(loader)
    >>> first = next(batches)
    >>> state = loader.state_dict()
    >>> other = stoker.DataLoader(loader.dataset, batch_size=5)
    >>> other.load_state_dict(state)
    >>> [labels.tolist() for images, labels in other]
    [[0, 1, 1, 1, 1], [1, 1]]
    """

    @suggests_keywords
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int | Literal["auto"] = "auto",
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
        compile: bool | Literal["require"] = True,
        dtype: Any = None,
        memory_format: Any = None,
        seed: int | None = None,
        seed_by: Literal["worker", "sample"] | None = None,
        order: Literal["stoker", "torch"] | None = None,
        snapshot_every_n_steps: int | None = None,
        device: Any = None,
        device_batches: bool | None = None,
        augment_on: Literal["auto", "cpu", "cuda"] = "auto",
        pinned_limit: int | None = None,
        batch_transforms: Any = None,
        on_error: Literal["raise", "skip", "replace"] = "raise",
        error_limit: int | None = None,
        fidelity: Literal["exact", "fast"] = "exact",
        jpeg_hardware: Literal["known", "all", "off"] = "known",
        pillow: Literal[12, 13] = 13,
        exif_rotate: bool = False,
        ragged: Literal["list", "pad"] | None = None,
        output: Literal["torch", "numpy", "dlpack"] | None = None,
        read_ahead: int | None = None,
        max_memory: int | str | None = None,
        pixel_limit: int | None = None,
        shard: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        engines: Literal["known", "all", "off"] | None = None,
    ) -> None:
        jpeg_hardware = renamed("engines", engines, "jpeg_hardware", jpeg_hardware)
        given = {name: value for name, value in locals().items() if name in ENGINE_ONLY}
        own = isinstance(dataset, EngineDataset)
        order = order or ("stoker" if own else "torch")
        seed_by = seed_by or ("sample" if own else "worker")
        check_dataset(dataset)
        check_shuffle(shuffle)
        check_arguments(num_workers, timeout, prefetch_factor, compile, order, output, seed_by, on_error)
        share = find_share(shard, rank, world_size, sampler, batch_sampler, drop_last)
        batched = batch_size is not None or batch_sampler is not None
        sized = batch_sampler is not None
        compiled, why = compile_loader(
            dataset, collate_fn, worker_init_fn, batched=batched, sized=sized, on_device=device is not None, wanted=compile is not False
        )
        if compiled is None:
            given |= refused_in_python(dataset, seed if share is None else None, seed_by, on_error)
            refuse_what_needs_the_engine(why, given)
        self._why_python = why
        own_sampler = None
        if share is not None:
            own_sampler = share_sampler(dataset, share, shuffle, seed)
        elif (compiled is not None or own) and sampler is None and batch_sampler is None:
            own_sampler = engine_sampler(dataset, shuffle, generator, order, seed)
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
        # Frameworks rebuild a loader from the attributes that have the names of its arguments.
        self.shuffle = bool(shuffle)
        self.order = order
        self.compile = compile
        self.seed = seed
        self.seed_by = seed_by
        self.on_error = on_error
        self.device = device
        self.device_batches = device_batches
        self.error_limit = error_limit
        self.engines = None
        self.snapshot_every_n_steps = snapshot_every_n_steps
        self._epochs = None if torch_if_installed() is None else Epochs()
        for name, value in given.items():
            setattr(self, name, value)
        self._share = share
        self._sampler_epoch: int | None = None  # the sampler's epoch when the latest iterator was made
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
            open_again(self)

    def check_worker_number_rationality(self) -> None:
        """Warn as torch does if there are more workers than CPUs."""
        if self._why_python:
            super().check_worker_number_rationality()
        else:
            check_threads(self.num_workers)

    @property
    def rank(self) -> int | None:
        """This process's rank, with `shard` or `world_size`; otherwise None."""
        return None if self._share is None else self._share.rank

    @property
    def world_size(self) -> int | None:
        """The number of processes that share the samples, with `shard` or `world_size`; otherwise None."""
        return None if self._share is None else self._share.world_size

    # ---- epochs ----

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch, which determines its order and its random draws.

        Without this call, epochs count up from 0. It also calls `set_epoch` of a sampler that has it.

        Args:
            epoch: The number, 0 or more.

        Raises:
            ValueError: `epoch` is not such a number.
        """
        if not isinstance(epoch, numbers.Integral) or epoch < 0:
            raise ValueError(f"epoch={epoch!r} is not a whole number from 0")
        if self._native is not None:
            self._native.set_epoch(epoch)
        else:
            self._epochs.set(int(epoch))
        set_sampler_epoch(epoch, self.sampler, self.batch_sampler)

    def __len__(self) -> int:
        """The number of batches in an epoch, on this rank."""
        compile_again(self)
        return super().__len__() if self._native is None else self._native.length()

    def __iter__(self) -> Iterator[Any]:
        """Start the next epoch, or continue a resumed one. The epoch begins with the first `next()`."""
        compile_again(self)
        if self.shuffle and self._share is None and not self._is_iterable():
            warn_of_shuffling_alone()
        if self._native is None:
            settle_epoch(self)
            if self._epochs.pending is not None:
                self._iterator = None  # its workers are at another position in the data
            return super().__iter__()
        reopen_if_changed(self)
        warn_of_pinning(self, self._native)
        self._native.base_generator = self.generator
        iterator = self._native.iterate()
        own = isinstance(self.dataset, EngineDataset)
        check_workers(self.num_workers, self.prefetch_factor, 0 if own else self.timeout)
        return iterator

    def _is_iterable(self) -> bool:
        return self._native is None and isinstance(self.dataset, sys.modules["torch"].utils.data.IterableDataset)

    def _get_iterator(self) -> Any:
        """Return an iterator over an epoch of a dataset written in Python. torch's __iter__ calls this."""
        if self.num_workers == 0 or self._gathered() is not None:
            iterator = SingleIterator(self)
            check_workers(self.num_workers, self.prefetch_factor, self.timeout)  # after the base seed is drawn, as in torch
            return iterator
        self.check_worker_number_rationality()
        return WorkerIterator(self)

    def _gathered(self) -> Gather | None:
        """Return what gathers whole batches of a dataset of tensors, which no worker would do faster."""
        if self.compile is False or not self._auto_collation or self.num_workers and self.worker_init_fn:
            return None
        if self._gather is None or self._gather.changed():
            self._gather = gather(self.dataset, self.collate_fn)
        return self._gather

    # ---- resume ----

    def state_dict(self) -> dict[str, Any]:
        """Return the loader's position, for `load_state_dict` of another loader.

        It can be loaded on any rank and with any number of threads. With `shard`, rank and world_size, or a
        DistributedSampler for a dataset written in Python, it can be loaded with any world size. For a dataset
        written in Python it holds what the sampler needs to draw the same order, and the states of datasets (or of
        iterators of iterable ones) that have state_dict and load_state_dict; iterable datasets need the same
        num_workers again.

        After an exception from `next()` the state points to the batch that failed, so that `load_state_dict` tries
        that batch again, whereas `next()` continues with the one after it.

        Returns:
            A small dict of plain values.
        """
        if self._native is None:
            return self._epochs.state(self)
        return self._native.place().as_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Make the next iterator resume where the state was saved.

        A sampler is drawn from again, and must give what it gave before, unless it has state_dict and
        load_state_dict itself, which are then called.

        Args:
            state: What `state_dict` returned.

        Raises:
            ValueError: The state is not one of a stoker.DataLoader, or was saved with another seed. If the sampler
                gives another order, iter() raises it.
        """
        if self._native is None:
            self._epochs.resume(state)
            self._sampler_epoch = sampler_epoch(self.sampler, self.batch_sampler)
        else:
            self._native.resume(Place.from_dict(state))

    # ---- what happened ----

    def stats(self) -> Stats:
        """Return where the time went since the threads were started: a dict that prints as a table (`stoker.Stats`)."""
        if self._native is None:
            why = self._why_python if self.compile is not False and self._gathered() is None else []
            return self._epochs.stats(self.num_workers, list(map(str, why)))
        return self._native.stats()

    def bad_samples(self) -> list[dict[str, Any]]:
        """Return the samples that could not be read or decoded.

        Returns:
            The latest 1,024 of them, each a dict of `sample`, `epoch`, `status` and `reason`.
        """
        return list(self._epochs.bad) if self._native is None else self._native.ledger()

    def explain(self, measure: int = 0) -> Plan:
        """Return the plan: what runs in the engine, what in Python, why, and what would change that.

        Args:
            measure: How many samples to make here and now, in this process, to measure what a sample costs in each step that
                runs in Python: 32, say. No generator of random numbers is changed by it. It is for datasets of
                torchvision and of this package.

        Returns:
            Text of at most 80 columns: what would change the plan, then a table. Its `rows` have the same as values:
            stage, where, why, remedy, cost.

        >>> loader = stoker.DataLoader([1, 2, 3], batch_size=2)
        >>> loader.explain().rows[0].where
        'this process'
        """
        if self._native is not None:
            return engine_plan(self)
        if self._gathered() is not None:
            return gather_plan(self)
        return python_plan(self, in_engine, measured(self.dataset, measure) if measure > 0 else {})

    def __repr__(self) -> str:
        native = self._native
        if native is None:
            return f"{type(self).__name__}({type(self.dataset).__name__}, in Python, num_workers={self.num_workers})"
        return described(self, native)


if "_stoker_watch" in sys.modules:  # under `stoker run`
    sys.modules["_stoker_watch"].attach()
