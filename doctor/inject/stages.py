# SPDX-License-Identifier: Apache-2.0
# Stages: how the time of a batch is spent, each without nested stages. Part of watch.py (see embed.py).


class _Job:
    """A batch being made."""

    __slots__ = ("active", "batch", "bytes", "calls", "cpu", "cpus", "loader", "measured", "nested", "nested_cpu", "ns")
    __slots__ += ("opened", "reduced", "samples", "sizes", "shared", "slow", "slow_index", "start", "swaps", "timed")

    def __init__(self, batch: int, loader: int) -> None:
        self.batch, self.loader, self.active, self.swaps, self.reduced = batch, loader, True, False, False
        self.ns, self.cpus, self.measured, self.calls = [0] * 6, [0] * 6, [0] * 6, [0] * 6
        self.nested = self.nested_cpu = self.opened = self.bytes = self.samples = self.timed = self.slow = 0
        self.shared = None  # ns, calls, CPU ns
        self.slow_index, self.sizes = _UNKNOWN, {}  # sizes: (stage, elements worked on) -> ns
        self.cpu, self.start = _cpu_clock(), _clock()


_every = 1  # the stages of one in this many samples are measured
_stage_cost = 2000  # ns per measured call; calibrated below
_wrapped: dict = {}  # id of a function -> (function, wrapper)
_swaps: list = []  # (namespace, name, function, wrapper): installed while batches are made
_swapped = 0  # number of jobs that have installed them
_unused = 0  # consecutive batches that called none of them: they are then installed for some batches only
_modules_seen = 0
_modules_known: set = set()
_dataset_seen = None  # the dataset whose attributes were looked at last, and their number
_plan: dict = {}  # module -> its functions to time
for _kind, _text in _STAGES.items():
    for _entry in _text.split():
        _plan.setdefault(_entry.partition(":")[0], []).extend((_kind, p) for p in _entry.partition(":")[2].split(","))
_swap_lock = _thread.RLock()


def _stage(kind: int, function, data: int = 0):
    """Times the function as part of a stage; args[data] is what it works on."""
    place = kind - READ
    opens = getattr(function, "__name__", "") in _OPENS_BY_ITSELF
    sized = kind in (DECODE, TRANSFORM)

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
        out, start = None, _clock()
        try:
            out = function(*args, **kwargs)
            return out
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
            if sized and len(args) > data:
                _note_size(job, kind, own, args[data], out)
            if opens and args:
                _count_open(job, args[0])

    return functools.update_wrapper(timed, function)


def _elements(value) -> int:
    """Numbers in an image, a tensor or an array; 0: unknown."""
    try:
        size = getattr(value, "size", 0)
        if type(size) is tuple and hasattr(value, "getbands"):
            return size[0] * size[1] * len(value.getbands())
        if callable(size) and hasattr(value, "numel"):
            return value.numel()
        return size if type(size) is int else 0
    except Exception:
        return 0  # an object of the program


def _is_cut(data, out) -> bool:
    """Whether `out` is a crop of `data`, or the same image in another size. Anything else, a mean for example, is
    computed from all elements, so that none of them was there for nothing."""
    if hasattr(data, "getbands"):
        return hasattr(out, "getbands") or len(out.shape) == 3
    if hasattr(data, "untyped_storage"):
        view = out.untyped_storage().data_ptr() == data.untyped_storage().data_ptr()
    else:
        view = out.base is not None and (out.base is data or out.base is data.base)
    before, after = data.shape, out.shape
    image = len(before) == len(after) >= 3 and (before[0] == after[0] <= 4 or before[-1] == after[-1] <= 4)
    return view or image


@_guarded
def _note_size(job: _Job, kind: int, ns: int, data, out) -> None:
    """Notes how much data this call worked on. A transform that returns less than it gets is needed for that."""
    data = data[0] if type(data) in (tuple, list) and data else data  # (image, target), (sound, rate)
    out = out[0] if type(out) in (tuple, list) and out else out
    before, after = _elements(data), _elements(out)
    if kind == DECODE:
        before = after or before
    elif 0 < after < before:
        before = 0
        try:
            job.reduced = job.reduced or not _is_cut(data, out)
        except Exception:
            job.reduced = True  # an object of the program
    key = kind, before
    job.sizes[key] = job.sizes.get(key, 0) + ns


_wanted: dict = {}  # loader -> elements of a sample as it leaves the dataset; 0: unknown


@_guarded
def _note_wanted(job: _Job, batch) -> None:
    if job.sizes and job.samples and (job.loader not in _wanted or not job.batch & 15):
        _wanted[job.loader] = _weigh(batch)[2] // job.samples


def _discarded(job: _Job, kind: int, wanted: int) -> float:
    """Share of the time of a stage that was spent on elements that the samples no longer contain."""
    whole = lost = 0
    for (stage, elements), ns in job.sizes.items():
        if stage == kind:
            whole += ns
            lost += ns * (1 - wanted / elements) if elements > wanted else 0
    return lost / whole if whole > 0 else 0.0


_steps: dict = {}  # id of a Compose -> (the object, its steps, a copy whose steps are timed)


def _by_step(original):
    """Compose of torchvision: times each of its steps, since only that shows what is done before a crop."""

    def composed(self, *args, **kwargs):
        job = _local.job
        copied = _timed_steps(self, *args[:1]) if job is not None and job.active else None
        return original(self if copied is None else copied, *args, **kwargs)

    return functools.update_wrapper(composed, original)


@_guarded
def _timed_steps(compose, data=None):
    """A copy with timed steps. They are the same objects, so their state is that of the original."""
    steps = compose.transforms
    if type(compose).__module__.partition(".")[0] != "torchvision" or not isinstance(steps, (list, tuple)):
        return None  # a subclass may have state of its own
    if type(data).__module__.partition(".")[0] == "stoker":
        return None  # an image that is decoded later, by a plan made of these very steps
    known = _steps.get(id(compose))
    same = known is not None and known[0] is compose and len(known[1]) == len(steps)
    if not same or any(one is not other for one, other in zip(known[1], steps)):
        copied = copy.copy(compose)
        copied.transforms = [_stage(TRANSFORM, step.__call__) for step in steps]
        if len(_steps) >= 64:
            _steps.clear()
        known = _steps[id(compose)] = compose, list(steps), copied
    return known[2]


def _count_open(job: _Job, path) -> None:
    try:
        if isinstance(path, (str, bytes, os.PathLike)):
            job.opened += 1
            job.bytes += os.stat(path).st_size
    except (OSError, ValueError):
        pass


class _Raw(io.FileIO):
    """The raw file below open() in a dataset: times reads, and changes nothing else."""


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
    in a dataset can still be pickled by name)."""
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
        if any(word in name for word in ("transform", "augment", "tokeniz", "processor")):
            for step in value[:64] if isinstance(value, (list, tuple)) else [value]:
                _wrap_transform(step)


def _wrap_transform(value) -> None:
    kind = type(value)
    home = kind.__module__.partition(".")[0]  # a module of torch.nn may be compiled as part of a model
    if home == "torchvision" and "stoker" in sys.modules:
        return  # Stoker runs these steps itself if nobody has changed them
    if callable(value) and home not in ("builtins", "functools", "torch") and "Compose" not in kind.__name__:
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
        image = hasattr(owner, "getbands")  # its methods work on the object itself
        by_step = owner.__name__ == "Compose" and owner.__module__.partition(".")[0] == "torchvision"
        timed = _stage(kind, _by_step(function) if by_step else function, 0 if image else 1)
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
    index, wanted = job.slow_index, _wanted.get(loader)
    events = [(FETCH, start, dur, job.samples, (cpu - job.cpu) // 1000)]
    # Samples are extrapolated, but never to more than the total: if the measured ones were slow, all stages get less.
    collate = COLLATE - READ
    by_samples = job.samples / job.timed if job.timed else 1.0
    by_time = min(by_samples, max(1.0, (dur - job.ns[collate]) / (sum(job.ns[:collate]) or 1)))
    for place in range(6):
        calls = job.calls[place]
        if calls:
            scale, count = (1.0, calls) if place == collate else (by_time, round(by_samples * calls))
            used = job.cpus[place] * job.ns[place] // (job.measured[place] or 1)
            part = int(scale * job.ns[place])
            events.append((READ + place, start, part, count, max(0, int(scale * used) // 1000)))
            if wanted and (READ + place == DECODE or READ + place == TRANSFORM and not job.reduced):
                lost = int(_discarded(job, READ + place, wanted) * part)
                events.append((DISCARDED, start, lost, READ + place, 0))
    if job.shared:
        ns, calls, used = job.shared
        events.append((SHARED, start, ns, calls, used // 1000))
    if job.opened:
        events.append((OPENED, start, 0, round(by_samples * job.opened), int(by_samples * job.bytes) >> 10))
    if job.slow:
        known = isinstance(index, int) and 0 <= index < _UNKNOWN
        events.append((SLOWEST, start, job.slow, index if known else _UNKNOWN, 0))
    me.write_all(events, batch, loader)
    if me.collections:
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
    nothing, _local.job = _stage(TRANSFORM, len), _Job(0, 0)  # the costliest kind
    start = _clock()
    for _ in range(64):
        nothing(())
    _stage_cost, _local.job = (_clock() - start) // 64, None


def _samples_of(dataset, indices, job: _Job) -> list:
    """[dataset[i] for i in indices], and what _sampled() does, without a call for each sample."""
    data, clock, every, batch = [], _clock, _every, job.batch
    samples = timed = slow = 0
    slow_index, active, now = _UNKNOWN, True, job.start
    for index in indices:
        data.append(dataset[index])
        samples += 1
        timed += active
        before, now = now, clock()
        if now - before > slow:
            slow, slow_index = now - before, index
        if every > 1:
            job.active = active = not (samples + batch) % every
    job.samples, job.timed, job.slow, job.slow_index = samples, timed, slow, slow_index
    return data


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
                data = _samples_of(self.dataset, possibly_batched_index, job)
            job.active = True
            data = _collate(self.collate_fn, data)
            _note_wanted(job, data)
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
            _note_wanted(job, data)
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
                if done:
                    _note_wanted(job, data)
                _end_job(job, done)

    return functools.update_wrapper(fetch, original)
