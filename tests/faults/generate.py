# SPDX-License-Identifier: Apache-2.0
"""Cases that nobody has written: drawn from a grammar of datasets, loaders, steps and causes, by a seed.

The truth follows from the numbers that are drawn: with batches of `work_ms` per sample in W workers, a step of `step_ms`
waits if and only if a batch takes longer than W steps. What lies near the limit is not drawn. The remedy is another
number of workers, or the same program without what is planted. What cannot be given a time (opening archives, decoding)
is drawn so large that it is late on any machine.
"""

from __future__ import annotations

import math
import random

from cases import Case

MAPS = (
    "map", "dicts", "batched", "files", "arrays", "mapped", "members", "table", "words", "records", "transformed", "subset",
    "joined",
)  # fmt: skip
STREAMS = ("stream", "shards")
DATASETS = (*MAPS, *STREAMS)
STORES = {
    "files": "drawn_texts", "shards": "drawn_texts", "arrays": "drawn_arrays", "mapped": "drawn_rows", "members": "drawn_zip",
    "table": "drawn_table", "shared": "drawn_bytes", "reopened": "drawn_large_zip", "photographs": "drawn_photographs_4000",
    "compressed": "drawn_gzip", "blocks": "drawn_blocks", "pieces": "drawn_pieces", "large": "drawn_large",
}  # fmt: skip
STEPS = 110
GAINLESS = ("duplicates", "seeds", "handle", "growing")  # what mends them makes nothing faster
DISK = ("--disk", "{data}")


class Drawn:
    """What a cause adds to the settings of a program; `mended` is the difference that the remedy makes."""

    def __init__(self, codes: str, advice: str, mended: dict, *also: str, **settings: object):
        self.codes, self.advice, self.mended, self.also, self.settings = codes, advice, mended, also, settings


FIXED = {"fixed": True}


class Draw:
    """The random numbers of one program, and its settings so far."""

    def __init__(self, seed: int, number: int, cpus: int, gpu: bool):
        self.random = random.Random(f"{seed} {number}")
        self.cpus = cpus
        self.step = round(self.random.uniform(20, 40) if gpu else self.random.uniform(12, 30), 1)
        self.batch = self.random.choice((2, 4, 8, 16))

    def between(self, low: float, high: float) -> float:
        return self.random.uniform(low, high)

    def ready(self, least: int = 1, works: tuple[str, ...] = ("sleep", "sleep", "cpu")) -> dict:
        """Workers whose batches wait for the step, not the other way round."""
        workers = self.random.randint(least, 4)
        work = self.random.choice(works)
        at_once = min(workers, self.cpus) if work == "cpu" else workers
        took = self.step * at_once * self.between(0.15, 0.4)
        return {"num_workers": workers, "work": work, "work_ms": took / self.batch}

    def late(self, workers: int, work: str = "sleep", least: float = 1.6, most: float = 3.5) -> dict:
        """Too few workers (0: none) by far."""
        took = self.step * max(workers, 1) * self.between(least, most)
        return {"num_workers": workers, "work": work, "work_ms": took / self.batch}

    def enough(self, slow: dict) -> dict:
        """Workers for which such batches are in time, or as many as there are CPUs."""
        workers = math.ceil(1.3 * slow["work_ms"] * self.batch / self.step)
        return {"num_workers": min(workers, self.cpus) if slow["work"] == "cpu" else workers}


def _none(draw):
    return Drawn("", "more workers", {"num_workers": 6}, **draw.ready())


def _prefetched(draw):
    return Drawn("", "more workers", {"num_workers": 6}, **draw.ready(), prefetch_factor=draw.random.choice((4, 8)))


def _epochs(draw):
    return Drawn("", "more workers", {"num_workers": 5}, **draw.ready(), persistent=True, steps=30, epochs=5)


def _serial(draw):
    slow = draw.late(0, draw.random.choice(("sleep", "cpu")))
    return Drawn("ST202", "workers", draw.enough(slow), **slow)


def _few(draw):
    work = draw.random.choice(("sleep", "sleep", "cpu"))
    slow = draw.late(draw.random.randint(1, draw.cpus - 1 if work == "cpu" else 3), work)
    return Drawn("ST203", "more workers", draw.enough(slow), **slow)


def _feeder(draw):
    slow = draw.late(draw.random.randint(0, 2))
    return Drawn("ST202 ST203", "more workers", draw.enough(slow), **slow, cause="feeder")


def _children(draw):
    slow = draw.late(draw.random.randint(1, 3), least=2.2)
    return Drawn("ST203", "more workers", draw.enough(slow), **slow, cause="children", dataset="map")


def _spin(draw):
    slow = {"num_workers": 0, "work": "sleep", "work_ms": draw.step * draw.between(1.2, 2.5) / draw.batch, "threads": draw.cpus}
    return Drawn("ST202", "workers", draw.enough(slow), **slow, cause="spin", dataset="products")


def _locked(cause: str):
    def rule(draw):
        held = draw.step / draw.batch * draw.between(1.8, 3)  # one holds it at a time
        workers = draw.random.randint(3, 5)
        advice = "a database for each worker" if cause == "sqlite" else "no lock"
        return Drawn("ST231", advice, FIXED, num_workers=workers, work_ms=held, cause=cause)

    return rule


def _sampling(cause: str):
    def rule(draw):
        cost = draw.step * draw.between(0.4, 1.5)
        kind = draw.random.choice(MAPS)
        return Drawn("ST230", "a quick sampler", FIXED, **draw.ready(), cause=cause, dataset=kind, cost_ms=cost)

    return rule


def _busy(draw) -> float:
    """CPU time of a batch that is too much for all CPUs."""
    return draw.step * draw.cpus * draw.between(1.3, 2)


def _collate(draw):
    return Drawn("ST229", "a quick collate_fn", FIXED, num_workers=draw.cpus, work_ms=0.02, cost_ms=_busy(draw), cause="collate")


def _augment(draw):
    cost = _busy(draw) / draw.batch
    return Drawn("ST226", "a cheap transform", FIXED, num_workers=draw.cpus, work_ms=0.02, cost_ms=cost,
                 cause="augment", dataset="transformed")  # fmt: skip


def _crowd(draw):
    """More workers than CPUs, all of which compute."""
    work = _busy(draw) / draw.batch
    return Drawn("ST204", "less work", {"work_ms": work / 4}, num_workers=draw.cpus * draw.random.randint(3, 4),
                 work="cpu", work_ms=work, steps=200)  # fmt: skip


def _heavy(code: str, cause: str, kind: str, batch: int):
    """A store whose own cost is far above the step."""

    def rule(draw):
        size = batch * max(1, draw.cpus // 2)  # late, however many workers there are
        return Drawn(code, "another store", FIXED, num_workers=draw.cpus, work_ms=0.01, cause=cause, dataset=kind, batch=size,
                     step=12.0, steps=60)  # fmt: skip

    return rule


def _remote(draw):
    workers = draw.random.randint(1, 3)
    latency = draw.step * workers * draw.between(1.8, 3) / draw.batch
    needed = math.ceil(1.3 * latency * draw.batch / draw.step)
    return Drawn("ST209", "more requests at once", {"num_workers": needed}, num_workers=workers, work_ms=0.0,
                 dataset="remote", latency=latency)  # fmt: skip


def _tiny(draw):
    kind = draw.random.choice(("map", "dicts", "records"))
    return Drawn("ST220", "no workers", {"num_workers": 0}, num_workers=2, work_ms=0.0, batch=8, step=0.0, steps=3000, dataset=kind)


def _objects(draw):
    return Drawn("ST215", "one tensor", FIXED, num_workers=2, work_ms=0.0, cause="objects", dataset="objects", batch=16, step=15.0)


def _gil(draw):
    settings = {"num_workers": 2, "work_ms": 0.01, "step": 12.0, "batch": 8, "dataset": "map"}
    return Drawn("ST224", "no such thread", FIXED, **settings, cause="gil")


def _one_late(draw):
    """One batch in so many takes as long as many steps; all together would be in time."""
    workers, every = 4, draw.random.randint(14, 22)
    late = draw.step * draw.between(13, 18)  # eight batches are ahead of it
    usual = draw.step * workers * 0.15
    return Drawn("ST212", "prefetch_factor=8", {"prefetch_factor": 8}, num_workers=workers, work_ms=usual / draw.batch,
                 late_ms=late / draw.batch, every=every, cause="one_late", dataset=draw.random.choice(("map", "dicts", "files")),
                 steps=200)  # fmt: skip


def _uneven(draw):
    workers = draw.random.randint(3, 4)  # the first one has 76 % of the batches: with two workers, it would hardly be late
    work = draw.step * workers * draw.between(0.7, 0.8) / draw.batch
    return Drawn("ST232", "equal shards", FIXED, num_workers=workers, work_ms=work, cause="uneven",
                 dataset=draw.random.choice(STREAMS), steps=160)  # fmt: skip


def _duplicates(draw):
    kind = draw.random.choice(STREAMS)
    return Drawn("ST233", "a split by get_worker_info", FIXED, **draw.ready(2, ("sleep",)), cause="duplicates", dataset=kind)


def _seeds(draw):
    return Drawn("ST234", "a generator for each worker", {}, **draw.ready(2, ("sleep",)), dataset="noisy")


def _handle(draw):
    return Drawn("ST221", "open it in the worker", {}, **draw.ready(), dataset="shared")


COSTS = {
    "save": ("ST308", "save rarely"), "save_arrays": ("ST308", "save rarely"), "validation": ("ST309", "validate rarely"),
    "logging": ("ST310", "log rarely"), "gc": ("ST307", "no gc.collect()"),
}  # fmt: skip


def _price(draw, cause: str, low: float, high: float) -> dict:
    """Settings with which this work takes about so many steps' time; saving is faster than that where disks are."""
    if cause == "gc":
        return {"objects": int(draw.step * 12_000 * draw.between(low, high))}
    return {"cost_ms": draw.step * draw.between(low, high)}


def _each(cause: str):
    def rule(draw):
        code, advice = COSTS[cause]
        return Drawn(code, advice, FIXED, **draw.ready(), **_price(draw, cause, 0.8, 2), cause=cause)

    return rule


def _rarely(cause: str):
    def rule(draw):
        price = {"cost_ms": draw.step * draw.between(8, 14)}
        return Drawn("ST306", "not in the loop", FIXED, **draw.ready(), **price, every=draw.random.randint(8, 14), cause=cause)

    return rule


def _respawn(draw):
    start = draw.random.randint(200, 500)
    return Drawn("ST214", "persistent_workers", {"persistent": True}, **draw.ready(), steps=15, epochs=8, start_ms=start)


def _rank_slow(draw):
    quick = draw.step * 0.2 / draw.batch
    slow = draw.step * draw.between(1.8, 3) / draw.batch
    return Drawn("ST225", "equal data", {"slow_ms": quick}, num_workers=1, work_ms=quick, slow_ms=slow, ranks=2)


def _ranks_slow(draw):
    slow = draw.late(1, least=1.8)
    mended = draw.enough(slow)
    return Drawn("ST203", "more workers", mended, **slow, slow_ms=slow["work_ms"], ranks=2)


def _two(draw):
    """A loader that is late even for a step with work of its own."""
    cost = draw.random.choice(("validation", "logging", "gc"))  # how long saving takes depends on the disk
    price = _price(draw, cause=cost, low=0.8, high=1.5)
    whole = draw.step * draw.between(3.2, 4)
    kind = draw.random.choice(("serial", "few", "flock", "sampler"))
    if kind == "sampler":
        first = {**draw.ready(works=("sleep",)), "dataset": draw.random.choice(MAPS)}
        price = {**price, "cost_ms": draw.step * draw.between(0.8, 1.2)}
        return Drawn("ST230", "both", FIXED, COSTS[cost][0], **first, **price, cause=f"{cost}+sampler")
    workers = {"serial": 0, "few": draw.random.randint(1, 3), "flock": 4}[kind]
    work = whole * (1 if kind == "flock" else max(workers, 1)) / draw.batch
    code = {"serial": "ST202", "few": "ST203", "flock": "ST231"}[kind]
    causes = f"{cost}+flock" if kind == "flock" else cost
    return Drawn(code, "both", FIXED, COSTS[cost][0], num_workers=workers, work_ms=work, **price, cause=causes)


# ---- workers, servers and libraries -----------------------------------------------------------------


def _warm(draw):
    """The first batches late, while something fills, and all others in time."""
    fills = draw.random.randint(20, 40)
    return Drawn("", "more workers", {"num_workers": 5}, **draw.ready(2, ("sleep",)), start_ms=draw.between(100, 300),
                 filling=fills, late_ms=draw.between(5, 15), steps=200)  # fmt: skip


def _server(draw):
    """It answers one request at a time, so that more workers wait longer."""
    workers = draw.random.randint(3, 5)
    latency = draw.step * draw.between(1.8, 3) / draw.batch
    return Drawn("ST209 ST231", "a server that answers several at once", FIXED, num_workers=workers, work_ms=0.0,
                 dataset="remote", cause="server", latency=latency)  # fmt: skip


def _storm(draw):
    """A library that starts threads in every worker, which spin."""
    threads = draw.random.randint(3, 4)
    return Drawn("ST206", "one thread", {"threads": 1}, num_workers=draw.cpus, work_ms=0.0, cause="storm", dataset="library",
                 threads=threads, batch=2, step=15.0)  # fmt: skip


def _spawn(draw):
    """Workers that import torch in every epoch."""
    work = draw.step * draw.between(0.2, 0.6) / draw.batch
    return Drawn("ST214", "persistent_workers", {"persistent": True}, num_workers=2, work_ms=work, steps=30, epochs=3,
                 spawn=True)  # fmt: skip


def _growing(draw):
    """A list of strings in the dataset: reading one writes its reference count, and the worker gets a copy of its page."""
    return Drawn("ST219", "a NumPy array", FIXED, num_workers=2, work_ms=0.0, batch=8, step=25.0, steps=160,
                 dataset="corpus", cause="growing")  # fmt: skip


def _rank_wanders(draw):
    """By turns one of two ranks has slow batches."""
    quick = draw.step * 0.2 / draw.batch
    slow = draw.step * draw.between(2.2, 3) / draw.batch
    return Drawn("ST225", "batches of equal cost", {"slow_ms": quick}, num_workers=1, work_ms=quick, slow_ms=slow, ranks=2,
                 cause="wander")  # fmt: skip


# ---- limits of the machine; where it allows none, the program is left out ---------------------------


def _quota(draw):
    """Half a CPU for workers that would otherwise be in time on two."""
    took = draw.step * draw.between(1, 1.4)
    return Drawn("ST205", "lift the quota", {}, num_workers=2, work="cpu", work_ms=took / draw.batch,
                 limits=("--cpu", str(round(draw.between(0.4, 0.55), 2))))  # fmt: skip


def _bound(draw):
    """Bound to one of its CPUs, for which there is too much work."""
    took = draw.step * draw.between(1.6, 1.9)
    return Drawn("ST204 ST205", "lift the affinity", {}, num_workers=draw.random.randint(2, 4), work="cpu",
                 work_ms=took / draw.batch, limits=("--cpus", "1"))  # fmt: skip


def _disk(draw):
    """Rows of 256 KiB from a disk that brings fewer bytes than steps want; a quarter as many bytes mend it."""
    rate = 8 * 262144 / (draw.step / 1e3) / draw.between(2, 3) / 1e6
    return Drawn("ST207", "store fewer bytes", FIXED, num_workers=draw.random.randint(2, 4), work_ms=0.0, dataset="blocks",
                 cause="disk", batch=8, steps=60, limits=("--read-mbps", str(round(rate)), *DISK), cold=True)  # fmt: skip


def _small_files(draw):
    """A file for each sample, on a disk that does few reads per second; or all in one."""
    rate = 16 / (draw.step / 1e3) / draw.between(2, 3)
    return Drawn("ST208", "one file", FIXED, num_workers=draw.random.randint(2, 4), work_ms=0.0, dataset="pieces",
                 cause="pieces", batch=16, steps=80, limits=("--read-iops", str(round(rate)), *DISK), cold=True)  # fmt: skip


def _low_memory(draw):
    """Less memory than the data need that are read again in every epoch."""
    room = draw.random.randint(430, 470)
    limits = ("--read-mbps", "200", *DISK)
    return Drawn("ST210", "lift the memory limit", {}, num_workers=2, work_ms=0.0, dataset="large", cause="large", batch=16,
                 step=15.0, steps=60, epochs=3, persistent=True, limits=("--memory", str(room), *limits), advised_limits=limits,
                 cold=True)  # fmt: skip


# ---- the GPU ----------------------------------------------------------------------------------------


def _host_sync(draw):
    return Drawn("ST302", "no .item() in the step", FIXED, **draw.ready(), cause="host_sync", size=draw.random.choice((1024, 1536)),
                 step=8.0, steps=200)  # fmt: skip


def _pageable(draw):
    return Drawn("ST216", "pin_memory and non_blocking", FIXED, num_workers=4, work_ms=0.0, dataset="batches", cause="pageable",
                 size=draw.random.randint(40, 80), step=draw.between(5, 8), steps=150)  # fmt: skip


def _pinning(draw):
    """More bytes than the thread that pins can copy in a step."""
    return Drawn("ST215", "a quarter of the bytes", FIXED, num_workers=4, work_ms=0.0, dataset="batches", cause="pinning",
                 size=draw.random.randint(160, 240), step=draw.between(4, 6), steps=100)  # fmt: skip


def _float32(draw):
    return Drawn("ST304", "bfloat16", FIXED, num_workers=2, work_ms=0.02, cause="float32", size=draw.random.choice((3072, 4096)),
                 steps=80)  # fmt: skip


def _launches(draw):
    return Drawn("ST301", "a CUDA graph", FIXED, num_workers=2, work_ms=0.02, cause="launches", size=draw.random.randint(200, 400),
                 steps=200)  # fmt: skip


ON_GPU = {"hostsync": _host_sync, "pageable": _pageable, "pinning": _pinning, "float32": _float32, "launches": _launches}

CAUSES = {
    "none": _none, "prefetched": _prefetched, "epochs": _epochs, "serial": _serial, "few": _few, "feeder": _feeder,
    "children": _children, "spin": _spin, "flock": _locked("flock"), "lockf": _locked("lockf"), "mutex": _locked("mutex"),
    "sqlite": _locked("sqlite"), "sampler": _sampling("sampler"), "batchsampler": _sampling("batch_sampler"),
    "collate": _collate, "augment": _augment, "crowd": _crowd, "archive": _heavy("ST235", "archive", "reopened", 4),
    "photographs": _heavy("ST227", "photographs", "photographs", 2), "decompress": _heavy("ST228", "decompress", "compressed", 8),
    "remote": _remote, "tiny": _tiny, "objects": _objects, "gil": _gil, "onelate": _one_late,
    "uneven": _uneven, "duplicates": _duplicates, "seeds": _seeds, "handle": _handle, "gc": _each("gc"), "save": _each("save"),
    "savearrays": _each("save_arrays"), "validation": _each("validation"), "logging": _each("logging"),
    "rarelylogging": _rarely("logging"), "rarelysave": _rarely("save"), "rarelyvalidation": _rarely("validation"),
    "respawn": _respawn, "rankslow": _rank_slow, "ranksslow": _ranks_slow, "two": _two, "warm": _warm, "server": _server,
    "storm": _storm, "spawn": _spawn, "growing": _growing, "rankwanders": _rank_wanders, "quota": _quota, "bound": _bound,
    "disk": _disk, "smallfiles": _small_files, "lowmemory": _low_memory,
}  # fmt: skip
HEALTHY = ("none", "prefetched", "epochs", "warm")


def _words(values: dict) -> tuple[str, ...]:
    """As options of the command line."""
    names = {"num_workers": "num-workers", "prefetch_factor": "prefetch-factor", "step": "step-ms", "batch": "batch-size"}
    out: list[str] = []
    for key, value in values.items():
        if value is not False:
            number = round(value, 3) if isinstance(value, float) else value
            out += [f"--{names.get(key, key)}", *([] if value is True else [str(number)])]
    return tuple(out)


def draw_case(seed: int, number: int, cpus: int = 2, gpu: bool = False) -> Case:
    """The same for the same seed, number, CPUs and step, however many are drawn. With `gpu` the step is one of a GPU."""
    draw = Draw(seed, number, cpus, gpu)
    causes = {**{name: CAUSES[name] for name in CAUSES if not name.startswith("rank")}, **ON_GPU} if gpu else CAUSES
    # a fifth is healthy, a tenth has two causes; with a GPU, as many have one of its causes
    more = (*ON_GPU, *ON_GPU, *ON_GPU) if gpu else ()
    name = draw.random.choice([*causes, *HEALTHY, *HEALTHY, "two", "two", "two", *more])
    drawn = causes[name](draw)
    settings = {
        "cause": "none", "dataset": draw.random.choice(DATASETS), "batch": draw.batch, "step": draw.step, "steps": STEPS,
        **({"device": "cuda"} if gpu else {}), **drawn.settings,
    }  # fmt: skip
    limits = {key: settings.pop(key) for key in ("limits", "advised_limits") if key in settings}
    ranks, latency, cold = settings.pop("ranks", 1), settings.pop("latency", 0), settings.pop("cold", False)
    stores = (STORES[settings["dataset"]],) if settings["dataset"] in STORES else ()
    return Case(
        f"{name}_{seed}_{number}", "generated.py", frozenset(drawn.codes.split()), drawn.advice, _words(settings),
        _words({**settings, **drawn.mended}), control=name in HEALTHY, ranks=ranks, latency_ms=latency,
        also=tuple(frozenset(codes.split()) for codes in drawn.also), gain=name not in (*GAINLESS, "two"), made=stores,
        cold=stores if cold else (), lifted="limits" in limits and not drawn.mended, gpu=gpu, **limits,
    )  # fmt: skip


def cases(seed: int, count: int, cpus: int = 2, gpu: bool = False) -> list[Case]:
    return [draw_case(seed, number, cpus, gpu) for number in range(count)]
