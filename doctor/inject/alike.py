# SPDX-License-Identifier: Apache-2.0
# Whether workers make the same samples, or draw the same random numbers: what the first batches of each show. Part of watch.py.

_FIRST_SAMPLES, _LOOKS = 16, 4  # samples that are digested; batches in which generators are looked at
_firsts: list = []  # digests of the first samples of an iterable dataset in this worker; None: they have none
_looks = 0
_states: list = []  # (place, generator, its state when the batch began)


def _digest(value) -> int:
    """Of the content, or its beginning. Raises what it does not know: a digest of a part of it would tell nothing."""
    import zlib

    crc, level = 0, [value]
    while level:
        value = level.pop()
        if hasattr(value, "element_size") and hasattr(value, "numel"):
            part = value.detach().flatten()[:256].double().tolist()
            text = f"{tuple(value.shape)} {part}"
        elif hasattr(value, "tobytes") and hasattr(value, "flat"):
            text = f"{value.shape} {list(value.flat[:256])}"
        elif isinstance(value, dict):
            level += list(value.values())[:32]
            text = " ".join(map(str, list(value)[:32]))
        elif isinstance(value, (list, tuple)):
            level += value[:32]
            text = str(len(value))
        elif value is None or isinstance(value, (str, bytes, int, float)):
            text = repr(value)[:512]
        else:
            raise TypeError(type(value).__name__)
        crc = zlib.crc32(text.encode("utf-8", "replace"), crc)
    return crc


def _note_first(sample) -> None:
    """The first samples of a worker are reported when there are half of them, and all."""
    global _firsts
    try:
        _firsts.append(_digest(sample))
        if len(_firsts) in (_FIRST_SAMPLES // 2, _FIRST_SAMPLES):
            _say("worker.samples", " ".join(f"{crc:08x}" for crc in _firsts))
    except Exception:
        _firsts = None


def _state(generator) -> object:
    """The state of a generator of random numbers, to compare; None: it is none."""
    kind = type(generator)
    home = kind.__module__.partition(".")[0]
    if home == "numpy" and kind.__name__ == "Generator":
        return repr(generator.bit_generator.state)
    if home == "numpy" and kind.__name__ == "RandomState":
        state = generator.get_state()
        return state[1].tobytes(), state[2:]
    if home == "random" and kind.__name__ == "Random":
        return generator.getstate()
    if home == "torch" and kind.__name__ == "Generator" and generator.device.type == "cpu":
        return generator.get_state().numpy().tobytes()
    return None


def _generators(data) -> list:
    """Those that a dataset, its transforms or its module hold, and where."""
    found, seen, level = [], set(), [("dataset", data)]
    for _ in range(4):
        following = []
        for place, value in level:
            if id(value) in seen or len(seen) > 512:
                continue
            seen.add(id(value))
            state = _state(value)
            if state is not None:
                found.append((place, value, state))
            elif isinstance(value, (list, tuple)) and len(value) <= 64:
                following += [(f"{place}[{k}]", each) for k, each in enumerate(value)]
            elif hasattr(value, "__dict__") and not isinstance(value, type) and not hasattr(value, "__code__"):
                following += [(f"{place}.{name}", each) for name, each in list(vars(value).items())[:64]]
        level = following
    module = sys.modules.get(type(data).__module__)
    for name, value in list(getattr(module, "__dict__", {}).items())[:512]:
        state = _state(value)
        if state is not None and id(value) not in seen:
            found.append((f"{module.__name__}.{name}", value, state))
    return found[:16]


def _look_at_generators(data) -> None:
    """Before the first batches of a worker. A stream may well draw the same numbers in all of them: to shuffle what they
    divide afterwards."""
    global _looks, _states
    _looks += 1
    try:
        _states = [] if isinstance(data, _torch.utils.data.IterableDataset) else _generators(data)
    except Exception:  # an object of the program
        _looks, _states = _LOOKS, []


def _compare_generators() -> None:
    """After them: a generator that has moved was used, and from which state on is reported once."""
    global _looks, _states
    import zlib

    states, _states = _states, []
    try:
        for place, generator, before in states:
            if _state(generator) != before:
                _looks = _LOOKS
                _say("worker.random", f"{zlib.crc32(repr(before).encode()):08x} {place}"[:200])
                return
    except Exception:
        _looks = _LOOKS
