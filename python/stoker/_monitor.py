# SPDX-License-Identifier: Apache-2.0
"""stoker.monitor: how long training waits for data, while it runs, in TensorBoard, W&B or whatever takes numbers."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._ext import GpuWatch, StokerError

_clock = time.perf_counter


class Monitor:
    """Measures a training loop and writes numbers every few seconds; what `stoker.monitor` returns.

    Attributes:
        step: How many batches training has taken so far.
        last: What was written last.
    """

    step: int
    last: dict[str, float]

    def __init__(self, writer: Any, every: float, prefix: str) -> None:
        self._write = _writing(writer, prefix)
        self._every = every
        self.step = 0
        self.last = {}
        self._asked: float | None = None  # when the batch that is waited for was asked for
        self._got: float | None = None  # when the batch that is worked on arrived
        self._gpu: GpuWatch | None = None
        self._gpu_tried = False
        self._begin()

    def _begin(self) -> None:
        self._waited = self._worked = 0.0
        self._samples = self._batches = self._ready = self._looked = 0

    def __call__(self, loader: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches of a loader, and measure how long each is waited for.

        Args:
            loader: Any loader: Stoker's, torch's, or another iterable of batches.
        """
        batches = iter(loader)
        while True:
            self._look(batches)
            self.asks()
            try:
                batch = next(batches)
            except StopIteration:
                self.rests()
                return
            self.gets(_rows(batch))
            yield batch

    # ---- for training loops that are not written as `for batch in monitor(loader)` ----

    def asks(self) -> None:
        """Training asks for its next batch."""
        now = _clock()
        if self._got is not None:
            self._worked += now - self._got
        self._asked, self._got = now, None

    def gets(self, samples: int) -> None:
        """It has one, of as many samples."""
        now = _clock()
        if self._asked is not None:
            self._waited += now - self._asked
            self._samples += samples
            self._batches += 1
        self._asked, self._got = None, now
        self.step += 1
        if self._waited + self._worked >= self._every:
            self.flush()

    def rests(self) -> None:
        """What follows, an evaluation for example, does not count."""
        if self._got is not None:
            self._worked += _clock() - self._got
        self._asked = self._got = None

    def flush(self) -> None:
        """Write what was measured since the last time, if anything was."""
        seconds = self._waited + self._worked
        if not self._batches or seconds <= 0:
            return
        values = {"stall_share": self._waited / seconds, "samples_per_second": self._samples / seconds}
        if self._looked:
            values["batches_ready"] = self._ready / self._looked
        busy = self._gpu_busy()
        if busy is not None:
            values["gpu_busy"] = busy
        self._begin()
        self.last = values
        self._write(values, self.step)

    def _look(self, batches: Any) -> None:
        """Count the batches that worker processes of torch's loader have made."""
        tasks = getattr(batches, "_task_info", None)
        if isinstance(tasks, dict) and hasattr(batches, "_data_queue"):
            with contextlib.suppress(NotImplementedError, OSError):
                self._ready += sum(len(task) == 2 for task in tasks.values()) + batches._data_queue.qsize()
                self._looked += 1

    def _gpu_busy(self) -> float | None:
        if not self._gpu_tried:
            self._gpu_tried = True
            torch = sys.modules.get("torch")
            if torch is not None and torch.cuda.is_initialized():
                with contextlib.suppress(StokerError):
                    self._gpu = GpuWatch()
        if self._gpu is None:
            return None
        try:
            busy = float(self._gpu.sample()["busy"])
        except (StokerError, KeyError, TypeError, ValueError):
            return None
        return busy if busy >= 0 else None

    # ---- frameworks ----

    def lightning(self) -> Any:
        """Return a callback for Lightning's Trainer: `Trainer(callbacks=[monitor.lightning()])`.

        Raises:
            ModuleNotFoundError: Lightning is not installed.
        """
        name = "pytorch_lightning" if "pytorch_lightning" in sys.modules else "lightning.pytorch"
        base = importlib.import_module(name).Callback
        hooks: dict[str, Callable[..., Any]] = {
            "on_train_epoch_start": self.asks,
            "on_train_batch_start": lambda trainer, module, batch, *more: self.gets(_rows(batch)),
            "on_train_batch_end": self.asks,
            "on_validation_start": self.rests,
            "on_validation_end": self.asks,
            "on_train_epoch_end": self.rests,
            "on_train_end": self.flush,
        }
        return _callback(base, hooks)

    def transformers(self) -> Any:
        """Return a callback for Hugging Face's Trainer: `Trainer(..., callbacks=[monitor.transformers()])`.

        Raises:
            ModuleNotFoundError: transformers is not installed.
        """
        base = importlib.import_module("transformers").TrainerCallback
        hooks: dict[str, Callable[..., Any]] = {
            "on_epoch_begin": self.asks,
            "on_step_begin": lambda given, *more, **named: self.gets(
                given.train_batch_size * given.gradient_accumulation_steps
            ),
            "on_step_end": self.asks,
            "on_evaluate": self.asks,
            "on_save": self.asks,
            "on_log": self.asks,
            "on_epoch_end": self.rests,
            "on_train_end": self.flush,
        }
        return _callback(base, hooks)


def _callback(base: type, hooks: dict[str, Callable[..., Any]]) -> Any:
    """Return an object of a class derived from `base` with these hooks; those of ours that take nothing get nothing."""

    def calling(function: Callable[..., Any]) -> Callable[..., None]:
        plain = not inspect.signature(function).parameters

        def hook(self: Any, *args: Any, **kwargs: Any) -> None:
            function() if plain else function(*args, **kwargs)

        return hook

    return type("StokerMonitor", (base,), {name: calling(function) for name, function in hooks.items()})()


def _rows(batch: Any) -> int:
    """Return the number of samples of a batch: the length of its first part that has one."""
    for _ in range(8):
        if hasattr(batch, "shape"):
            return int(batch.shape[0]) if len(batch.shape) else 1
        if hasattr(batch, "values") and hasattr(batch, "keys"):
            parts = list(batch.values())
        elif isinstance(batch, (list, tuple)):
            parts = list(batch)
        else:
            return 1
        if not parts:
            return 0
        if isinstance(parts[0], (str, bytes, int, float)):
            return len(parts)
        batch = parts[0]
    return 1


def _writing(writer: Any, prefix: str) -> Callable[[dict[str, float], int], Any]:
    """Return a function that writes numbers at a step."""
    if hasattr(writer, "add_scalar"):

        def to_tensorboard(values: dict[str, float], step: int) -> None:
            for name, value in values.items():
                writer.add_scalar(prefix + name, value, step)

        return to_tensorboard
    log = getattr(writer, "log", None)
    if callable(log):
        # W&B then adds them to the program's next call, and its count of steps stays the program's.
        later = {"commit": False} if "commit" in inspect.signature(log).parameters else {}
        return lambda values, step: log({prefix + name: value for name, value in values.items()}, **later)
    if callable(writer):
        return lambda values, step: writer({prefix + name: value for name, value in values.items()}, step)
    raise TypeError(
        f"stoker.monitor() takes an object with add_scalar (TensorBoard) or log (W&B), or a function of a dict and a step, "
        f"not {type(writer).__name__}"
    )


def monitor(writer: Any, *, every: float = 10.0, prefix: str = "stoker/") -> Monitor:
    """Write how long training waits for data, while it runs.

    Args:
        writer: TensorBoard's SummaryWriter, W&B's module or run, or a function that is called with a dict of numbers and
            the number of batches so far.
        every: Seconds of training between two writes.
        prefix: What the names begin with: stall_share, the share of the time in which training waits for its next batch;
            samples_per_second; batches_ready, how many batches torch's worker processes had made when one was asked for,
            where that is known; gpu_busy, the share of the time in which a kernel ran, by the driver, if CUDA is in use.

    Returns:
        A Monitor. Take the batches through it, or give its callback to Lightning or to Hugging Face's Trainer.

    Raises:
        TypeError, ValueError: `writer` takes no numbers; `every` is negative.

    >>> def written(values, step):
    ...     print(step, sorted(values))
    >>> monitor = stoker.monitor(written, every=0)
    >>> for batch in monitor([[1, 2], [3, 4]]):
    ...     pass
    1 ['stoker/samples_per_second', 'stoker/stall_share']
    2 ['stoker/samples_per_second', 'stoker/stall_share']
    >>> round(monitor.last["stall_share"]) in (0, 1)
    True
    """
    if not every >= 0:
        raise ValueError(f"every={every!r} is not a number of seconds from 0")
    return Monitor(writer, float(every), prefix)
