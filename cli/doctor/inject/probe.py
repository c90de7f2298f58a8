# SPDX-License-Identifier: Apache-2.0
"""Runs of `stoker tune`: a training program with other loader settings, replayed batches, or the loader alone.

Beside watch.py, which imports it when STOKER_PROBE is set and torch's DataLoader has been imported. STOKER_PROBE is a list of
"key=value" with ";" between:

    at=FILE:LINE    the DataLoader call that is meant, as the watch has named it
    mode=time       train as usual
    mode=replay     after `skip` batches end the workers and hand out the last batches again and again: the speed of
                    training with a loader that is always ready
    mode=loader     take batches as fast as they come, without training
    skip=N          batches before the measured ones
    steps=N, seconds=S   the process ends when so many batches have been measured, or after so long; nothing that the
                    program would do at its end (checkpoints) is done
    num_workers=, prefetch_factor=, pin_memory=, persistent_workers=, in_order=   settings of that loader
    install=1       Stoker's DataLoader in torch's place

What was measured is written to STOKER_RUN/probe-PID: "BATCHES SECONDS".
"""

import atexit
import inspect
import os
import sys
import time

KEPT = 4  # batches replayed, one after the other


def _asked():
    pairs = (part.partition("=") for part in os.environ.get("STOKER_PROBE", "").split(";") if part)
    return {key: value for key, _, value in pairs}


def _value(text):
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    return int(text)


class Probe:
    def __init__(self, asked, place):
        self.mode = asked.get("mode", "time")
        self.at = asked.get("at", "")
        self.skip = int(asked.get("skip", "0"))
        self.steps = int(asked.get("steps", "0"))
        self.seconds = float(asked.get("seconds", "0"))
        names = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers", "in_order")
        self.settings = {name: _value(asked[name]) for name in names if name in asked}
        self._place = place  # "FILE:LINE" of the DataLoader call that is on the stack
        self._taken = 0
        self._began = None

    def meant(self, place):
        return not self.at or place == self.at

    def changed(self, signature, args, kwargs):
        """The arguments of DataLoader() with our settings in their places."""
        given = signature.bind_partial(None, *args, **kwargs)
        arguments = {**given.arguments, **self.settings}
        if arguments.get("num_workers", 0) == 0:
            for name in ("prefetch_factor", "persistent_workers", "timeout"):
                arguments.pop(name, None)
        arguments.pop("self", None)
        return arguments

    def count(self):
        """One more batch; the process ends when there are enough."""
        self._taken += 1
        if self._taken <= self.skip:
            return
        now = time.monotonic()
        if self._began is None:
            self._began = now
            return
        enough = self.steps and self._taken - self.skip > self.steps
        if enough or (self.seconds and now - self._began > self.seconds):
            self.end()

    def write(self):
        if self._began is None or self._taken <= self.skip + 1:
            return
        took = time.monotonic() - self._began
        with open(os.path.join(os.environ["STOKER_RUN"], f"probe-{os.getpid()}"), "w") as file:
            file.write(f"{self._taken - self.skip - 1} {took:.6f}\n")
        self._began = None

    def end(self):
        self.write()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        os._exit(0)


class Taken:
    """In the place of a loader's iterator."""

    def __init__(self, probe, iterator):
        self._probe = probe
        self._inner = iterator
        self._kept = []
        self._next = 0

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._inner)

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __next__(self):
        probe = self._probe
        if probe.mode == "loader":
            while True:
                try:
                    next(self._inner)
                except StopIteration:
                    if probe._taken == 0:
                        raise
                    probe.end()  # the data ended: what was seen is all there is
                probe.count()
        if probe.mode == "replay" and len(self._kept) == KEPT and probe._taken >= probe.skip:
            return self._again()
        batch = next(self._inner)
        probe.count()
        if probe.mode == "replay":
            self._kept = [*self._kept[1 - KEPT :], batch]
        return batch

    def _again(self):
        """A batch that was there before; the workers end, so that they take no CPU from the training."""
        if self._inner is not None:
            stop = getattr(self._inner, "_shutdown_workers", None)
            self._inner = None
            if stop is not None:
                stop()
        self._probe.count()
        self._next += 1
        return self._kept[self._next % KEPT]


def install(dataloader, place):
    """Patches torch.utils.data.dataloader. `place()` gives "FILE:LINE" of the call of DataLoader that is on the stack."""
    asked = _asked()
    if not asked:
        return
    probe = Probe(asked, place)
    atexit.register(probe.write)  # the program may end before it was stopped
    if asked.get("install") == "1":
        import stoker

        stoker.install()
        classes = (stoker.DataLoader,)
    else:
        classes = (dataloader.DataLoader,)
    for loader_class in classes:
        _patch(loader_class, probe)


def _patch(loader_class, probe):
    make, iterate = loader_class.__init__, loader_class.__iter__
    signature = inspect.signature(make)

    def __init__(self, *args, **kwargs):
        where = probe._place()
        self.__dict__["_stoker_probe_at"] = where
        if probe.settings and probe.meant(where):
            return make(self, **probe.changed(signature, args, kwargs))
        return make(self, *args, **kwargs)

    def __iter__(self):
        iterator = iterate(self)
        if probe.meant(self.__dict__.get("_stoker_probe_at", "")):
            return Taken(probe, iterator)
        return iterator

    loader_class.__init__ = __init__
    loader_class.__iter__ = __iter__
