# SPDX-License-Identifier: Apache-2.0
# `stoker run --try-stoker`: when the program has ended, samples that it used are made once more, by torch's loader and by
# Stoker's. A forked child makes them, as a worker would: what it draws, prints and changes is its own. Part of watch.py.

_TRY = os.environ.get("STOKER_TRY") == "1"
_TRIED, _TRIED_AT_ONCE = 128, 16  # samples; those of one measurement
_TRY_LONG, _TRY_LONGEST = 8.0, 60.0  # seconds after which no further measurement begins, and after which the child is ended

_recipes: dict = {}  # number of a loader -> _Recipe


class _Recipe:
    """What a loader is made of. The loader itself is not kept: its workers must end when the program drops it."""

    def __init__(self, loader) -> None:
        self.kind, self.dataset, self.batch_size = type(loader), loader.dataset, loader.batch_size
        self.batched = loader.batch_size is not None or getattr(loader, "batch_sampler", None) is not None
        self.collate_fn, self.worker_init_fn = loader.collate_fn, getattr(loader, "worker_init_fn", None)
        self.workers, self.pinned = loader.num_workers, bool(loader.pin_memory)
        self.iterable = isinstance(loader.dataset, sys.modules["torch.utils.data"].IterableDataset)
        self.drawn, self.used = 0, deque(maxlen=_TRIED)  # batches drawn for training; the last samples of them

    def samples(self) -> list:
        try:
            return list(self.used) or list(range(min(len(self.dataset), _TRIED)))
        except TypeError:
            return []


@_guarded
def _keep_recipe(loader, known):
    if not hasattr(loader, "_native"):
        before = _recipes.get(known.number)
        _recipes[known.number] = recipe = _Recipe(loader)
        if before is not None:
            recipe.drawn, recipe.used = before.drawn, before.used


@_guarded
def _note_used(known, drawn):
    recipe = _recipes.get(known.number)
    if recipe is not None and (_torch is None or _torch.is_grad_enabled()):
        recipe.drawn += 1
        if not recipe.batched:
            recipe.used.append(drawn)
        elif isinstance(drawn, (list, tuple)):  # an iterator would be used up
            recipe.used.extend(drawn)


def _try_stoker() -> None:
    """In the training process, of all ranks in the first."""
    if not (_TRY and _on and _recipes) or _me is None or _me.role != "trainer" or os.environ.get("RANK", "0") != "0":
        return
    number = max(_recipes, key=lambda key: _recipes[key].drawn)
    try:
        failed = getattr(sys, "last_type", None)  # whoever stops a program does not want to wait for it
        said = f"error the program ended with {failed.__name__}" if failed else _answer_of_child(_recipes[number])
        lines = said.splitlines()
    except BaseException as error:  # Ctrl-C, too: the program has ended
        lines = [f"error {_failure_text(error)}"]
    try:
        _note_tried(number, lines)
    except Exception as error:
        _fail(error)


def _note_tried(number: int, lines: list) -> None:
    """Lines are "KEY TEXT", and measurements "made SAMPLES NS CPU_NS NS CPU_NS": torch's and ours."""
    block, now = 0, _clock()
    for line in lines or ["error the attempt ended without a result"]:
        key, _, text = line.partition(" ")
        if key != "made":
            _say(f"loader.{number}.try.{key}", text)
            continue
        count, *times = map(int, text.split())
        for kind, wall, cpu in ((TRIED_TORCH, *times[:2]), (TRIED_STOKER, *times[2:])):
            _me.write(kind, now, wall, block, number, count, cpu // 1000)
        block += 1


def _answer_of_child(recipe) -> str:
    import signal
    import warnings

    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other threads, which a forked child does not have
        child = os.fork()
    if not child:
        _be_the_child(recipe, writing)
    os.close(writing)
    answer, deadline, pipe = b"", time.monotonic() + _TRY_LONGEST, select.poll()
    pipe.register(reading, select.POLLIN)
    try:
        while pipe.poll(max(0.0, deadline - time.monotonic()) * 1000):
            part = os.read(reading, 65536)
            if not part:
                return answer.decode("utf-8", "replace")
            answer += part
        return f"error samples took longer than {_TRY_LONGEST:.0f} s"
    finally:
        os.close(reading)
        try:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        except OSError:
            pass  # a handler of the program has waited for it


def _be_the_child(recipe, writing: int) -> None:
    """Does not return."""
    global _on
    try:
        import signal

        _on = False
        _put_methods_back()
        gc.disable()  # a collection might close files of the program, and write what they hold a second time
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.alarm(int(_TRY_LONGEST) + 10)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        lines = _tried(recipe)
    except BaseException as error:
        lines = [f"error {_failure_text(error)}"]
    try:
        os.write(writing, "\n".join(lines).encode("utf-8", "replace")[:65536])
    finally:
        os._exit(0)


def _tried(recipe) -> list:
    torch, data = sys.modules["torch"], sys.modules["torch.utils.data"]
    if recipe.kind is not sys.modules["torch.utils.data.dataloader"].DataLoader:
        return [f"error {recipe.kind.__qualname__} is a class of its own, which python -m stoker leaves as it is"]
    torch.set_num_threads(1)  # as workers have
    try:
        import stoker
    except ImportError:
        return ["error Stoker is not installed in the Python that ran the program: pip install stoker"]
    samples, chosen = recipe.samples(), []
    size = min(recipe.batch_size or _TRIED_AT_ONCE, _TRIED_AT_ONCE) if recipe.batched else None
    common = {"batch_size": size, "collate_fn": recipe.collate_fn}
    if not recipe.iterable:
        common["sampler"] = chosen  # filled in before each pass
    arguments = {**common, "worker_init_fn": recipe.worker_init_fn, "order": "torch"}
    ours = stoker.DataLoader(recipe.dataset, num_workers=recipe.workers or "auto", **arguments)
    plan = "engine" if ours._native is not None else "python" if ours._gathered() is None else "rows"
    lines = [f"plan {plan}", f"workers {ours.num_workers if plan != 'rows' else 0}"]
    if plan == "engine" and recipe.pinned and not stoker._engine.device_batches.refused(None):
        lines += ["device cuda"]  # which is not tried: the GPU is the program's
    if plan == "python":
        lines += [f"why {' '.join(str(ours._why_python[0]).split())}"[:480]]
    if plan != "engine":
        ours = stoker.DataLoader(recipe.dataset, num_workers=0, **arguments)
        _be_a_worker(recipe, torch, data)
    theirs = sys.modules["torch.utils.data.dataloader"].DataLoader(recipe.dataset, **common)
    passes = _Passes(theirs), _Passes(ours)
    if not recipe.iterable and not samples:
        return [*lines, "error the dataset has no samples"]
    made = _of_stream(size or 1, *passes) if recipe.iterable else _of_samples(samples, chosen, *passes, plan == "engine")
    return [*lines, *(f"made {' '.join(map(str, times))}" for times in made)]


def _be_a_worker(recipe, torch, data) -> None:
    if recipe.workers:
        worker = data._utils.worker
        worker._worker_info = worker.WorkerInfo(
            id=0, num_workers=recipe.workers, seed=torch.initial_seed(), dataset=recipe.dataset
        )
        if recipe.worker_init_fn is not None:
            recipe.worker_init_fn(0)


class _Passes:
    """Takes all batches of a loader, or the next ones of a stream; returns wall and CPU time in ns, and the samples."""

    def __init__(self, loader) -> None:
        self.loader, self.iterator = loader, None

    def all(self) -> tuple:
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        for _ in self.loader:
            pass
        return time.monotonic_ns() - wall, time.process_time_ns() - cpu

    def some(self, batches: int) -> tuple:
        if self.iterator is None:
            self.iterator = iter(self.loader)
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        for _ in range(batches):
            try:
                next(self.iterator)
            except StopIteration:
                self.iterator = iter(self.loader)
                next(self.iterator)
        return time.monotonic_ns() - wall, time.process_time_ns() - cpu


def _of_samples(samples, chosen, theirs, ours, engine):
    """Both make the same samples in turn, so that a neighbour on the machine slows both down."""
    groups = [samples[at : at + _TRIED_AT_ONCE] for at in range(0, len(samples), _TRIED_AT_ONCE)]
    if len(groups) > 1 and len(groups[-1]) < _TRIED_AT_ONCE:
        groups.pop()
    for passes, first in ((ours, samples if engine else groups[0]), (theirs, groups[0])):
        chosen[:] = first  # not measured: memory grows, and files are opened
        passes.all()
    began = time.monotonic()
    for number, group in enumerate(groups):
        if number >= 2 and time.monotonic() - began > _TRY_LONG:
            return
        chosen[:] = group
        yield (len(group), *theirs.all(), *ours.all())


def _of_stream(size, theirs, ours):
    batches = max(1, _TRIED_AT_ONCE // size)
    theirs.some(1)
    ours.some(1)
    began = time.monotonic()
    for number in range(_TRIED // _TRIED_AT_ONCE):
        if number >= 2 and time.monotonic() - began > _TRY_LONG:
            return
        yield (batches * size, *theirs.some(batches), *ours.some(batches))
