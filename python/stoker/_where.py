# SPDX-License-Identifier: Apache-2.0
"""Where data sets in files keep what they know, and what they read from afar."""

from __future__ import annotations

import os
from typing import Any, TypedDict


class Where(TypedDict, total=False):
    index_dir: Any  # a folder for the list of what lies where
    cache_dir: Any  # a folder for what was read by URL
    cache_bytes: int  # no more than this in it; by default 64 GiB
    timeout: float  # seconds for one request by URL, retries included; by default 60
    connections: int  # at most so many to servers of URLs; by default 256
    max_memory: int  # bytes for archives that must be unpacked as a whole; by default a quarter of the memory


def _folder(path: Any) -> str:
    return os.path.expanduser(os.fsdecode(path))


def joined(paths: Any) -> str:
    """A path, or several as the engine takes them: "a.tar::b.tar"."""
    one = isinstance(paths, (str, bytes, os.PathLike))
    return "::".join(_folder(path) for path in ([paths] if one else paths))


def where_options(where: Where) -> dict[str, Any]:
    """The same by the engine's names."""
    for name in where:
        if name not in Where.__annotations__:
            raise TypeError(f"{name}= is none of {', '.join(Where.__annotations__)}")
    out: dict[str, Any] = {}
    if where.get("index_dir") is not None:
        out["index_dir"] = _folder(where["index_dir"])
    if where.get("cache_dir") is not None:
        out["cache_dir"] = _folder(where["cache_dir"])
    for name, value in where.items():
        if name in ("cache_bytes", "connections", "max_memory"):
            if value < 1:
                raise ValueError(f"{name}={value} should be positive")
            out[name] = int(value)
    if "timeout" in where:
        if not 0.001 <= where["timeout"] <= 86400:
            raise ValueError(f"timeout={where['timeout']} should be seconds, from 0.001 to 86400")
        out["remote_ms"] = int(1000 * where["timeout"])
    return out
