# SPDX-License-Identifier: Apache-2.0
"""One measurement of one training loop, or of a loader alone, without a stop inside.

Times are the GPU's own (events in the stream), so the loop is never brought to a halt to look at a clock:

    F(k-1) ... E(k) ............ F(k)
    |  input   |  forward, backward, step  |

F(k-1)-E(k) is the exposed input stall of step k: from the end of the work of one step to the moment at which
the next one has its batch, copies included. E(k)-F(k) is the step's own work.
"""
from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from harness import cpu_seconds, process_tree


class GpuMark:
    """A moment in the current stream."""

    def __init__(self):
        self.event = torch.cuda.Event(enable_timing=True)
        self.event.record()

    def since(self, earlier):
        return earlier.event.elapsed_time(self.event) / 1000


class HostMark:
    def __init__(self):
        self.at = time.perf_counter()

    def since(self, earlier):
        return self.at - earlier.at


class Meter:
    """The clocks of a device: marks, CPU time of this process and its children, and how busy the GPU is."""

    def __init__(self, device):
        self.cuda = device != "cpu"
        self.mark = GpuMark if self.cuda else HostMark
        self.watch, self.why_no_watch = None, None
        if self.cuda:
            import stoker
            try:
                self.watch = stoker.GpuWatch(f"GPU-{torch.cuda.get_device_properties(device).uuid}")
            except Exception as why:  # the driver may know the GPU by another name in a container
                try:
                    self.watch = stoker.GpuWatch()
                except Exception:
                    self.why_no_watch = str(why)

    def synchronize(self):
        if self.cuda:
            torch.cuda.synchronize()

    def look(self):
        return self.watch.sample() if self.watch else {}

    @staticmethod
    def cpu():
        return cpu_seconds(process_tree(os.getpid()))


def take(meter, feed, work, seconds, warm):
    """Runs ``work(images, labels)`` on batches for a while. The middle one of every quantity is a step's."""
    def steps(until, least):
        done = []
        while time.perf_counter() < until or len(done) < least or len(done) % feed.period:
            begin = time.perf_counter()
            images, labels = next(feed)
            waited = time.perf_counter() - begin
            arrived = meter.mark()
            work(images, labels)
            done.append((waited, arrived, meter.mark(), len(images)))
        return done

    warmed = steps(time.perf_counter() + warm, 3)
    meter.look()
    cpu, wall = meter.cpu(), time.perf_counter()
    done = steps(time.perf_counter() + seconds, 4)
    meter.synchronize()
    wall, cpu = time.perf_counter() - wall, meter.cpu() - cpu
    seen = meter.look()
    ends = [warmed[-1][2]] + [end for _, _, end, _ in done]
    images = sum(count for *_, count in done)
    took = ends[-1].since(ends[0])
    stalls = [done[k][1].since(ends[k]) for k in range(len(done))]
    works = [done[k][2].since(done[k][1]) for k in range(len(done))]
    return {
        "rate": images / took, "images": images, "seconds": took,
        "stall_ms": 1e3 * sum(stalls) / len(stalls), "stall_median_ms": 1e3 * statistics.median(stalls),
        "work_ms": 1e3 * statistics.median(works), "step_ms": 1e3 * took / len(done),
        "host_wait_ms": 1e3 * sum(waited for waited, *_ in done) / len(done),
        "cpu_per_1000": 1e3 * cpu / images, "cpus": cpu / wall,
        **{key: seen.get(key) for key in ("busy", "sm_active", "tensor_active", "dram_active", "jpeg_hardware",
                                          "pcie_in", "watts", "clock")},
    }


def middle(runs):
    """The median of each quantity over rounds; a quantity that no round knows is None."""
    out = {}
    for key in runs[0]:
        known = [run[key] for run in runs if run[key] is not None]
        out[key] = statistics.median(known) if known else None
    out["rates"] = [run["rate"] for run in runs]
    return out
