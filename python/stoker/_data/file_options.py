# SPDX-License-Identifier: Apache-2.0
"""Options of datasets in files: where their index and cache are kept, and limits for URLs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from .._steps.boxes import FORMATS, format_word


class Where(TypedDict, total=False):
    """Options that all datasets in files accept."""

    index_dir: Any  # a folder for the index of the samples
    cache_dir: Any  # a folder for what was read from URLs
    cache_bytes: int  # its limit; by default 64 GiB
    timeout: float  # seconds for one request of a URL, including retries; by default 60
    connections: int  # the most connections to servers at once; by default 256
    max_memory: int  # the most bytes of archives that must be unpacked as a whole; by default a quarter of the memory
    masks: str | Sequence[str] | Mapping[str, Any]  # the fields that are masks, perhaps with their types
    images: str | Sequence[str]  # further images that become what the first one does, with the same draws
    boxes: str | Mapping[str, Sequence[str]]  # the same for boxes, with the fields that have a value for each
    keypoints: str | Sequence[str] | Mapping[str, Sequence[str]]  # the same for key points, float32 [..., 2] or [..., 3]
    box_format: Any  # how they are stored: "xyxy", "xywh", "cxcywh", "relative_cxcywh", ...; torchvision's too
    transforms: Any  # in place of transform, for images with their masks and boxes


def _folder(path: Any) -> str:
    return os.path.expanduser(os.fsdecode(path))


def joined(paths: Any) -> str:
    """Return a path, or several in the form that the engine takes: "a.tar::b.tar"."""
    one = isinstance(paths, (str, bytes, os.PathLike))
    return "::".join(_folder(path) for path in ([paths] if one else paths))


IMAGE_SUFFIX = "=image"  # of a name among those of masks: an image


def masks_text(where: Where) -> str | None:
    """Return the names of masks in the engine's notation.

    >>> masks_text({"masks": ["a.png", "b.png"]}), masks_text({"masks": {"a.png": "int32", "b.png": "uint8"}})
    ('a.png,b.png', 'a.png=wide,b.png')
    >>> masks_text({"masks": "a.png", "images": "right.jpg"})
    'a.png,right.jpg=image'
    """
    given, images = where.get("masks") or (), where.get("images") or ()
    images = [images] if isinstance(images, str) else images
    given = [given] if isinstance(given, str) else given
    suffixes = {name: wide_suffix(dtype) for name, dtype in given.items()} if isinstance(given, Mapping) else dict.fromkeys(given, "")
    return ",".join([*(name + suffix for name, suffix in suffixes.items()), *(f"{name}{IMAGE_SUFFIX}" for name in images)]) or None


def wide_suffix(dtype: Any) -> str:
    """Return what the name of a mask of this type has behind it."""
    name = str(getattr(dtype, "__name__", dtype)).removeprefix("torch.")
    if name not in ("uint8", "int32"):
        raise ValueError(f"the type of a mask is {dtype!r}: allowed are 'uint8' and, for numbers up to 65535, 'int32'")
    return "=wide" if name == "int32" else ""


def _box_suffix(given: Any) -> str:
    if given is None:
        return ""
    word = str(getattr(given, "value", given)).lower()
    relative = "relative_" if word.startswith("relative_") else ""
    try:
        return f"={relative}{format_word(word.removeprefix(relative))}"
    except ValueError:
        raise ValueError(f"box_format={given!r} is none of {', '.join(FORMATS)}, and these after 'relative_'") from None


def boxes_text(where: Where) -> str | None:
    """Return the names of boxes and of what belongs to them in the engine's notation.

    >>> boxes_text({"boxes": {"boxes.npy": ["labels.npy"]}}), boxes_text({"boxes": "boxes"}), boxes_text({})
    ('boxes.npy+labels.npy', 'boxes', None)
    >>> boxes_text({"boxes": {"boxes": ["labels"]}, "box_format": "XYWH"})
    'boxes=xywh+labels'
    >>> boxes_text({"boxes": {"boxes": ["joints"]}, "keypoints": ["joints", "centre"]})
    'boxes+joints=points,centre=points'
    >>> boxes_text({"keypoints": {"joints": ["names"]}})
    'joints=points+names'
    """
    given, of_points = where.get("boxes"), where.get("keypoints") or ()
    if not isinstance(of_points, Mapping):
        of_points = dict.fromkeys([of_points] if isinstance(of_points, str) else of_points, ())
    points = list(of_points)
    if not given and where.get("box_format") is not None:
        raise ValueError(f"box_format={where['box_format']!r} says how boxes are stored: name their field with boxes=")
    suffix = _box_suffix(where.get("box_format"))
    groups: Mapping[str, Sequence[str]] = dict.fromkeys(given.split(","), ()) if isinstance(given, str) else given or {}
    for option, given_for in (("boxes", groups), ("keypoints", of_points)):
        for name, others in given_for.items():
            if isinstance(others, str):
                raise TypeError(f"{option}={where[option]!r}: give a list of names for {name!r}, not a str")  # type: ignore[literal-required]
    of_boxes = {other for others in groups.values() for other in others}
    for name in of_boxes & of_points.keys():
        if of_points[name]:
            raise ValueError(f"keypoints: {name!r} belongs to boxes, and so do its values {list(of_points[name])}: name them there")
    texts = ["+".join([name + suffix, *(_as_points(other, points) for other in others)]) for name, others in groups.items()]
    texts += ["+".join([f"{name}=points", *of_points[name]]) for name in points if name not in of_boxes]
    return ",".join(texts) or None


def _as_points(name: str, points: Sequence[str]) -> str:
    return f"{name}=points" if name in points else name


def where_options(where: Where) -> dict[str, Any]:
    """Return the options under the engine's names."""
    for name in where:
        if name not in Where.__annotations__:
            raise TypeError(f"{name}= is not an option; these are: {', '.join(Where.__annotations__)}")
    out: dict[str, Any] = {}
    if where.get("index_dir") is not None:
        out["index_dir"] = _folder(where["index_dir"])
    if where.get("cache_dir") is not None:
        out["cache_dir"] = _folder(where["cache_dir"])
    for name, value in where.items():
        if name in ("cache_bytes", "connections", "max_memory"):
            if value < 1:
                raise ValueError(f"{name}={value} is not a positive number")
            out[name] = int(value)
    if "timeout" in where:
        if not 0.001 <= where["timeout"] <= 86400:
            raise ValueError(f"timeout={where['timeout']} is not a number of seconds from 0.001 to 86400")
        out["remote_ms"] = int(1000 * where["timeout"])
    return out
