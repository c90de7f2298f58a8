# SPDX-License-Identifier: Apache-2.0
"""Plays a program of programs.py: builds its dataset and its loader, goes through two epochs, and writes down all that
a training script could see: values with their types, exceptions and where they were raised, and the states of the
generators of this process."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import itertools
import random
import re
import warnings

import numpy as np
import torch
from PIL import Image, ImageFile
from program_files import make_files

PRELUDES = {
    "": lambda: None,
    "truncated": lambda: setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True),
    "bomb": lambda: setattr(Image, "MAX_IMAGE_PIXELS", 1400),
    "float64": lambda: torch.set_default_dtype(torch.float64),
    "threads": lambda: torch.set_num_threads(2),
}


# ---- what is seen ----


def digest(data):
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def seen(value):
    """A value as text, with the types of all that it holds and digests of what is long."""
    name = type(value).__name__
    if isinstance(value, torch.Tensor):
        plain = value.detach().as_subclass(torch.Tensor).contiguous()
        text = digest(plain.view(-1).view(torch.uint8).numpy().tobytes()) if plain.numel() else "empty"
        more = getattr(value, "format", ""), getattr(value, "canvas_size", "")
        return f"{name}({value.dtype}, {tuple(value.shape)}, {text}{''.join(f', {one}' for one in more if one)})"
    if isinstance(value, np.ndarray):
        data = repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes()
        return f"{name}({value.dtype}, {value.shape}, {digest(data)})"
    if isinstance(value, Image.Image):
        return f"image({value.__class__.__name__}, {value.mode}, {value.size}, {digest(value.tobytes())})"
    if isinstance(value, collections.abc.Mapping):
        return f"{name}({', '.join(f'{key!r}: {seen(one)}' for key, one in value.items())})"
    if isinstance(value, (list, tuple, set, collections.deque)):
        return f"{name}({', '.join(map(seen, value))})"
    if dataclasses.is_dataclass(value):
        return f"{name}({seen(vars(value))})"
    text = repr(value)
    return text if len(text) < 200 else f"{name}({len(text)}, {digest(text.encode())})"


def seen_error(error, folder):
    """The classes of an exception, and the last line of its message without what differs from run to run."""
    lines = [line for line in str(error).replace(str(folder), "FOLDER").splitlines() if line.strip()]
    last = re.sub(r"0x[0-9a-f]+|pid(\(s\))? [\d, ]+", "_", lines[-1] if lines else "")
    return {"raised": [kind.__name__ for kind in type(error).__mro__], "says": last[:300]}


class Record:
    """What was seen, in order: pairs of a place and a text, or of a place and an exception."""

    def __init__(self, folder):
        self.folder = folder
        self.entries = []
        self.generators = []

    def add(self, place, value):
        self.entries.append([place, seen(value)])

    def failed(self, place, error):
        self.entries.append([place, seen_error(error, self.folder)])

    def states(self, place):
        state = [torch.get_rng_state(), random.getstate(), np.random.get_state()]
        self.entries.append([f"{place}: generators", [digest(repr(seen(one)).encode()) for one in state]])
        for generator in self.generators:
            self.entries.append([f"{place}: generator=", digest(generator.get_state().numpy().tobytes())])


# ---- what programs do with a loader ----


def whole(loader, record, place):
    for number, batch in enumerate(loader):
        record.add(f"{place}, batch {number}", batch)


def epochs(make, record):
    loader = make()
    for epoch in range(2):
        whole(loader, record, f"epoch {epoch}")
        record.states(f"after epoch {epoch}")


def lengths(make, record):
    loader = make()
    record.add("len", len(loader))
    record.add("len of the dataset", len(loader.dataset))
    for epoch in range(2):
        batches = list(loader)
        record.add(f"epoch {epoch}", batches)
        record.states(f"after epoch {epoch}")
    record.add("len at the end", len(loader))


def leave_early(make, record):
    loader = make()
    for epoch, last in ((0, 1), (1, 99), (2, 0)):
        for number, batch in enumerate(loader):
            record.add(f"epoch {epoch}, batch {number}", batch)
            if number == last:
                break
        record.states(f"after epoch {epoch}")


def side_by_side(make, record):
    one, other = make(), make()
    for epoch in range(2):
        for number, pair in enumerate(zip(one, other)):  # noqa: B905 (as scripts have it)
            record.add(f"epoch {epoch}, batch {number}", pair)
        record.states(f"after epoch {epoch}")


def endless(make, record):
    loader = make()

    def batches():
        while True:
            some = False
            for batch in loader:
                some = True
                yield batch
            if not some:
                return

    for number, batch in enumerate(itertools.islice(batches(), 9)):
        record.add(f"step {number}", batch)
    record.states("at the end")


def by_hand(make, record):
    """next() with an exception that ends nothing, and an iterator that is asked again after its end."""
    loader = make()
    for epoch in range(2):
        iterator = iter(loader)
        ends = 0
        for number in range(60):
            try:
                record.add(f"epoch {epoch}, batch {number}", next(iterator))
            except StopIteration:
                record.add(f"epoch {epoch}, batch {number}", "StopIteration")
                ends += 1
                if ends == 2:
                    break
            except Exception as error:
                record.failed(f"epoch {epoch}, batch {number}", error)
        record.states(f"after epoch {epoch}")


def inner_epoch(make, record):
    loader = make()
    for number, batch in enumerate(loader):
        record.add(f"outer batch {number}", batch)
        if number == 1:
            whole(loader, record, "inner epoch")
    record.states("after both")


def draws_between(make, record):
    """A training loop that draws itself: dropout, noise, a replay buffer."""
    loader = make()
    for epoch in range(2):
        for number, batch in enumerate(loader):
            draws = torch.rand(2), random.random(), np.random.rand()
            record.add(f"epoch {epoch}, batch {number}", (batch, draws))
        record.states(f"after epoch {epoch}")


def seed_between(make, record):
    """Scripts that seed before each epoch, and make a new loader for it."""
    for epoch in range(2):
        torch.manual_seed(epoch)
        random.seed(epoch)
        np.random.seed(epoch)
        whole(make(), record, f"epoch {epoch}")
        record.states(f"after epoch {epoch}")


def train_and_validate(make, record):
    train, valid = make(), make()
    for epoch in range(2):
        whole(train, record, f"epoch {epoch}")
        whole(valid, record, f"validation {epoch}")
        record.states(f"after epoch {epoch}")


USES = {
    use.__name__: use
    for use in (epochs, lengths, leave_early, side_by_side, endless, by_hand, inner_epoch, draws_between, seed_between,
                train_and_validate)
}


def seed_all(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def play(spec, names, folder):
    """Play the program in a folder, whose files are made if it is empty. `names` are those that its expressions use:
    of program_idioms, and DataLoader."""
    warnings.simplefilter("ignore")
    record = Record(folder)
    if not any(folder.iterdir()):
        make_files(folder, *spec["files"])
    PRELUDES[spec["prelude"]]()
    seed_all(spec["seed"])
    names = {**names, "folder": folder}

    def make():
        names["dataset"] = eval(spec["dataset"], names)
        options = {}
        for name, text in spec["options"].items():  # one after another: a sampler and generator= may share one
            names[name] = options[name] = eval(text, names)
            if isinstance(options[name], torch.Generator):
                record.generators.append(options[name])
        return names["DataLoader"](names["dataset"], **options)

    try:
        USES[spec["use"]](make, record)
    except Exception as error:
        record.failed(f"after {record.entries[-1][0]}" if record.entries else "at the start", error)
        error.__traceback__ = None
    record.states("at the end of the program")
    return record.entries


# ---- the comparison ----


def differences(theirs, ours, strict=True):
    """Where two records differ, as lines. An exception of ours must be one that catches torch's would catch; `strict`:
    with the same message."""
    out = []
    for (place, one), (where, other) in itertools.zip_longest(theirs, ours, fillvalue=["the end", None]):
        if isinstance(one, dict) and isinstance(other, dict):
            equal = one["raised"][0] in other["raised"] and (not strict or one["says"] == other["says"])
        else:
            equal = one == other
        if not equal or place != where:
            out += [f"torch:  {place}: {one}", f"stoker: {where}: {other}"]
            break
    return out
