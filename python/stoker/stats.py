# SPDX-License-Identifier: Apache-2.0
"""The engine's counters, for people."""

from __future__ import annotations

from typing import Any

_STAGES = ("read", "decode", "augment", "slot")
_NOTES = ("source_note", "pinned_note", "engine_note", "reader_note")  # what is slower than it could be


def friendly(raw: dict[str, Any], device: str | None) -> dict[str, Any]:
    """Seconds instead of nanoseconds, each stage's share of the workers' time, and sentences on what is
    slower than it could be."""
    seconds = {stage: raw["stage_ns"][stage] / 1e9 for stage in _STAGES}
    total = sum(seconds.values())
    decoded: dict[str, dict[str, int]] = {}
    for codec, path, files in raw["paths"]:
        decoded.setdefault(codec, {})[path] = files
    return {
        "batches": raw["batches"],
        "samples": raw["samples"],
        "bytes_read": raw["bytes"],
        "bad_samples": raw["bad"],
        "stages": {
            stage: {"seconds": value, "share": value / total if total else 0.0}
            for stage, value in seconds.items()
        },
        "waited_seconds": raw["wait_ns"] / 1e9,
        "first_batch_seconds": raw["first_batch_ns"] / 1e9,
        "workers": raw["workers"],
        "per_worker": [
            {"samples": worker["samples"], **{stage: worker[stage] / 1e9 for stage in _STAGES}}
            for worker in raw["per_worker"]
        ],
        "memory": {
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
        "device": {
            "name": device or "cpu",
            "augment_on": raw["augment_on"],
            "copied_bytes": raw["copied_bytes"],
            "rows_resized_there": raw["raw_rows"],
            "rows_resized_by_workers": raw["resized_rows"],
            "files_decoded_there": raw["engine_rows"],
            "files_engines_failed": raw["engine_failures"],
            "engines_note": raw["engine_note"],
        },
        "tuning": {
            "workers": raw["tuned_workers"],
            "prefetch": raw["tuned_prefetch"],
            "read_ahead": raw["tuned_read_ahead"],
            "moves": raw["tuning_moves"],
            "reverted": raw["tuning_reverted"],
            "limit": raw["tuning_limit"],
            "last": raw["tuning_last"],
        },
        "decoded": decoded,
        "reader": raw["reader"],
        "reads_in_flight_max": raw["reads_in_flight_max"],
        "notes": [raw[note] for note in _NOTES if raw[note]],
    }
