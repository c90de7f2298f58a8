# SPDX-License-Identifier: Apache-2.0
"""Custom datasets at the engine's speed: images are decoded once it is known which part of them is needed.

While lazy images are on, PIL.Image.open returns Pillow images that are not decoded yet, and transforms of torchvision
that are called with one run in the engine. They are on in worker processes of stoker.DataLoader, in the process itself
while it fetches samples, and inside `with lazy_images():`.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from typing import Any

_lock = threading.Lock()
_contexts = 0  # how many need the patches
_undo: dict[str, Callable[[], None]] = {}  # how to undo each patch that is in place
_everywhere = False


class _Here(threading.local):
    depth = 0  # how many contexts this thread is in


_here = _Here()


def _is_on() -> bool:
    """Return whether images that this thread opens are lazy."""
    if not (_everywhere or _here.depth):
        return False
    look()
    return True


def _patch_pillow() -> Callable[[], None]:
    from . import _lazy_image

    module: Any = sys.modules["PIL.Image"]
    if not _lazy_image.KNOWN_PILLOW:
        return lambda: None
    before = module.open
    ours = module.open = _lazy_image.make_open(before, _is_on)

    def undo() -> None:
        if module.open is ours:
            module.open = before

    return undo


def _patch_transforms(name: str) -> Callable[[], None]:
    from . import _lazy_compose

    return _lazy_compose.patch(name)


_PATCHES: dict[str, Callable[[str], Callable[[], None]]] = {
    "PIL.Image": lambda name: _patch_pillow(),
    "torchvision.transforms.transforms": _patch_transforms,
    "torchvision.transforms.v2": _patch_transforms,
    "torchvision.transforms._presets": _patch_transforms,
}


def look() -> None:
    """Patch modules that were imported in the meantime."""
    if len(_undo) == len(_PATCHES):
        return
    for name in _PATCHES:
        if name not in _undo and _is_imported(name):
            with _lock:
                if _contexts and name not in _undo:
                    _undo[name] = _PATCHES[name](name)


def _is_imported(name: str) -> bool:
    """Return whether a module is completely imported: it is in sys.modules while it is still being imported."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)


def _begin() -> None:
    """Patch Pillow's open only. Transforms are patched when it is called."""
    global _contexts
    with _lock:
        _contexts += 1
        if "PIL.Image" not in _undo and _is_imported("PIL.Image"):
            _undo["PIL.Image"] = _patch_pillow()


def _end() -> None:
    global _contexts
    with _lock:
        _contexts -= 1
        if not _contexts:
            while _undo:
                _undo.popitem()[1]()


def everywhere() -> None:
    """Turn lazy images on in all threads of a worker process, until it ends."""
    global _everywhere
    _everywhere = True
    _begin()


class lazy_images:  # noqa: N801 (called like a function)
    """A context manager: images that this thread opens with Pillow inside it are lazy.

    `Image.open` of an ordinary JPEG returns a Pillow image that is not decoded yet; `convert("RGB")`, `copy` and
    `crop` keep it so. torchvision's transforms (v1 or v2) that are called with one run in the engine, on the part of
    the file that they need, with torchvision's result to the bit. Any other access to the pixels decodes the image,
    with Pillow's bytes. Unusual files are left to Pillow, with its errors.

    stoker.DataLoader turns this on while it runs datasets written in Python, unless compile=False.

    >>> from PIL import Image
    >>> with stoker.lazy_images():
    ...     image = Image.open("images/cat/0.png").convert("RGB")
    >>> image.size
    (64, 48)
    """

    def __enter__(self) -> lazy_images:
        with contextlib.suppress(ImportError):
            import PIL.Image  # noqa: F401 (imported now, so that its open can be patched)
        return self._enter()

    def _enter(self) -> lazy_images:
        _begin()
        _here.depth += 1
        return self

    def __exit__(self, *args: Any) -> None:
        _here.depth -= 1
        _end()


class fetching(lazy_images):  # noqa: N801
    """The same for a dataset that may not use images: it does not import Pillow."""

    __enter__ = lazy_images._enter
