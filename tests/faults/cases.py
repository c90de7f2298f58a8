# SPDX-License-Identifier: Apache-2.0
"""The table of planted faults: which program runs, under which limits, what the first cause must be, and what mends it.

Half of the faults and controls are held out: they are never looked at while a rule or a threshold is written. The rule
is fixed: within each of the three lists below, the first case is open, the second held out, and so on by turns. The
lists are so ordered that of the two variants of a cause one is open and the other held out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Case:
    name: str
    program: str  # in programs/
    codes: frozenset[str]  # each names the planted cause; of a control, what it may be called
    advice: str  # what a person would do, in words
    args: tuple[str, ...] = ()
    advised: tuple[str, ...] | None = None  # arguments after the advice; None: as before
    limits: tuple[str, ...] = ()  # of limits.py
    lifted: bool = False  # the advice lifts the limits
    advised_limits: tuple[str, ...] | None = None  # limits after the advice, where some stay
    cold: tuple[str, ...] = ()  # data that must not be in the page cache
    made: tuple[str, ...] = ()  # data that must be there before the first run
    latency_ms: float = 0  # of the HTTP server that the program reads from
    ranks: int = 1
    gain: bool = True  # the advice makes training faster; without it, it prevents a failure
    crashes: bool = False  # the program fails until the advice is followed
    gpu: bool = False
    control: bool = False
    short: tuple[str, ...] = ()  # further arguments in the short form, which only open cases may be in
    also: tuple[frozenset[str], ...] = ()  # of further causes, planted beside it
    short_codes: frozenset[str] = frozenset()  # what it may also be called there, where other tests run beside it
    held_out: bool = field(default=False, compare=False)

    def arguments(self, advised: bool) -> tuple[str, ...]:
        return self.advised if advised and self.advised is not None else self.args

    def limits_when(self, advised: bool) -> tuple[str, ...]:
        if not advised:
            return self.limits
        if self.advised_limits is not None:
            return self.advised_limits
        return () if self.lifted else self.limits


def fault(name: str, program: str, codes: str, advice: str, *args: str, **more: object) -> Case:
    return Case(name, program, frozenset(codes.split()), advice, args, **more)


def control(name: str, program: str, advice: str, *args: str, codes: str = "", **more: object) -> Case:
    """`advised` is what a hasty adviser would say; it must not help."""
    return Case(name, program, frozenset(codes.split()), advice, args, control=True, **more)


FIXED = ("--fixed",)
DISK = ("--disk", "{data}")
LONG = ("--words", "900")


def by_turns(cases: list[Case]) -> list[Case]:
    return [replace(case, held_out=i % 2 == 1) for i, case in enumerate(cases)]


FAULTS = by_turns([
    # ST202: no workers
    fault("serial_text", "tokens.py", "ST202", "num_workers=2", advised=("--num-workers", "2")),
    fault("serial_images", "images.py", "ST202", "num_workers=2", advised=("--num-workers", "2")),
    # ST203: too few
    fault("few_workers_simulator", "simulator.py", "ST203", "num_workers=6", advised=("--num-workers", "6"),
          short=("--steps", "70"),
          short_codes=frozenset({"ST209"})),  # workers wait, and there is traffic, of other tests
    fault("few_workers_text", "tokens.py", "ST203", "num_workers=2", "--num-workers", "1", *LONG,
          "--step-ms", "18", advised=("--num-workers", "2", *LONG, "--step-ms", "18")),
    # ST204: the CPUs are full
    fault("full_cpus_text", "tokens.py", "ST204", "tokenize beforehand", "--num-workers", "8", *LONG,
          "--step-ms", "8", advised=("--num-workers", "8", *LONG, "--step-ms", "8", "--fixed")),
    fault("full_cpus_features", "features.py", "ST204", "compute the features beforehand", "--num-workers", "10",
          advised=("--num-workers", "10", "--fixed")),
    # ST205: a quota, or an affinity, that the number of workers does not know of
    fault("quota_features", "features.py", "ST205", "lift the quota of half a CPU", "--num-workers", "4",
          "--batch-size", "4", limits=("--cpu", "0.5"), lifted=True),
    fault("quota_text", "tokens.py", "ST205", "lift the quota of 0.6 CPUs", "--num-workers", "6",
          "--step-ms", "15", limits=("--cpu", "0.6"), lifted=True),
    fault("affinity_text", "tokens.py", "ST204 ST205", "lift the affinity to one CPU", "--num-workers", "4", *LONG,
          "--step-ms", "14", limits=("--cpus", "1"), lifted=True),
    fault("affinity_images", "images.py", "ST204 ST205", "lift the affinity to one CPU", "--num-workers", "6",
          "--step-ms", "10", "--steps", "200", limits=("--cpus", "1"), lifted=True),
    # ST206: threads in the workers
    fault("threads_whitening", "threads_whitening.py", "ST206", "one BLAS thread in the workers", advised=FIXED),
    fault("threads_blas", "threads_blas.py", "ST206", "one BLAS thread in the workers", advised=FIXED),
    # ST207: bytes per second of the disk
    fault("disk_arrays", "disk_arrays.py", "ST207", "store uint8", advised=FIXED, cold=("disk_arrays",),
          limits=("--read-mbps", "40", *DISK)),
    fault("disk_audio", "disk_audio.py", "ST207", "store the part that is used", advised=FIXED, cold=("disk_audio",),
          limits=("--read-mbps", "60", *DISK)),
    # ST208: reads per second of the disk
    fault("small_images", "small_images.py", "ST208", "pack into one shard", advised=FIXED, cold=("small_images",),
          limits=("--read-iops", "400", *DISK)),
    fault("small_text", "small_text.py", "ST208", "pack into one file", advised=FIXED, cold=("small_text",),
          limits=("--read-iops", "500", *DISK)),
    # ST209: the network answers late
    fault("network_objects", "http_objects.py", "ST209", "num_workers=12", advised=("--num-workers", "12"),
          latency_ms=60),
    fault("network_text", "http_text.py", "ST209", "the requests of a batch at once", advised=FIXED, latency_ms=40),
    # ST210: the page cache is too small
    fault("cache_arrays", "cache_arrays.py", "ST210", "lift the memory limit", cold=("cache_arrays",),
          limits=("--memory", "450", "--read-mbps", "200", *DISK), advised_limits=("--read-mbps", "200", *DISK)),
    fault("cache_memmap", "cache_memmap.py", "ST210", "lift the memory limit", cold=("cache_memmap",),
          limits=("--memory", "450", "--read-mbps", "200", *DISK), advised_limits=("--read-mbps", "200", *DISK)),
    # ST212: one late batch holds up those that are ready
    fault("order_audio", "order_audio.py", "ST212", "prefetch_factor=8", advised=("--prefetch-factor", "8"),
          short=("--steps", "100")),
    fault("order_video", "order_video.py", "ST212", "in_order=False", advised=("--any-order",)),
    # ST214: workers are started in every epoch
    fault("respawn_fork", "respawn_fork.py", "ST214", "persistent_workers=True", advised=("--persistent",),
          short=("--epochs", "6")),
    fault("respawn_spawn", "respawn_spawn.py", "ST214", "persistent_workers=True", advised=("--persistent",)),
    # ST215: the training process unpickles
    fault("objects_tensors", "ipc_tensors.py", "ST215", "collate into one tensor", advised=FIXED),
    fault("objects_python", "ipc_objects.py", "ST215", "collate into one tensor", advised=FIXED),
    # ST218: /dev/shm; ST219: copy on write
    fault("shm_batches", "shm_batches.py", "ST218", "a larger /dev/shm", limits=("--shm", "16"), lifted=True,
          gain=False, crashes=True),
    fault("cow_lists", "cow_lists.py", "ST219", "a NumPy array instead of a list", advised=FIXED, gain=False),
    # ST220: workers cost more than they bring
    fault("tiny_tensors", "tiny_tensors.py", "ST220", "num_workers=0", advised=("--num-workers", "0")),
    fault("tiny_table", "tiny_table.py", "ST220", "num_workers=0", advised=("--num-workers", "0")),
    # ST221: a handle that was opened before the fork
    fault("handle_hdf5", "handle_hdf5.py", "ST221", "open it in the worker", advised=FIXED, gain=False),
    fault("handle_sqlite", "handle_sqlite.py", "ST221", "open it in the worker", advised=FIXED, gain=False),
    # ST224: threads of the training process want the interpreter's lock
    fault("gil_dashboard", "gil_dashboard.py", "ST224", "no Python thread beside the loop", advised=FIXED),
    fault("gil_metrics", "gil_metrics.py", "ST224", "no Python thread beside the loop", advised=FIXED),
    # ST225: one rank is late
    fault("rank_slow", "ranks.py", "ST225", "the same storage for both", advised=FIXED, ranks=2),
    fault("rank_wanders", "ranks.py", "ST225", "even batches", "--wander", advised=("--wander", "--fixed"), ranks=2),
    # ST226, ST227, ST228: what the workers' time goes into
    fault("augment_images", "augment_images.py", "ST226", "crop first", advised=FIXED),
    fault("augment_audio", "augment_audio.py", "ST226", "crop first", advised=FIXED),
    fault("decode_jpeg", "decode_jpeg.py", "ST227", "store smaller photographs", advised=FIXED),
    fault("decode_ogg", "decode_ogg.py", "ST227", "store WAV", advised=FIXED),
    fault("compressed_arrays", "compressed_arrays.py", "ST228", "store npy", advised=FIXED),
    fault("compressed_text", "compressed_text.py", "ST228", "store plain text", advised=FIXED),
    # ST306: some steps take far longer
    fault("pauses_checkpoints", "checkpoints.py", "ST306", "save beside the training", advised=FIXED),
    fault("pauses_garbage", "garbage.py", "ST306", "gc.freeze()", advised=FIXED),
])

GPU_FAULTS = by_turns([
    fault("gpu_pageable", "gpu_pageable.py", "ST216", "pin_memory and non_blocking", advised=FIXED, gpu=True),
    fault("gpu_pcie", "gpu_pcie.py", "ST217", "send uint8", advised=FIXED, gpu=True),
    fault("gpu_launches", "gpu_launches.py", "ST301", "a CUDA graph", advised=FIXED, gpu=True),
    fault("gpu_syncs", "gpu_syncs.py", "ST302", "no .item() in the step", advised=FIXED, gpu=True),
    fault("gpu_float32", "gpu_float32.py", "ST304", "bfloat16", advised=FIXED, gpu=True),
])

CONTROLS = by_turns([
    control("healthy_in_memory", "control_in_memory.py", "deeper prefetch", advised=("--prefetch-factor", "8")),
    control("healthy_compute", "images.py", "more workers", "--num-workers", "2", "--step-ms", "60",
            "--steps", "110", advised=("--num-workers", "4", "--step-ms", "60", "--steps", "110")),
    control("healthy_cheap", "control_cheap.py", "workers", advised=("--num-workers", "2"), short=("--steps", "100")),
    control("healthy_stoker", "control_stoker.py", "more workers", advised=("--num-workers", "4")),
    control("healthy_warm_up", "control_warm_up.py", "more workers", advised=("--num-workers", "4"), codes="ST211"),
    control("healthy_prefetch", "order_audio.py", "more workers", "--prefetch-factor", "16",
            advised=("--prefetch-factor", "16", "--num-workers", "8")),
    control("healthy_iterable", "control_iterable.py", "more workers", advised=("--num-workers", "4")),
    control("healthy_epochs", "respawn_fork.py", "more workers", "--persistent",
            advised=("--persistent", "--num-workers", "4")),
    control("gpu_healthy", "gpu_float32.py", "more workers", "--fixed", "--steps", "400",
            advised=("--fixed", "--steps", "400", "--num-workers", "4"), gpu=True),
])

CASES = [*FAULTS, *GPU_FAULTS, *CONTROLS]
