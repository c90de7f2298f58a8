# SPDX-License-Identifier: Apache-2.0
"""Warnings that point at the user's line, however many calls of this package and of torch are in between."""

from __future__ import annotations

import sys
import warnings

_NOT_THE_USERS = ("stoker", "torch")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is neither ours nor torch's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _NOT_THE_USERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
