# SPDX-License-Identifier: Apache-2.0
# Runs of `stoker tune`: other loader settings, replayed batches, or the loader alone. Part of watch.py.
#
# STOKER_PROBE is a list of "key=value", separated by ";":
#   at=FILE:LINE    the DataLoader call to change; without it, all of them
#   mode=time       train as usual
#   mode=replay     after `skip` batches, end the workers and repeat the last batches: the speed of training with a
#                   loader that is always ready
#   mode=loader     take batches as fast as possible, without training
#   skip=N          batches before the measured ones
#   seconds=S       the process ends after this time, without what the program would do at its end (checkpoints)
#   stoker=1        use Stoker's DataLoader instead of torch's
#   num_workers=, prefetch_factor=, pin_memory=, persistent_workers=, in_order=   settings of that loader
# The result is written to STOKER_RUN/probe-PID: "BATCHES SECONDS". Before that, STOKER_RUN/batches-PID gets a byte for
# each skipped batch and for the first measured one, so that who waits knows that the loader delivers.

_KEPT = 4  # batches that are replayed in turn
_WORDS = {"True": True, "False": False, "None": None, "auto": "auto"}


class _Probe:
    def __init__(self, asked: dict) -> None:
        self.mode = asked.get("mode", "time")
        self.at = asked.get("at", "")
        self.skip = int(asked.get("skip", "0"))
        self.seconds = float(asked.get("seconds", "0"))
        self.stoker = asked.get("stoker") == "1"
        names = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers", "in_order")
        given = {name: asked[name] for name in names if name in asked}
        self.settings = {name: _WORDS[text] if text in _WORDS else int(text) for name, text in given.items()}
        self.taken = 0
        self.began = None

    def meant(self, site) -> bool:
        return not self.at or f"{site[0]}:{site[1]}" == self.at

    def changed(self, original, loader, args, kwargs) -> dict:
        """The arguments of DataLoader() with our settings."""
        given = inspect.signature(original).bind_partial(loader, *args, **kwargs).arguments
        given.pop(next(iter(given)))
        given.update(given.pop("kwargs", {}))
        given.update(self.settings)
        if given.get("num_workers") == 0:
            for name in ("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context"):
                given.pop(name, None)
        return given

    def count(self) -> None:
        """Counts a batch; ends the process when there are enough."""
        self.taken += 1
        if self.taken <= self.skip + 1:
            with open(os.path.join(_RUN, f"batches-{os.getpid()}"), "ab", buffering=0) as file:
                file.write(b".")
        if self.taken <= self.skip:
            return
        if self.began is None:
            self.began = time.monotonic()
        elif self.seconds and time.monotonic() - self.began > self.seconds:
            self.end()

    def write(self) -> None:
        """Also called when the program ends normally."""
        if self.began is None or self.taken <= self.skip + 1:
            return
        took = time.monotonic() - self.began
        with open(os.path.join(_RUN, f"probe-{os.getpid()}"), "w") as file:
            file.write(f"{self.taken - self.skip - 1} {took:.6f}\n")
        self.began = None

    def end(self) -> None:
        self.write()
        _finish()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        os._exit(0)


class _Taken:
    """Replaces the iterator of a loader."""

    def __init__(self, probe: _Probe, iterator) -> None:
        self._probe, self._inner, self._kept, self._next = probe, iterator, [], 0

    def __iter__(self):
        return self

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    def __next__(self):
        probe = self._probe
        while probe.mode == "loader":
            try:
                next(self._inner)
            except StopIteration:
                if probe.taken > probe.skip + 1:
                    probe.end()  # the data are exhausted: report what was measured
                raise
            probe.count()
        if probe.mode == "replay" and len(self._kept) == _KEPT and probe.taken >= probe.skip:
            return self._again()
        batch = next(self._inner)
        probe.count()
        if probe.mode == "replay":
            self._kept = [*self._kept[1 - _KEPT :], batch]
        return batch

    def _again(self):
        """Returns an earlier batch; ends the workers, so that they use no CPU time during training."""
        inner, self._inner = self._inner, None
        if hasattr(inner, "_shutdown_workers"):
            inner._shutdown_workers()
        del inner
        self._probe.count()
        self._next += 1
        return self._kept[self._next % _KEPT]


def _probe_init(probe: _Probe, kind: type):
    def make(original):
        def __init__(self, *args, **kwargs):
            frame = _outside(sys._getframe(1))
            site = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
            if type(self) is not kind or not probe.meant(site):
                return original(self, *args, **kwargs)
            if not probe.stoker:
                return original(self, **probe.changed(original, self, args, kwargs))
            import stoker

            _replace(stoker, "DataLoader.__iter__", _probe_iter(probe))
            self.__class__ = stoker.DataLoader
            return stoker.DataLoader.__init__(self, **probe.changed(original, self, args, kwargs))

        return functools.update_wrapper(__init__, original)

    return make


def _probe_iter(probe: _Probe):
    def make(original):
        def __iter__(self):
            iterator = original(self)
            site = _made_at[id(self)][1] if id(self) in _made_at else ("", 0)
            # Stoker's __iter__ may call torch's: count each batch once.
            return _Taken(probe, iterator) if probe.meant(site) and type(iterator) is not _Taken else iterator

        return functools.update_wrapper(__iter__, original)

    return make


_probe = None


def _patch_probe(loader: type) -> None:
    """Not guarded: a run that cannot be probed must report the error."""
    global _probe, inspect
    if _probe is None:
        parts = (part.partition("=") for part in os.environ.get("STOKER_PROBE", "").split(";") if part)
        asked = {key: value for key, _, value in parts}
        if not asked:
            return
        import atexit
        import inspect

        _probe = _Probe(asked)
        atexit.register(_probe.write)
    for name, make in (("__init__", _probe_init(_probe, loader)), ("__iter__", _probe_iter(_probe))):
        setattr(loader, name, make(getattr(loader, name)))
