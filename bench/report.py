# SPDX-License-Identifier: Apache-2.0
"""RESULTS.md and the plot beside it."""
from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from contestants import BARE, PEERS, STOKER, constants


def machine():
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    else:
        import subprocess
        for line in subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines():
            if line.startswith("Model name:"):
                model = line.split(":", 1)[1].strip()
                break
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs, {system}, Python {platform.python_version()}"


def versions():
    from importlib.metadata import PackageNotFoundError, version
    found = []
    for name in ("torch", "torchvision", "pillow", "numpy"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            pass
    return ", ".join(found)


def count_of(workers):
    return "1 worker" if workers == 1 else f"{workers} workers"


def rates_table(medians, counts, notes, refused):
    """Rows by rate at the largest worker count; ratios to Stoker and to the bare decode."""
    most = counts[-1]
    head = ["", *(f"{count_of(n)}, img/s" for n in counts), "of bare decode, 1 worker",
            f"Stoker against it, {count_of(most)}", "CPU s / 1,000 images", "remark"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    names = sorted(medians, key=lambda n: -medians[n][most]["rate"])
    for name in names:
        row = medians[name]
        cells = [name, *(f"{row[n]['rate']:,.0f}" for n in counts),
                 f"{row[counts[0]]['rate'] / medians[BARE][counts[0]]['rate']:.2f}" if BARE in medians else "",
                 f"{medians[STOKER][most]['rate'] / row[most]['rate']:.2f} times" if STOKER in medians else "",
                 f"{row[most]['cpu_per_1000']:.2f}" if "cpu_per_1000" in row[most] else "", notes.get(name, "")]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [f"| {name} | " + " | " * (len(head) - 2) + f"{why} |" for name, why in refused.items()]
    return lines


def verdict(reached):
    return "reached" if reached else "**missed**"


def targets_table(medians, counts, extra):
    lines = ["| target | measured | |", "|---|---|---|"]

    def row(what, measured, reached):
        lines.append(f"| {what} | {measured} | {verdict(reached)} |")

    def rate(name, n):
        return medians[name][n]["rate"]

    one, most = counts[0], counts[-1]
    if STOKER in medians and BARE in medians and one == 1:
        ratio = rate(STOKER, 1) / rate(BARE, 1)
        row("one worker at least 1.0 times the bare full decode of one core", f"{ratio:.2f} times", ratio >= 1.0)
    torch = "torch, PIL"
    if STOKER in medians and torch in medians:
        for n in counts:
            ratio = rate(STOKER, n) / rate(torch, n)
            row(f"at least 3 times torch's DataLoader, {count_of(n)} each", f"{ratio:.2f} times", ratio >= 3)
    others = [n for n in medians if n not in (STOKER, BARE)]
    if STOKER in medians and others:
        best = max(others, key=lambda n: rate(n, most))
        ratio = rate(STOKER, most) / rate(best, most)
        row("faster than every peer that installs", f"{ratio:.2f} times the fastest ({best})", ratio > 1)
    if STOKER in medians and one == 1 and most > 1:
        ratio = rate(STOKER, most) / rate(STOKER, 1)
        goal = 1.9 if most == 2 else 14 * most / 16
        row(f"{most} workers at least {goal:g} times one", f"{ratio:.2f} times", ratio >= goal)
    if extra:
        kept = extra["kept index"]
        beyond = kept["open"] + kept["first"] - kept["flow"]
        row(f"first batch of 256 from a warm folder of {kept['samples']:,} files, index kept: "
            "under 0.3 s beyond the decoding", f"{beyond:.3f} s beyond {kept['flow']:.3f} s", beyond < 0.3)
        memory = extra["memory"]
        row(f"memory beside the slots under 64 MB, flat over {memory['batches']:,} batches",
            f"{memory['early']:.1f}, {memory['half']:.1f}, {memory['end']:.1f} MB early, half-way, at the end",
            memory["end"] < 64 and memory["end"] < memory["early"] + 2)
        start = extra["epoch start"]
        row(f"epoch start at N = {start['samples']:.0e} under 1 ms", f"{start['begin_ms']:.3f} ms",
            start["begin_ms"] < 1)
    return lines


def write(out, command, data, medians, counts, refused, extra, rounds, seconds):
    notes = {name: constants(PEERS[name]).get("NOTE", "") for name in medians if name in PEERS}
    notes[BARE] = "libjpeg-turbo, whole images, from memory, no crop"
    lines = ["# Results on two cores", "",
             f"Made by `{command}` on {time.strftime('%Y-%m-%d')}.", "",
             f"- Machine: {machine()}", f"- Versions: {versions()}", f"- Data: {data}",
             "- Job: read, decode, RandomResizedCrop(224), flip, ToTensor, Normalize to float32 NCHW, batches of 64; "
             "page cache warm; each contestant in its own process, pinned to as many CPUs as it has workers.",
             f"- Median of {rounds} interleaved round{'s' if rounds > 1 else ''} of {seconds:g} s each.", "",
             "## Images per second", "", *rates_table(medians, counts, notes, refused), "",
             "![images per second](results.svg)", "", "## Targets", "", *targets_table(medians, counts, extra)]
    if extra:
        cold = extra["cold index"]
        lines += ["", f"Opening the folder of {cold['samples']:,} files takes {cold['open']:.3f} s the first time and "
                      f"{extra['kept index']['open']:.3f} s with the index kept."]
    (out / "RESULTS.md").write_text("\n".join(lines) + "\n")


def plot(out, medians, counts):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "stoker"
    from matplotlib import pyplot

    names = sorted(medians, key=lambda n: medians[n][counts[-1]]["rate"])
    figure, axes = pyplot.subplots(figsize=(8, 0.5 * len(names) + 1.2))
    height = 0.8 / len(counts)
    for k, workers in enumerate(counts):
        places = [i + (k - (len(counts) - 1) / 2) * height for i in range(len(names))]
        bars = axes.barh(places, [medians[n][workers]["rate"] for n in names], height,
                         label=count_of(workers), color=pyplot.cm.Blues(0.4 + 0.5 * (k + 1) / len(counts)))
        axes.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=7)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("images per second")
    axes.legend(loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out / "results.svg", metadata={"Date": None})
