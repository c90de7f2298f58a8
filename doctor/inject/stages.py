# SPDX-License-Identifier: Apache-2.0
# Stages: how the time of a batch is spent, each without nested stages. Part of watch.py (see embed.py).


class _Job:
    """A batch being made."""

    __slots__ = ("active", "batch", "bytes", "calls", "cpu", "cpus", "loader", "measured", "nested", "nested_cpu", "ns")
    __slots__ += ("opened", "reduced", "samples", "sizes", "shared", "slow", "slow_index", "start", "swaps", "timed")
    __slots__ += ("all_cpu", "archives", "operators", "within")

    def __init__(self, batch: int, loader: int) -> None:
        self.batch, self.loader, self.active, self.swaps, self.reduced = batch, loader, True, False, False
        self.ns, self.cpus, self.measured, self.calls = [0] * 6, [0] * 6, [0] * 6, [0] * 6
        self.nested = self.nested_cpu = self.opened = self.bytes = self.samples = self.timed = self.slow = 0
        self.operators: dict = {}  # (place of the stage, name) -> [calls, ns]
        self.within = None  # the key of the transform that runs
        self.shared = self.archives = None  # ns, calls, CPU ns
        self.slow_index, self.sizes = _UNKNOWN, {}  # sizes: (stage, elements worked on) -> ns
        self.all_cpu = time.process_time_ns() if _me is not None and _me.role == "trainer" else 0
        self.cpu, self.start = _cpu_clock(), _clock()


_every = 1  # the stages of one in this many samples are measured
_stage_cost = 2000  # ns per measured call; calibrated below
_wrapped: dict = {}  # id of a function -> (function, wrapper)
_swaps: list = []  # (namespace, name, function, wrapper): installed while batches are made
_methods: list = []  # (class, name, method or None if it is inherited): timed for good
_swapped = 0  # number of jobs that have installed them
_unused = 0  # consecutive batches that called none of them: they are then installed for some batches only
_modules_seen = 0
_modules_known: set = set()
_dataset_seen = None  # the dataset whose attributes were looked at last, and their number
_plan: dict = {}  # module -> its functions to time
for _kind, _text in _STAGES.items():
    for _entry in _text.split():
        _plan.setdefault(_entry.partition(":")[0], []).extend((_kind, p) for p in _entry.partition(":")[2].split(","))
for _entry in _ARCHIVES.split():
    _plan.setdefault(_entry.partition(":")[0], []).append((ARCHIVE, _entry.partition(":")[2]))
_swap_lock = _thread.RLock()


def _opening(function):
    """Times the opening of an archive, with all that it does: part of whatever stages that is."""

    def timed(*args, **kwargs):
        job = _local.job
        if job is None or not job.active or job.archives == ():
            return function(*args, **kwargs)
        ns, calls, used = job.archives or (0, 0, 0)
        job.archives = ()  # one that is opened inside is part of this one
        cpu, start = _cpu_clock(), _clock()
        try:
            return function(*args, **kwargs)
        finally:
            job.archives = ns + _clock() - start, calls + 1, used + _cpu_clock() - cpu

    return functools.update_wrapper(timed, function)


def _stage(kind: int, function, data: int = 0, name: str = "", holds_steps: bool = False):
    """Times the function as part of a stage; args[data] is what it works on."""
    if kind == ARCHIVE:
        return _opening(function)
    place, name = kind - READ, name or _name_of(function)
    fixed, typed, transforms = (place, name), kind in (READ, DECODE), kind == TRANSFORM
    begins = transforms and not holds_steps
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
        within = job.within
        if begins and within is None:
            job.within = fixed
            job.operators.setdefault(fixed, [0, 0])
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
            job.within = within
            if transforms and within is not None:  # a part of that transform
                job.operators[within][1] += own
            else:
                key = (place, name + _type_of(args[0], out)) if typed and args else fixed
                sums = job.operators.get(key)
                if sums is None:
                    job.operators[key] = [1, own]
                else:
                    sums[0] += 1
                    sums[1] += own
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
    """Notes how much data this call worked on. A transform that returns less than it gets is needed for that: -1."""
    data = data[0] if type(data) in (tuple, list) and data else data  # (image, target), (sound, rate)
    out = out[0] if type(out) in (tuple, list) and out else out
    before, after = _elements(data), _elements(out)
    if kind == DECODE:
        before = after or before
    elif 0 < after < before:
        before = -1
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


def _reduced(job: _Job) -> float:
    """Share of the time of the transforms that went into making images smaller."""
    whole = sum(ns for (stage, _), ns in job.sizes.items() if stage == TRANSFORM)
    return job.sizes.get((TRANSFORM, -1), 0) / whole if whole > 0 else 0.0


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
        copied.transforms = [_stage(TRANSFORM, step.__call__, 0, _name_of(step)) for step in steps]
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

    timed = _stage(READ, opened, 0, "open")

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
                _Raw.readinto, _Raw.readall = (
                    _stage(READ, io.FileIO.readinto, 0, "read"),
                    _stage(READ, io.FileIO.readall, 0, "read"),
                )
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
        home = getattr(owner, "__name__", "").rpartition(".")[2]
        _wrapped.setdefault(id(function), (function, _stage(kind, function, 0, f"{home}.{name}")))


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
        label = owner.__name__ if name in ("forward", "__call__") else f"{owner.__name__}.{name}"
        timed = _stage(kind, _by_step(function) if by_step else function, 0 if image else 1, label, by_step)
        timed._stoker_stage = kind
        timed._stoker_original = function  # for Stoker, which runs only what nobody has changed
        try:
            before = vars(owner).get(name)
            setattr(owner, name, timed)
            _methods.append((owner, name, before))
        except (AttributeError, TypeError):
            pass  # implemented in C


def _put_methods_back() -> None:
    for owner, name, function in _methods:
        if function is None:
            delattr(owner, name)
        else:
            setattr(owner, name, function)
    _methods.clear()


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
