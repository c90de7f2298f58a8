# SPDX-License-Identifier: Apache-2.0
"""What is measured. Each part returns plain dicts for the report."""
from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from pathlib import Path

import torch

import feeds
import tables
from measure import middle, take
from models import Absent, trainer


def say(text):
    print(text, flush=True)


def trainers(names, device):
    """The models that can be had, and why others cannot."""
    steps, absent = {}, {}
    for name in names:
        try:
            steps[name] = trainer(name, device)
        except Absent as why:
            absent[name] = str(why)
            say(f"   {name}: SKIP, {why}")
    return steps, absent


def warm_up(steps, meter, setting):
    """First steps choose convolution algorithms and take memory: not what is measured."""
    resident = feeds.Resident(setting, batches=2)
    for step in steps.values():
        for _ in range(6):
            step(*next(resident))
    meter.synchronize()


def in_turn(makers, refused, args):
    """(round, name) of every measurement. Rounds go over all feeds, so that a slow minute hits all."""
    for number in range(args.rounds):
        for name in makers:
            if name not in refused and not (feeds.is_peer(name) and number >= args.peer_rounds):
                yield number, name


def refuse(refused, name, why):
    refused[name] = f"{type(why).__name__}: {why}"
    say(f"   {name}: SKIP, {refused[name]}")


def train(meter, makers, steps, args):
    """results[model][feed]: medians over rounds."""
    runs, about, refused = {}, {}, {}
    for _, name in in_turn(makers, refused, args):
        try:
            one_feed(meter, makers[name], name, steps, args, runs, about)
        except Exception as why:  # a peer that cannot; the others go on
            refuse(refused, name, why)
    return {model: {name: middle(each) for name, each in of.items()} for model, of in runs.items()}, about, refused


def one_feed(meter, make, name, steps, args, runs, about):
    """All models on one feed, which is opened once."""
    feed = make()
    for model, step in steps.items():
        before = feed.about()
        got = take(meter, feed, step, args.seconds, args.warm)
        runs.setdefault(model, {}).setdefault(name, []).append(got)
        about.setdefault(model, {})[name] = {"before": before, "after": feed.about()}
        say(f"   {model:<9} {name:<40} {got['rate']:>8,.0f} img/s  stall {got['stall_ms']:6.2f} ms  "
            f"work {got['work_ms']:6.2f} ms  {got['cpus']:.1f} CPUs  clock {tables.number(got['clock'], '.1f', 100)} %")
    feed.close()


def nothing(images, labels):
    """A consumer that only takes."""


def loader_alone(meter, makers, args):
    """The loader as fast as it goes: batches are taken on the current stream and let go."""
    runs, about, refused = {}, {}, {}
    for number, name in in_turn(makers, refused, args):
        if name == feeds.CEILING:
            continue
        try:
            feed = makers[name]()
            before = feed.about()
            got = take(meter, feed, nothing, args.seconds, args.warm)
        except Exception as why:  # a peer that cannot; the others go on
            refuse(refused, name, why)
            continue
        runs.setdefault(name, []).append(got)
        about[name] = {"before": before, "after": feed.about()}
        feed.close()
        say(f"   round {number + 1}/{args.rounds}  loader alone {name:<40} {got['rate']:>8,.0f} img/s  "
            f"{got['cpus']:.1f} CPUs  {tables.hardware_share(about[name])} by hardware")
    return {name: middle(each) for name, each in runs.items()}, about, refused


def bandwidth(device, size, repeats=30):
    """Bytes a second from pinned memory to the GPU: copies of `size` bytes, one behind the other."""
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(size, dtype=torch.uint8, device=device)
    rates = []
    for _ in range(5):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(repeats):
            there.copy_(host, non_blocking=True)
        end.record()
        end.synchronize()
        rates.append(size * repeats / (begin.elapsed_time(end) / 1e3))
    return statistics.median(rates)


def traced_copies(feed, seconds):
    """(bytes, seconds) of each copy to the GPU, as the profiler saw it, while the loader runs flat out."""
    from torch.profiler import ProfilerActivity, profile

    for _ in range(8):
        next(feed)
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            next(feed)
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    copies = []
    for event in events:
        if event.get("cat") == "gpu_memcpy" and "HtoD" in event.get("name", ""):
            copies.append((int(event["args"]["bytes"]), event["dur"] / 1e6))
    return copies


def copies(setting, args):
    """The loader's copies against bare copies of the same size, in the same run."""
    feed = feeds.Stoker(setting)
    seen = traced_copies(feed, min(2.0, args.seconds))
    feed.close()
    large = [(size, took) for size, took in seen if size >= 1 << 20]
    if not large:
        return {"why": f"the profiler saw no copy of a batch ({len(seen)} smaller ones)"}
    size = int(statistics.median(size for size, _ in large))
    bare = bandwidth(setting.device, size)
    rate = sum(size for size, _ in large) / sum(took for _, took in large)
    say(f"   copies of {size / 1e6:.1f} MB: {rate / 1e9:.1f} GB/s, bare {bare / 1e9:.1f} GB/s")
    return {"copies": len(large), "median_bytes": size, "rate": rate, "pinned": bare, "share": rate / bare,
            "pinned_large": bandwidth(setting.device, 256 << 20, repeats=8),
            "median_copy_rate": statistics.median(size / took for size, took in large)}


def latency(setting, args):
    """From next() to a tensor that can be used, when a batch is ready. Between two batches the thread does what
    one that trains does, launching kernels; one that sleeps is measured waking up. As in a for loop, a batch is let
    go when the next one is there."""
    feed = feeds.Stoker(setting)
    for _ in range(6):
        batch = next(feed)
    work = torch.zeros(1024, device=setting.device)
    times = []
    for _ in range(args.latency_samples):
        until = time.perf_counter() + 0.06  # two batches are made in this time, and more
        while time.perf_counter() < until:
            work.add_(1)
        begin = time.perf_counter_ns()
        fresh = next(feed.batches)  # the feed itself is this bench's own
        times.append((time.perf_counter_ns() - begin) / 1e3)
        batch = fresh  # noqa: F841 (as a training step does, it holds one while it asks for the next)
    feed.close()
    times.sort()
    got = {"median_us": statistics.median(times), "p90_us": times[int(0.9 * len(times))], "least_us": times[0],
           "samples": len(times)}
    say(f"   next() with a batch ready: {got['median_us']:.0f} us, 9 of 10 within {got['p90_us']:.0f}")
    return got


class Drain(threading.Thread):
    """Takes batches and throws them away, so that the workers run flat out."""

    def __init__(self, feed):
        super().__init__(daemon=True)
        self.feed, self.stop, self.batches = feed, False, 0

    def run(self):
        while not self.stop:
            next(self.feed)
            self.batches += 1


def flat_out(meter, setting, steps, args):
    """Steps on resident data: alone, and while a loader in the same process works as hard as it can."""
    resident, out = feeds.Resident(setting), {}
    for model, step in steps.items():
        alone, beside = [], []
        for _ in range(2):
            alone.append(take(meter, resident, step, args.seconds / 2, 0.3)["step_ms"])
            feed = feeds.Stoker(setting)
            drain = Drain(feed)
            drain.start()
            began = time.perf_counter()
            beside.append(take(meter, resident, step, args.seconds / 2, 0.5)["step_ms"])
            rate = drain.batches * setting.batch / (time.perf_counter() - began)
            drain.stop = True
            drain.join()
            feed.close()
        out[model] = {"alone_ms": statistics.median(alone), "beside_ms": statistics.median(beside), "rate": rate}
        say(f"   {model}: a step takes {out[model]['alone_ms']:.2f} ms alone, {out[model]['beside_ms']:.2f} beside a loader "
            f"at {rate:,.0f} img/s")
    return out
