# SPDX-License-Identifier: Apache-2.0
"""The numbers as Markdown: what they are, tables, and the targets."""
from __future__ import annotations

from feeds import CEILING, STOKER
from models import MODELS

WORDS = """\
- *img/s* and all times of a step are the GPU's own (events); the loop is never stopped while it is measured. *Of ceiling*:
  against the same loop on batches that are on the GPU already, in the same rounds.
- *busy*: the share of the time in which any kernel ran (NVML). *SM*: the share of multiprocessors at work (GPM).
  *clock*: of the multiprocessors at the end of a round, relative to the highest: rows at different clocks do not compare.
- *stall*: from the end of one step's work to the moment at which the next has its batch, copies included (mean, a step).
  *work*: forward, backward and optimizer (median). *CPU s*: of the whole process and its workers, for 1,000 images; the
  ceiling's is what the training loop itself takes."""


def number(value, form, scale=1.0):
    return "-" if value is None else format(value * scale, form)


def train_rows(results):
    lines = ["| model | batches from | img/s | of ceiling | busy | SM | clock | stall, ms | work, ms | CPU s |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for model, of in results.items():
        ceiling = of.get(CEILING, {}).get("rate")
        for name, got in of.items():
            share = number(got["rate"] / ceiling if ceiling else None, ".1f", 100)
            lines.append(f"| {MODELS.get(model, model)} | {name} | {got['rate']:,.0f} | {share} % | "
                         f"{number(got['busy'], '.0f', 100)} % | {number(got['sm_active'], '.0f', 100)} % | "
                         f"{number(got['clock'], '.1f', 100)} % | "
                         f"{got['stall_ms']:.2f} | {got['work_ms']:.2f} | {got['cpu_per_1000']:.2f} |")
    return lines


def hardware_share(about):
    """The share of the files that a loader's JPEG hardware decoded between two looks at its counters."""
    before, after = about["before"], about["after"]
    samples = after["samples"] - before["samples"] if after else 0
    if not samples:
        return "-"
    return f"{(after['device']['files_decoded_there'] - before['device']['files_decoded_there']) / samples:.0%}"


def loader_rows(results, about):
    lines = ["| loader alone, to bf16 channels_last tensors on the GPU | img/s | each round | CPUs used | files by hardware | "
             "JPEG decoders at work |", "|---|---|---|---|---|---|"]
    for name, got in results.items():
        rounds = ", ".join(f"{rate:,.0f}" for rate in got["rates"])
        lines.append(f"| {name} | {got['rate']:,.0f} | {rounds} | {got['cpus']:.1f} | {hardware_share(about[name])} | "
                     f"{number(got['jpeg_hardware'], '.1f')} |")
    return lines


def profile(about):
    """What the workers of a loader did between two looks at its counters, in words."""
    before, after = about["before"], about["after"]
    samples = after["samples"] - before["samples"]
    if not samples:
        return "no samples"
    stages = ", ".join(f"{stage} {1e6 * (after['stages'][stage]['seconds'] - before['stages'][stage]['seconds']) / samples:.0f}"
                       for stage in after["stages"])
    there = {key: after["device"][key] - before["device"][key]
             for key in ("rows_resized_there", "copied_bytes")}
    text = (f"thread time per sample, us: {stages}; {there['rows_resized_there'] / samples:.0%} of the rows resized by the GPU, "
            f"{there['copied_bytes'] / samples / 1e3:.0f} KB copied per sample, {hardware_share(about)} of the files decoded by its "
            "JPEG hardware")
    if learnt := after["device"]["files_known"] - before["device"]["files_known"]:
        text += f"; {learnt:,} files became known meanwhile"
    note = after["device"]["jpeg_hardware_note"]
    return f"{text} ({note})" if note else text


def targets(found):
    """(what, wanted, measured, whether reached)."""
    train, alone, copies = found.get("train", {}), found.get("loader", {}), found.get("copies", {})
    cpus = found["cpus"]
    wanted = [("resnet50", 2, 0.99), ("resnet18", 4, 0.99 if cpus >= 16 else 0.97)]
    for model, least_cpus, share in wanted:
        of = train.get(model, {})
        if STOKER in of and CEILING in of and cpus >= least_cpus:
            got = of[STOKER]["rate"] / of[CEILING]["rate"]
            yield f"{MODELS[model]}, {cpus} CPUs: of the ceiling", f">= {share:.0%}", f"{got:.1%}", got >= share
    for model, of in found.get("recipes", {}).items():
        if STOKER in of and CEILING in of and cpus >= 4:
            got = of[STOKER]["rate"] / of[CEILING]["rate"]
            yield f"{MODELS[model]}, {cpus} CPUs: of the ceiling", ">= 97%", f"{got:.1%}", got >= 0.97
    for model, of in train.items():
        if STOKER in of and CEILING in of and model in MODELS:
            got = of[STOKER]["work_ms"] / of[CEILING]["work_ms"] - 1
            yield (f"{MODELS[model]}: a step's work with the loader's workers running, against resident data", "within 2 %",
                   f"{got:+.1%}", got <= 0.02)
    rate = {2: 14000, 4: 17000, 8: 22000, 16: 32000}.get(cpus)
    if rate and STOKER in alone:
        got = alone[STOKER]["rate"]
        yield f"loader alone, {cpus} CPUs", f">= {rate:,} img/s", f"{got:,.0f}", got >= rate
    if "share" in copies:
        yield ("copies, of the pinned bandwidth", ">= 90 %",
               f"{copies['share']:.0%} ({copies['rate'] / 1e9:.1f} of {copies['pinned'] / 1e9:.1f} GB/s)",
               copies["share"] >= 0.9)
    if "latency" in found:
        got = found["latency"]["median_us"]
        yield "next() to a usable tensor when one is ready", "< 50 us", f"{got:.0f} us", got < 50


def markdown(found):
    lines = [f"# Training on {found['gpu']}", "", f"`{found['command']}`", ""]
    lines += [f"- {line}" for line in found["setting"]] + [WORDS]
    if found.get("train"):
        lines += ["", *train_rows(found["train"])]
    if found.get("recipes"):
        lines += ["", *train_rows(found["recipes"]), ""]
        lines += [f"- {MODELS.get(model, model)}, {name}: {profile(about)}."
                  for model, of in found["recipes_about"].items() for name, about in of.items() if about["after"]]
    if found.get("loader"):
        lines += ["", *loader_rows(found["loader"], found["loader_about"]), ""]
        lines += [f"- {name}: {profile(about)}." for name, about in found["loader_about"].items() if about["after"]]
    lines += [f"\n{name}: not measured, {why}" for name, why in found["refused"].items()]
    if "why" in found.get("copies", {}):
        lines += ["", f"Copies: {found['copies']['why']}."]
    if found.get("flat_out"):
        lines += ["", "| a step on resident data | alone, ms | beside a loader at full speed, ms | slower by | at img/s |",
                  "|---|---|---|---|---|"]
        for model, got in found["flat_out"].items():
            lines.append(f"| {MODELS.get(model, model)} | {got['alone_ms']:.2f} | {got['beside_ms']:.2f} | "
                         f"{got['beside_ms'] / got['alone_ms'] - 1:+.1%} | {got['rate']:,.0f} |")
    rows = [] if found["rehearsal"] else list(targets(found))
    if rows:
        lines += ["", "| quantity | target | measured | |", "|---|---|---|---|"]
        lines += [f"| {what} | {wanted} | {got} | {'reached' if good else '**missed**'} |" for what, wanted, got, good in rows]
    return "\n".join(lines) + "\n"
