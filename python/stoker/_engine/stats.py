# SPDX-License-Identifier: Apache-2.0
"""What DataLoader.stats() returns: counters of the engine as a dict that prints as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._base.tables import bytes_text, counted, html_table, text_table
from . import gpu_queues

_STAGES = {
    "read": "waiting for the bytes of a sample",
    "decode": "compressed bytes to pixels",
    "augment": "crop, resize, flip, normalize",
    "slot": "waiting for the consumer to take a batch",
}
_NOTES = ("source_note", "pinned_note", "jpeg_hardware_note", "reader_note")  # reasons for being slower than possible
_HEAD = ("stage", "seconds", "share", "what it is")


class Stats(dict[str, Any]):
    """Statistics of a DataLoader: a plain dict that prints as a table, and shows as one in a notebook.

    All times are in seconds, all sizes in bytes. For a dataset that runs in Python only `batches`,
    `bad_samples`, `waited_seconds`, `first_batch_seconds`, `workers` and `notes` are there; its notes say why the
    engine does not run it, and what would change that.

    | key | meaning |
    |---|---|
    | `batches`, `samples` | delivered since the loader was opened |
    | `bytes_read` | bytes of encoded samples |
    | `bad_samples` | samples that could not be read or decoded |
    | `stages` | for `read`, `decode`, `augment` and `slot`: `seconds`, summed over the workers, and `share` |
    | `waited_seconds` | time that `next()` waited for batches |
    | `first_batch_seconds` | time from the start of the latest epoch to its first batch |
    | `workers`, `per_worker` | number of threads, and the samples and stages of each |
    | `memory` | bytes allowed, held, and the peak; what holds them; how long workers waited for memory |
    | `device` | the device, what it resized and decoded, and bytes copied to it |
    | `tuning` | workers in use, batches to prefetch and samples to read ahead, now; changes; what limits the loader |
    | `decoded` | files by codec and code path |
    | `reader`, `reads_in_flight_max` | how samples are read, and how many reads ran at once |
    | `notes` | sentences about what is slower than it could be, and why |

    >>> loader = stoker.DataLoader(stoker.datasets.ImageFolder("images", T.ToTensor()), batch_size=5)
    >>> for images, labels in loader:
    ...     pass
    >>> stats = loader.stats()
    >>> stats["batches"], stats["samples"], stats["bad_samples"]
    (3, 12, 0)
    >>> print(stats)  # doctest: +ELLIPSIS
    delivered ... 3 batches, 12 samples...
    """

    def __str__(self) -> str:
        parts = [text_table((), self._lines(), widest=100)]
        if "stages" in self:
            parts.append(text_table(_HEAD, self._stages()))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        stages = html_table(_HEAD, self._stages()) if "stages" in self else ""
        return f"<div>{html_table((), self._lines())}{stages}</div>"

    def _stages(self) -> Iterator[tuple[str, ...]]:
        for name, what in _STAGES.items():
            stage = self["stages"][name]
            yield name, f"{stage['seconds']:.3f}", f"{100 * stage['share']:.1f} %", what

    def _lines(self) -> Iterator[tuple[str, str]]:
        delivered = [counted(self["batches"], "batch")]
        if "samples" in self:
            delivered += [counted(self["samples"], "sample"), f"{bytes_text(self['bytes_read'])} read"]
        yield "delivered", ", ".join(delivered)
        yield "bad samples", f"{self['bad_samples']:,}"
        yield "first batch", f"after {self['first_batch_seconds']:.3f} s"
        yield "next() waited", f"{self['waited_seconds']:.3f} s"
        if "tuning" in self:
            yield from self._engine_lines()
        else:
            yield "workers", f"{self['workers']:,}"
        for note in self["notes"]:
            yield "note", note

    def _engine_lines(self) -> Iterator[tuple[str, str]]:
        tuning, memory, device = self["tuning"], self["memory"], self["device"]
        active = f"{tuning['workers']} of {counted(self['workers'], 'thread')} active"
        ahead = f"up to {counted(tuning['prefetch'], 'batch')} prefetched, {counted(tuning['read_ahead'], 'sample')} read ahead"
        yield "workers", f"{active}, {ahead}" if self["workers"] else "none: batches are made in the calling thread"
        if tuning["limit"]:
            yield "limit", tuning["limit"]
        if tuning["last"]:
            yield "last change", f"{tuning['last']} ({tuning['moves']} made, {tuning['reverted']} reverted)"
        held = f"{bytes_text(memory['held_bytes'])} held, {bytes_text(memory['peak_bytes'])} peak"
        yield "memory", f"{held}, {bytes_text(memory['allowed_bytes'])} allowed"
        if device["name"] != "cpu":
            decoded = f"{counted(device['files_decoded_there'], 'file')} decoded and {counted(device['rows_resized_there'], 'row')} resized"
            yield "device", f"{device['name']}: {bytes_text(device['copied_bytes'])} copied; {decoded} there"
        for codec, paths in self["decoded"].items():
            yield f"decoded {codec}", ", ".join(f"{path} {files:,}" for path, files in paths.items())


def engine_stats(raw: dict[str, Any], device: str | None) -> Stats:
    """Return the engine's counters with seconds for nanoseconds, each stage's share, and notes."""
    seconds = {stage: raw["stage_ns"][stage] / 1e9 for stage in _STAGES}
    total = sum(seconds.values())
    decoded: dict[str, dict[str, int]] = {}
    for codec, path, files in raw["paths"]:
        decoded.setdefault(codec, {})[path] = files
    notes = [*(raw[note] for note in _NOTES), gpu_queues.note() if raw["jpeg_hardware_open"] else None]
    return Stats(
        batches=raw["batches"],
        samples=raw["samples"],
        bytes_read=raw["bytes"],
        bad_samples=raw["bad"],
        stages={
            stage: {"seconds": value, "share": value / total if total else 0.0}
            for stage, value in seconds.items()
        },
        waited_seconds=raw["wait_ns"] / 1e9,
        first_batch_seconds=raw["first_batch_ns"] / 1e9,
        workers=raw["workers"],
        per_worker=[
            {"samples": worker["samples"], **{stage: worker[stage] / 1e9 for stage in _STAGES}}
            for worker in raw["per_worker"]
        ],
        memory={
            "allowed_bytes": raw["memory_allowed"],
            "held_bytes": raw["memory_held"],
            "peak_bytes": raw["memory_peak"],
            "waited_seconds": raw["memory_wait_ns"] / 1e9,
            "batches_bytes": raw["slot_bytes"],
            "pinned_bytes": raw["pinned_bytes"],
            "scratch_bytes": raw["scratch_bytes"],
            "read_bytes": raw["read_bytes"],
            "dataset_bytes": raw["data_bytes"],
            "batches": raw["slots"],
            "batches_lent": raw["slots_lent"],
        },
        device={
            "name": device or "cpu",
            "augment_on": raw["augment_on"],
            "copied_bytes": raw["copied_bytes"],
            "rows_resized_there": raw["raw_rows"],
            "rows_resized_by_workers": raw["resized_rows"],
            "files_decoded_there": raw["jpeg_hardware_rows"],
            "files_hardware_failed": raw["jpeg_hardware_failures"],
            "jpeg_hardware_open": raw["jpeg_hardware_open"],
            "files_known": raw["jpeg_hardware_known"],
            "jpeg_hardware_note": raw["jpeg_hardware_note"],
            "engines_open": raw["jpeg_hardware_open"],  # former names
            "engines_note": raw["jpeg_hardware_note"],
        },
        tuning={
            "workers": raw["tuned_workers"],
            "prefetch": raw["tuned_prefetch"],
            "read_ahead": raw["tuned_read_ahead"],
            "moves": raw["tuning_moves"],
            "reverted": raw["tuning_reverted"],
            "limit": raw["tuning_limit"],
            "last": raw["tuning_last"],
        },
        decoded=decoded,
        reader=raw["reader"],
        reads_in_flight_max=raw["reads_in_flight_max"],
        notes=[note for note in notes if note],
    )
