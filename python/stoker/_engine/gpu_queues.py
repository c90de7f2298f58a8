# SPDX-License-Identifier: Apache-2.0
"""The GPU's hardware queues.

By default all CUDA streams of a process share eight of them, in which copies of decoded images and the kernels of a
training step hold each other up. The driver reads the number from the environment when CUDA starts, and never again.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

_VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS"
_NUMBER = "32"
_asked = False  # before CUDA had started
_asked_too_late = False


@contextlib.contextmanager
def more_queues() -> Iterator[None]:
    """Let CUDA start with more queues, if it starts in this context, unless the user or a framework has set a number.
    Afterwards the environment, which child processes inherit, is as before."""
    global _asked, _asked_too_late
    started = _cuda_has_started()
    if _VARIABLE in os.environ or started:
        _asked_too_late = _asked_too_late or (started and not _asked and _VARIABLE not in os.environ)
        yield
        return
    os.environ[_VARIABLE] = _NUMBER
    _asked = True
    try:
        yield
    finally:
        if os.environ.get(_VARIABLE) == _NUMBER:
            del os.environ[_VARIABLE]


def more_for_script() -> None:
    """Let CUDA start with more queues whenever the script of this process starts it, unless a number is set. Processes that
    the script starts inherit it."""
    os.environ.setdefault(_VARIABLE, _NUMBER)


def _cuda_has_started() -> bool:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)  # also None in the middle of torch's own import
    return cuda is not None and cuda.is_initialized()


def note() -> str | None:
    """What a loader whose device also decodes has to say about it."""
    if not _asked_too_late:
        return None
    return (
        "CUDA had started before the first loader that makes batches on the GPU was opened, and so has eight hardware "
        f"queues, in which decoding and training hold each other up: set {_VARIABLE}={_NUMBER} before the program starts, or open the "
        "loader before anything else uses the GPU"
    )
