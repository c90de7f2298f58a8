# SPDX-License-Identifier: Apache-2.0
# Installs everything once torch is imported. The last part of watch.py.


def _mark(wrapper):
    wrapper._stoker_watched = True
    return wrapper


def _replace(owner, path: str, make) -> None:
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part, None)
    original = getattr(owner, name, None)
    if original is not None and not hasattr(original, "_stoker_watched"):
        setattr(owner, name, _mark(make(original)))


def _noting(original):
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        _note_site(self)

    return functools.update_wrapper(__init__, original)


_STATEFUL = "torchdata.stateful_dataloader.stateful_dataloader"
_prepared = False


def _prepare() -> None:
    global _prepared, _collate
    if _prepared:
        return
    _prepared = True
    import atexit

    _import_all()
    _collate = _stage(COLLATE, lambda function, data: function(data), 0, "collate")
    os.register_at_fork(after_in_child=_after_fork)
    atexit.register(_at_exit)
    _hide_frames()


def _at_exit() -> None:
    _finish()
    _try_stoker()


@_guarded
def _finish():
    if _me is not None:
        _stalls.collect(64)
        _flush_syncs(_me)
        _look_at_cuda(_me)
        for loader, known in _operators.items():
            _say_operators(loader, known)
        _me.flush()


@_guarded
def _patch_torch():
    """torch is imported. Parts that this version lacks are not measured."""
    global _torch
    _torch = torch = sys.modules["torch"]
    _prepare()
    process = sys.modules.get("multiprocessing.process")
    for owner, path, make in (
        (process, "BaseProcess.start", _start_process),
        (torch.amp.autocast_mode, "autocast.__enter__", _autocast),
        (torch.serialization, "save", _cost(SAVE)),
    ):
        _replace(owner, path, make)
    torch.save = torch.serialization.save
    optimizer = sys.modules.get("torch.optim.optimizer")
    if hasattr(optimizer, "register_optimizer_step_post_hook"):
        optimizer.register_optimizer_step_pre_hook(_before_step)
        optimizer.register_optimizer_step_post_hook(_after_step)
    if getattr(torch.version, "cuda", None) or getattr(torch.version, "hip", None):
        for name in ("to", "cuda", "cpu"):
            _replace(torch.Tensor, name, lambda original: _moves(original, torch))
        for name in ("item", "tolist", "__float__", "__int__", "__bool__"):
            _replace(torch.Tensor, name, lambda original: _waits(original, torch))
        for path in ("synchronize", "Stream.synchronize", "Event.synchronize"):
            _replace(torch.cuda, path, lambda original: _waits(original, torch, False))


def _patch_iterators(module, loader: str, prefix: str) -> None:
    for path, make in (
        (f"{loader}.__init__", _noting),
        (f"{loader}._get_iterator", _new_iterator),
        (f"_{prefix}SingleProcessDataLoaderIter._next_data", _next),
        (f"_{prefix}MultiProcessingDataLoaderIter._next_data", _next),
        (f"_{prefix}MultiProcessingDataLoaderIter._try_get_data", _take_from_queue),
        (f"_{prefix}MultiProcessingDataLoaderIter._reset", _new_iterator),
        (f"_{prefix}BaseDataLoaderIter._next_index", _drawing),
    ):
        _replace(module, path, make)


@_guarded
def _patch_loader():
    _prepare()
    module = sys.modules["torch.utils.data.dataloader"]
    _patch_iterators(module, "DataLoader", "")
    for owner, path, make in (
        (module._utils.fetch, "_MapDatasetFetcher.fetch", _fetch_of_map),
        (module._utils.fetch, "_IterableDatasetFetcher.fetch", _fetch_of_iterable),
        (module._utils.worker, "_worker_loop", _worker_loop),
        (module._utils.pin_memory, "_pin_memory_loop", _pin_loop),
        (module._utils.pin_memory, "pin_memory", _pinning),
    ):
        _replace(owner, path, make)


@_guarded
def _patch_stateful():
    """torchdata's loader has iterators and a worker loop of its own, with the same names for the same things."""
    module, worker = sys.modules[_STATEFUL], sys.modules[_STATEFUL.rpartition(".")[0] + ".worker"]
    _patch_iterators(module, "StatefulDataLoader", "Stateful")
    _replace(worker, "_worker_loop", _worker_loop)
    module._worker_loop = worker._worker_loop  # imported by name


def _patch_loader_and_probe() -> None:
    _patch_loader()
    _patch_probe(sys.modules["torch.utils.data.dataloader"].DataLoader)


def _patch_stateful_and_probe() -> None:
    _patch_stateful()
    _patch_probe(sys.modules[_STATEFUL].StatefulDataLoader)


class _Finder:
    """Waits for the modules to be imported; removes itself after the last one."""

    def __init__(self) -> None:
        self.wanted = {"torch": _patch_torch, "torch.utils.data.dataloader": _patch_loader_and_probe}
        self.wanted[_STATEFUL] = _patch_stateful_and_probe

    def find_spec(self, name, path=None, target=None):
        if name not in self.wanted:
            return None
        patch = self.wanted.pop(name)
        try:
            if not self.wanted:
                sys.meta_path.remove(self)
            for finder in sys.meta_path:
                spec = finder.find_spec(name, path, target) if finder is not self else None
                if spec is not None:
                    break
            else:
                return None
            loader = spec.loader
            execute = loader.exec_module

            def execute_and_patch(module):
                loader.__dict__.pop("exec_module", None)
                execute(module)
                patch()

            loader.exec_module = execute_and_patch
            return spec
        except (AttributeError, TypeError):
            return None


def _next_sitecustomize() -> None:
    """Imports the sitecustomize that ours hides. Python reports its exceptions as usual."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    own = os.path.realpath(os.path.dirname(__file__))
    spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.realpath(p or ".") != own])
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    if _RUN and os.environ.get("STOKER_OFF") != "1" and hasattr(os, "register_at_fork"):
        sys.modules["_stoker_watch"] = sys.modules[__name__]
        sys.meta_path.insert(0, _Finder())
    _next_sitecustomize()
