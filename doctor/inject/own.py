# SPDX-License-Identifier: Apache-2.0
# Stoker's loader: the counters of its engine, and its worker processes. Part of watch.py.


def _native_begin(original):
    """An epoch of the engine begins: its calls are timed in the iterator."""

    def _begin(self):
        start = _clock()
        original(self)
        _watch_native(self, start)

    return functools.update_wrapper(_begin, original)


def _native_iterate(original):
    def iterate(self):
        iterator = original(self)
        _whose(self, iterator)
        return iterator

    return functools.update_wrapper(iterate, original)


@_guarded
def _whose(native, iterator):
    """The iterator must not keep its loader alive, so the loader is looked up in each call."""
    for reference, _ in list(_made_at.values()):
        loader = reference()
        if loader is not None and getattr(loader, "_native", None) is native:
            _process()
            iterator._stoker_watch = _known(loader)


@_guarded
def _watch_native(iterator, start):
    known = getattr(iterator, "_stoker_watch", None)
    if known is not None:
        _process().write(ITER, start, _clock() - start, _UNKNOWN, known.number)
        iterator._next = functools.partial(_native_next, iterator._next, iterator._engine, known, [0])


def _native_next(take, engine, known, count):
    call = _begin_native(known, count)
    try:
        batch = take()
    except BaseException as error:
        if call is not None:
            _end_next(call, None, None, error)
        raise
    if call is not None:
        _end_next(call, None, batch, StopIteration() if batch is None else None)
        _native_stages(known, engine, batch is None)
    return batch


@_guarded
def _begin_native(known, count):
    count[0] += 1
    return _open_call(_clock(), known, None, count[0] - 1, _FIRST if count[0] == 1 else 0)


@_guarded
def _native_stages(known, engine, ended):
    """Reads the counters of the engine once per second: every batch made since then gets the mean."""
    now = _clock()
    if now - known.looked < 1_000_000_000 and not ended:
        return
    raw, before, me = engine.stats(), known.native, _process()
    if raw["batches"] < before.get("batches", 0):
        before = {}
    batches = raw["batches"] - before.get("batches", 0)
    if batches:
        stages = raw["stage_ns"]
        ns = {name: (stages[name] - before.get(name, 0)) // batches for name in ("read", "decode", "augment")}
        samples = (raw["samples"] - before.get("samples", 0)) // batches
        for number in range(raw["batches"] - min(batches, 32), raw["batches"]):
            busy = ns["decode"] + ns["augment"]
            me.write(FETCH, now, busy + ns["read"], number, known.number, samples, busy // 1000)
            for kind, name in ((READ, "read"), (DECODE, "decode"), (TRANSFORM, "augment")):
                me.write(kind, now, ns[name], number, known.number, samples, 0 if kind == READ else ns[name] // 1000)
        if not known.native and raw["slots"]:
            _say(f"loader.{known.number}.batch_bytes", raw["slot_bytes"] // raw["slots"])
            _say(f"loader.{known.number}.workers", raw["workers"])
        known.native = {**stages, "batches": raw["batches"], "samples": raw["samples"]}
    known.looked = now
    _charge(_clock() - now)


def _stoker_fetch(original):
    timed = _whole(original, lambda args: len(args[0]) if isinstance(args[0], (list, tuple)) else 1)

    def fetch(self, *args):
        if not hasattr(self._collate, "_stoker_watched"):
            self._collate = _mark(_stage(COLLATE, self._collate, 0, "collate"))
        return timed(self, *args)

    return functools.update_wrapper(fetch, original)


def _stoker_sample(original):
    def _sample(self, index, *args):
        start, job = _clock(), _local.job
        out = original(self, index, *args)
        if job is not None:
            _sampled(job, index, start)
        return out

    return functools.update_wrapper(_sample, original)


def _stoker_worker(original):
    def begin(self):
        started = _local.starting
        _begin_worker(self.number, self.job.base_seed, started and started.number)
        return original(self)

    return functools.update_wrapper(begin, original)


def _stoker_batch(original):
    def _fetch(self, *args):
        _local.batch = getattr(self, "batch", _UNKNOWN)
        return original(self, *args)

    return functools.update_wrapper(_fetch, original)


def _stoker_pack(original):
    def pack(*args):
        start, cpu = _clock(), _cpu_clock()
        out = original(*args)
        _put(start, cpu, _local.batch, _local.loader)
        return out

    return functools.update_wrapper(pack, original)


@_guarded
def attach():
    """Called by Stoker's modules when they are imported."""
    _prepare()
    base = getattr(sys.modules.get("stoker.dataloader"), "_Base", None)
    for module, path, make in (
        ("stoker._engine.native", "Native.iterate", _native_iterate),
        ("stoker._engine.native", "EpochIterator._begin", _native_begin),
        ("stoker.dataloader", "DataLoader._get_iterator", _new_iterator),
        ("stoker._workers.epoch", "SingleIterator._next_data", _next),
        ("stoker._workers.iterator", "WorkerIterator._next_data", _next),
        ("stoker._workers.iterator", "WorkerIterator._reset", _new_iterator),
        ("stoker._workers.tensor_datasets", "Gather.fetch", lambda original: _whole(original, lambda args: len(args[0]))),
        ("stoker._workers.fetch", "Fetcher.fetch", _stoker_fetch),
        ("stoker._workers.fetch", "Fetcher._sample", _stoker_sample),
        ("stoker._workers.early_rows", "Rows.put", lambda original: _stage(COLLATE, original, 0, "collate")),
        ("stoker._workers.process", "_Worker.begin", _stoker_worker),
        ("stoker._workers.process", "_Worker._fetch", _stoker_batch),
        ("stoker._workers.process", "pack", _stoker_pack),
    ):
        _replace(sys.modules.get(module), path, make)
    if base is not None:
        _replace(base, "__init__", _noting)
