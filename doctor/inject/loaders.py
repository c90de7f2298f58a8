# SPDX-License-Identifier: Apache-2.0
# Loaders: where they were created, and their settings. Part of watch.py.


class _Loader:
    """The number and the description of a loader."""

    def __init__(self, number: int, loader, site) -> None:
        self.number, self.site, self.seed, self.started, self.seen = number, site, None, 0, False
        self.alive = weakref.ref(loader)
        self.native = {}  # counters of Stoker's engine when they were last read
        self.looked = 0


_loaders: dict = {}  # identity of a loader -> _Loader
_made_at: dict = {}  # id of a loader -> (weak reference, where it was created)
_sites_of_data: dict = {}  # id of a dataset -> where its first loader was created


def _outside(frame):
    """The innermost frame that belongs to the program itself."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] not in _LIBRARIES and frame.f_code.co_filename != __file__:
            return frame
        frame = frame.f_back
    return None


def _call_text(file: str, line: int) -> str:
    """The call that begins on this line, up to its closing bracket."""
    text, depth = "", 0
    for number in range(line, line + 30):
        part = linecache.getline(file, number)
        text += part
        depth += sum(part.count(c) for c in "([{") - sum(part.count(c) for c in ")]}")
        if not part or depth <= 0:
            break
    return text.strip()[:1000]


@_guarded
def _note_site(loader):
    frame = _outside(sys._getframe(2))
    if frame is None:
        return
    site = (frame.f_code.co_filename, frame.f_lineno)
    data = id(getattr(loader, "dataset", None))
    if data in _sites_of_data:  # a framework created this one from the program's loader
        site = _sites_of_data[data] if "DataLoader" not in linecache.getline(*site) else site
    elif len(_sites_of_data) < 1024:
        _sites_of_data[data] = site
    key = id(loader)
    _made_at[key] = (weakref.ref(loader, lambda _: _made_at.pop(key, None)), site)


def _known(loader) -> _Loader:
    """The number and description of a loader; one that is created again at the same place keeps its number."""
    site = _made_at[id(loader)][1] if id(loader) in _made_at else ("", 0)
    data, sampler = loader.dataset, getattr(loader, "sampler", None)
    key = (site, type(data), loader.batch_size, loader.num_workers, type(sampler), loader.drop_last)
    found = _loaders.get(key)
    if found is None or found.alive() not in (None, loader):
        key = (*key, id(loader)) if found is not None else key
        found = _loaders.get(key)
    if found is None:
        found = _loaders[key] = _Loader(len(_loaders), loader, site)
        if found.number < _LOADERS:
            _describe(loader, found)
    found.alive = weakref.ref(loader)
    return found


def _describe(loader, known: _Loader) -> None:
    me, data, sampler = _process(), loader.dataset, getattr(loader, "sampler", None)
    kind = type(loader)
    context = getattr(loader, "multiprocessing_context", None)
    multiprocessing = sys.modules.get("multiprocessing")
    method = context.get_start_method() if context is not None else None
    if method is None and multiprocessing is not None:
        method = multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    native = getattr(loader, "_native", None)
    iterable = "Iterable" in type(sampler).__name__ or "Infinite" in type(sampler).__name__
    handles, objects = _inside(data)
    facts = {
        "class": f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}", "native": int(native is not None),
        "workers": loader.num_workers, "prefetch": getattr(loader, "prefetch_factor", None),
        "batch_size": _batch_size(loader), "pin_memory": int(bool(loader.pin_memory)),
        "persistent": int(bool(getattr(loader, "persistent_workers", False))),
        "in_order": int(bool(getattr(loader, "in_order", True))), "start_method": method,
        "drop_last": int(bool(loader.drop_last)), "samples": _length(data),
        "dataset": f"{type(data).__module__}.{type(data).__qualname__}", "iterable": int(iterable),
        "shuffle": int("Random" in type(sampler).__name__ or bool(getattr(sampler, "shuffle", False))
                       or bool(getattr(loader, "shuffle", False))),
        "file": known.site[0], "line": known.site[1], "source": _call_text(*known.site) if known.site[0] else None,
        "handles": handles, "objects": objects, "transform": _in_words(data),
    }  # fmt: skip
    if native is not None:
        facts["batches"] = native.length()
    elif not iterable:
        facts["batches"] = _length(getattr(loader, "_index_sampler", None))
    for key, value in facts.items():
        if value is not None and value != "":
            _say(f"loader.{known.number}.{key}", value)


def _batch_size(loader):
    if loader.batch_size is not None:
        return loader.batch_size
    return getattr(getattr(loader, "batch_sampler", None), "batch_size", None) or 1


def _length(value):
    try:
        return len(value)
    except Exception:
        return None


def _in_words(data, depth: int = 0) -> str:
    transform = getattr(data, "transform", None) or getattr(data, "transforms", None)
    if transform is None:
        inner = getattr(data, "dataset", None)
        return _in_words(inner, depth + 1) if inner is not None and depth < 4 else ""
    steps = transform if isinstance(transform, (list, tuple)) else getattr(transform, "transforms", None)
    name = getattr(transform, "__qualname__", type(transform).__qualname__)
    if isinstance(steps, (list, tuple)):
        name += "(" + ", ".join(type(step).__qualname__ for step in steps[:16]) + ")"
    return name[:240]


_HANDLES = {
    "h5py": "an open HDF5 file", "lmdb": "an open LMDB environment", "zipfile": "an open zip file",
    "tarfile": "an open tar file", "sqlite3": "a SQLite connection", "_io": "an open file",
}  # fmt: skip


def _inside(data) -> tuple:
    """Open handles in the attributes of the dataset, in words, and the number of Python objects in its containers."""
    handles, objects, seen, level = [], 0, set(), [("dataset", data)]
    for _ in range(4):
        following = []
        for path, value in level:
            if id(value) in seen or len(seen) > 512:
                continue
            seen.add(id(value))
            kind = type(value)
            home = kind.__module__.partition(".")[0]
            if home in ("builtins", "lmdb") and kind.__name__ in ("Environment", "Transaction"):
                home = "lmdb"
            if home in _HANDLES and not getattr(value, "closed", False) and getattr(value, "fp", value) is not None:
                if home not in ("_io", "zipfile") or hasattr(value, "fileno") or home == "zipfile":
                    handles.append(f"{_HANDLES[home]} at {path}")
            elif isinstance(value, (list, tuple, dict, set)):
                objects += len(value)
                if value and isinstance(value, (list, tuple)) and isinstance(value[0], (list, tuple)):
                    objects += len(value) * len(value[0])
                items = list(value.items())[:64] if isinstance(value, dict) else list(enumerate(value))[:64] \
                    if len(value) <= 4096 and not isinstance(value, set) else ()
                following += [(f"{path}[{key!r}]"[:80], each) for key, each in items]
            elif hasattr(value, "__dict__") and not isinstance(value, type) and not hasattr(value, "__code__"):
                following += [(f"{path}.{name}", each) for name, each in list(vars(value).items())[:64]]
        level = following
    return "; ".join(handles[:8]), objects


def _weigh(data) -> tuple:
    """The number of bytes, tensors and their elements in a batch."""
    size = count = elements = 0
    level = [data]
    for _ in range(512):
        if not level:
            break
        value = level.pop()
        if hasattr(value, "element_size") and hasattr(value, "numel"):
            size, count = size + value.element_size() * value.numel(), count + 1
            elements += value.numel()
        elif isinstance(getattr(value, "nbytes", None), int):
            size, count, elements = size + value.nbytes, count + 1, elements + _elements(value)
        elif isinstance(value, dict) or hasattr(value, "keys") and hasattr(value, "values"):
            level += list(value.values())[:64]
        elif isinstance(value, (list, tuple)):
            level += value[:64]
        elif isinstance(value, (str, bytes)):
            size += len(value)
    return size, count, elements
