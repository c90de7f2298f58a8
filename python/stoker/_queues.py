# SPDX-License-Identifier: Apache-2.0
"""The GPU's hardware queues.

By default all CUDA streams of a process share eight of them, in which copies of decoded images and the kernels of a
training step hold each other up. The driver reads the number when CUDA starts, so it is to be set before.
"""

from __future__ import annotations

import os
import sys

_VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS"
_asked_too_late = False


def ask_for_more() -> None:
    """Set the number, unless the user or a framework did, and remember if CUDA has started already."""
    global _asked_too_late
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = "32"
        _asked_too_late = _cuda_has_started()


def _cuda_has_started() -> bool:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)  # also None in the middle of torch's own import
    return cuda is not None and cuda.is_initialized()


def note() -> str | None:
    """What a loader whose device also decodes has to say about it."""
    if not _asked_too_late:
        return None
    return (
        "CUDA had started before stoker was imported, and so has eight hardware queues, in which decoding and "
        f"training hold each other up: import stoker first, or set {_VARIABLE}=32"
    )
