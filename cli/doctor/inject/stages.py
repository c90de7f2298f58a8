# SPDX-License-Identifier: Apache-2.0
# Stages: how the time of a batch is spent, each without nested stages. Part of watch.py (see embed.py).


class _Job:
    """A batch being made."""

    __slots__ = ("active", "batch", "bytes", "calls", "cpu", "cpus", "loader", "measured", "nested", "nested_cpu", "ns")
    __slots__ += ("opened", "samples", "slow", "slow_index", "start", "swaps", "timed")

    def __init__(self, batch: int, loader: int) -> None:
        self.batch, self.loader, self.active, self.swaps = batch, loader, True, False
        self.ns, self.cpus, self.measured, self.calls = [0] * 6, [0] * 6, [0] * 6, [0] * 6
        self.nested = self.nested_cpu = self.opened = self.bytes = self.samples = self.timed = self.slow = 0
        self.slow_index = _UNKNOWN
        self.cpu, self.start = _cpu_clock(), _clock()


_every = 1  # the stages of one in this many samples are measured
_stage_cost = 2000  # ns per measured call; calibrated below
_wrapped: dict = {}  # id of a function -> (function, wrapper)
_swaps: list = []  # (namespace, name, function, wrapper): installed while batches are made
_swapped = 0  # number of jobs that have installed them
_unused = 0  # consecutive batches that called none of them: they are then installed for some batches only
_modules_seen = 0
_modules_known: set = set()
_dataset_seen = None  # the data set whose attributes were looked at last, and their number
_plan: dict = {}  # module -> its functions to time
for _kind, _text in _STAGES.items():
    for _entry in _text.split():
        _plan.setdefault(_entry.partition(":")[0], []).extend((_kind, p) for p in _entry.partition(":")[2].split(","))
_swap_lock = _thread.RLock()


def _stage(kind: int, function):
    place = kind - READ
    opens = getattr(function, "__name__", "") in _OPENS_BY_ITSELF

    def timed(*args, **kwargs):
        job = _local.job
        if job is None or not job.active:
            return function(*args, **kwargs)
        calls = job.calls[place]
        job.calls[place] = calls + 1
        with_cpu = calls < 4 or not calls & 15
        outer, outer_cpu = job.nested, job.nested_cpu
        job.nested = job.nested_cpu = 0
        cpu = _cpu_clock() if with_cpu else 0
        start = _clock()
        try:
            return function(*args, **kwargs)
        finally:
            whole = _clock() - start
            own = whole - job.nested
            job.ns[place] += own
            if with_cpu:
                cpu = _cpu_clock() - cpu
                job.cpus[place] += cpu - job.nested_cpu
                job.measured[place] += own
            else:
                cpu = job.nested_cpu + own * job.cpus[place] // (job.measured[place] or 1)
            job.nested, job.nested_cpu = outer + whole, outer_cpu + cpu
            if opens and args:
                _count_open(job, args[0])

    return functools.update_wrapper(timed, function)


def _count_open(job: _Job, path) -> None:
    try:
        if isinstance(path, (str, bytes, os.PathLike)):
            job.opened += 1
            job.bytes += os.stat(path).st_size
    except (OSError, ValueError):
        pass


class _Raw(io.FileIO):
    """The raw file below open() in a data set: times reads, and changes nothing else."""


def _plain_open(function):
    """open() with a _Raw file, if the program cannot notice the difference."""

    def opened(file, mode, buffering, encoding, errors, newline, closefd, opener):
        plain = mode in ("r", "rt") or mode in ("rb", "br") and encoding is errors is newline is None
        if not plain or buffering != -1 or not closefd or opener or not isinstance(file, (str, bytes, os.PathLike)):
            return function(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = _Raw(file, "r")
        try:
            status = os.fstat(raw.fileno())
            size = status.st_blksize if status.st_blksize > 1 else io.DEFAULT_BUFFER_SIZE
            if sys.version_info >= (3, 14):
                size = max(min(size, 8 << 20), io.DEFAULT_BUFFER_SIZE)
            out = io.BufferedReader(raw, size)
            if "b" not in mode:
                out = io.TextIOWrapper(out, encoding, errors, newline)
                out.mode = mode
            _local.job.opened += 1
            _local.job.bytes += status.st_size
            return out
        except BaseException:
            raw.close()
            raise

    timed = _stage(READ, opened)

    def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        job = _local.job
        which = function if job is None or not job.active else timed
        return which(file, mode, buffering, encoding, errors, newline, closefd, opener)

    open._stoker_watched = True
    return functools.update_wrapper(open, function)


def _look_for_stages(dataset) -> None:
    """Wraps what exists of _STAGES: methods permanently, functions only while batches are made (so that a function
    in a data set can still be pickled by name)."""
    global _dataset_seen, _modules_seen, _spent
    if len(sys.modules) != _modules_seen:
        with _swap_lock:
            began = _cpu_clock()
            new = [name for name in list(sys.modules) if name not in _modules_known]
            _modules_seen = len(sys.modules)
            _modules_known.update(new)
            for name in new:
                for kind, path in _plan.get(name, ()):
                    _wrap(kind, sys.modules.get(name), path)
            if id(builtins.open) not in _wrapped and not hasattr(builtins.open, "_stoker_watched"):
                _wrapped[id(builtins.open)] = (builtins.open, _plain_open(builtins.open))
                _Raw.readinto, _Raw.readall = _stage(READ, io.FileIO.readinto), _stage(READ, io.FileIO.readall)
            places = _places_of_functions(new)
            _swaps.extend(places)
            if _swapped:
                _put_functions(True, places)
            _spent += _cpu_clock() - began
    fields = getattr(dataset, "__dict__", {})
    if (id(dataset), len(fields)) == _dataset_seen:
        return
    _dataset_seen = (id(dataset), len(fields))
    for name, value in list(fields.items())[:64]:
        if any(word in name for word in ("transform", "augment", "tokeniz", "processor")) and callable(value):
            kind = type(value)
            home = kind.__module__.partition(".")[0]  # a module of torch.nn may be compiled as part of a model
            if home not in ("builtins", "functools", "torch") and "Compose" not in kind.__name__:
                _wrap_method(TRANSFORM, kind, "forward" if hasattr(kind, "forward") else "__call__")


def _wrap(kind: int, owner, path: str) -> None:
    """The function, or method of a class, named `path` in a module. Does not trigger lazy loading of modules."""
    name, _, method = path.partition(".")
    function = getattr(owner, "__dict__", {}).get(name)
    if method and isinstance(function, type) and hasattr(function, method):
        _wrap_method(kind, function, method)
    elif not method and callable(function) and not isinstance(function, type):
        _wrapped.setdefault(id(function), (function, _stage(kind, function)))


def _places_of_functions(modules: list) -> list:
    """The places of a function to time: its module, and names in the modules of the program."""
    out = []
    for name in modules:
        names = getattr(sys.modules.get(name), "__dict__", {})
        file = names.get("__file__")
        own = isinstance(file, str) and "-packages" + os.sep not in file and not file.startswith(_LIBRARY)
        if name in _plan or name in ("__main__", "builtins", "io") or own and file != __file__:
            for key, value in list(names.items()):
                found = _wrapped.get(id(value))
                if found is not None and found[0] is value:
                    out.append((names, key, *found))
    return out


def _wrap_method(kind: int, owner: type, name: str) -> None:
    function = getattr(owner, name)
    if not hasattr(function, "_stoker_stage"):
        timed = _stage(kind, function)
        timed._stoker_stage = kind
        try:
            setattr(owner, name, timed)
        except (AttributeError, TypeError):
            pass  # implemented in C


def _put_functions(timed: bool, places: list) -> None:
    for namespace, name, function, wrapper in places:
        if namespace.get(name) is (function if timed else wrapper):
            namespace[name] = wrapper if timed else function


def _swap(step: int) -> None:
    global _swapped
    with _swap_lock:
        before, _swapped = _swapped, _swapped + step
        if not before or not _swapped:
            _put_functions(_swapped > 0, _swaps)


@_guarded
def _begin_job(dataset):
    if _local.job is not None:
        return None
    me = _me or _process()
    _look_for_stages(dataset)
    entered = _clock()
    swaps = not _swapped if me.role == "worker" else _unused < 8 or not _local.batch & 15  # a worker keeps them
    if swaps:
        _swap(1)
    _local.job = job = _Job(_local.batch, _local.loader)
    job.swaps = swaps and me.role != "worker"
    _charge(job.start - entered)
    return job


def _charge(ns: int) -> None:
    global _spent
    _spent += ns if ns < _LONG else _LONG


def _sampled(job: _Job, index, start: int) -> int:
    """A sample is finished; returns the current time."""
    now = _clock()
    job.samples += 1
    if job.active:
        job.timed += 1
    if now - start > job.slow:
        job.slow, job.slow_index = now - start, index
    job.active = not (job.samples + job.batch) % _every
    return now


@_guarded
def _end_job(job, done: bool):
    global _every, _spent, _unused
    end, cpu, me = _clock(), _cpu_clock(), _me
    _local.job = None
    if job.swaps:
        _swap(-1)
    _unused = 0 if any(job.calls[:5]) else _unused + 1
    if not done:
        return
    batch, loader, start, dur = job.batch, job.loader, job.start, end - job.start
    index = job.slow_index
    me.write(FETCH, start, dur, batch, loader, job.samples, (cpu - job.cpu) // 1000)
    rest = dur  # when samples are extrapolated, never more than the total
    for place in range(6):
        calls = job.calls[place]
        if calls:
            scale = job.samples / job.timed if job.timed and place != COLLATE - READ else 1.0
            used = job.cpus[place] * job.ns[place] // (job.measured[place] or 1)
            part = min(int(scale * job.ns[place]), rest)
            rest -= part
            me.write(READ + place, start, part, batch, loader, round(scale * calls), max(0, int(scale * used) // 1000))
    if job.opened:
        scale = job.samples / job.timed if job.timed else 1.0
        me.write(OPENED, start, 0, batch, loader, round(scale * job.opened), int(scale * job.bytes) >> 10)
    if job.slow:
        known = isinstance(index, int) and 0 <= index < _UNKNOWN
        me.write(SLOWEST, start, job.slow, batch, loader, index if known else _UNKNOWN)
    me.flush()
    cost = sum(job.calls) * _stage_cost
    if cost * _SHARE > dur and _every < 64:
        _every *= 2
    elif cost * _SHARE * 4 < dur and _every > 1:
        _every //= 2
    _spent += cost + 200 * job.samples
    _charge(_clock() - end)


def _calibrate() -> None:
    """Measures the cost of one stage call on this machine."""
    global _stage_cost
    nothing, _local.job = _stage(READ, len), _Job(0, 0)
    start = _clock()
    for _ in range(64):
        nothing(())
    _stage_cost, _local.job = (_clock() - start) // 64, None


def _fetch_of_map(original):
    by_list = "__getitems__" in original.__code__.co_consts or "__getitems__" in original.__code__.co_names

    def fetch(self, possibly_batched_index):
        job = _begin_job(self.dataset)
        if job is None:
            return original(self, possibly_batched_index)
        done = False
        try:
            if not self.auto_collation:
                data = self.dataset[possibly_batched_index]
                _sampled(job, possibly_batched_index, job.start)
            elif by_list and hasattr(self.dataset, "__getitems__") and self.dataset.__getitems__:
                data = self.dataset.__getitems__(possibly_batched_index)
                job.samples = job.timed = len(possibly_batched_index)
            else:
                data, now = [], job.start
                for idx in possibly_batched_index:
                    data.append(self.dataset[idx])
                    now = _sampled(job, idx, now)
            job.active = True
            data = _collate(self.collate_fn, data)
            done = True
            return data
        finally:
            _end_job(job, done)

    return functools.update_wrapper(fetch, original)


def _fetch_of_iterable(original):
    def fetch(self, possibly_batched_index):
        if self.ended:
            raise StopIteration
        job = _begin_job(self.dataset)
        if job is None:
            return original(self, possibly_batched_index)
        done = False
        try:
            if self.auto_collation:
                data, now = [], job.start
                for _ in possibly_batched_index:
                    try:
                        data.append(next(self.dataset_iter))
                    except StopIteration:
                        self.ended = True
                        break
                    now = _sampled(job, _UNKNOWN, now)
                if len(data) == 0 or (self.drop_last and len(data) < len(possibly_batched_index)):
                    raise StopIteration
            else:
                data = next(self.dataset_iter)
                _sampled(job, _UNKNOWN, job.start)
            job.active = True
            data = _collate(self.collate_fn, data)
            done = True
            return data
        finally:
            _end_job(job, done)

    return functools.update_wrapper(fetch, original)


def _whole(original, count):
    """Any other function that makes a batch; count(args) is its number of samples."""

    def fetch(self, *args):
        job = _begin_job(getattr(self, "_dataset", None))
        done = False
        try:
            data = original(self, *args)
            done = data is not None
            return data
        finally:
            if job is not None:
                if not job.samples:
                    job.samples = job.timed = count(args)
                _end_job(job, done)

    return functools.update_wrapper(fetch, original)
