# SPDX-License-Identifier: Apache-2.0
# What each function that is timed as part of a stage costs per sample: operators. Part of watch.py.

_OPERATORS = 64  # of a loader, at most

_operators: dict = {}  # loader -> [batches, samples, ns of them, batches at the next note, {(place, name): [calls, ns]}]


def _type_of(thing, out) -> str:
    """The format of an image, or the suffix of a file."""
    try:
        format = getattr(out, "format", None) or getattr(thing, "format", None)
        if type(format) is str:
            return " " + format
        path = thing if isinstance(thing, (str, bytes, os.PathLike)) else getattr(thing, "name", "")
        suffix = os.path.splitext(os.fsdecode(path))[1].lower()
        return " " + suffix if 1 < len(suffix) < 8 and suffix[1:].isalnum() else ""
    except Exception:
        return ""  # an object of the program


def _name_of(function) -> str:
    """The name of a transform: of its function, or of its class."""
    name = getattr(function, "__name__", None)
    return name if type(name) is str else type(function).__name__


def _add_operators(job, took: int, by_samples: float, by_time: float) -> None:
    """A batch is finished. Parts are extrapolated from the samples that were measured, as stages are."""
    known = _operators.get(job.loader)
    if known is None:
        known = _operators[job.loader] = [0, 0, 0, 1, {}]
    known[0], known[1], known[2], all_of_them = known[0] + 1, known[1] + job.samples, known[2] + took, known[4]
    for key, (calls, ns) in job.operators.items():
        once = key[0] == COLLATE - READ
        sums = all_of_them.get(key)
        if sums is None:
            if len(all_of_them) >= _OPERATORS:
                continue
            sums = all_of_them[key] = [0.0, 0.0]
        sums[0] += calls if once else calls * by_samples
        sums[1] += ns if once else ns * by_time
    if known[0] >= known[3]:  # ever more rarely: each note is a line, and workers are often killed at the end
        known[3] = known[0] + 1 + known[0] // 2
        _say_operators(job.loader, known)


def _say_operators(loader: int, known: list) -> None:
    parts = [f"{known[1]} {known[2]}"]
    for (place, name), (calls, ns) in known[4].items():
        parts.append(f"{place} {calls:.0f} {ns:.0f} {name.replace('|', ' ')[:60]}")
    _say(f"loader.{loader}.operators", "|".join(parts))
