# SPDX-License-Identifier: Apache-2.0
"""Custom datasets at the engine's speed: images are decoded once it is known which part of them is needed.

While lazy images are on, PIL.Image.open returns Pillow images that are not decoded yet, and transforms of torchvision
that are called with one run in the engine. They are on in worker processes of stoker.DataLoader, in the process itself
while it fetches samples, and inside `with lazy_images():`.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any

from .._base.locks import Lock
from .patches import applied

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


def _patch_pillow(name: str) -> Callable[[], None]:
    from . import files, pixels

    module: Any = sys.modules[name]
    if not pixels.KNOWN_PILLOW:
        return lambda: None
    before = module.open
    ours = files.make_open(before, _is_on)

    def undo() -> None:
        if module.open is ours:
            module.open = before

    _undo[name] = undo  # first, for a child that is forked after the next line
    module.open = ours
    return undo


def _patch_by(patch: Callable[[str], Callable[[], None]], name: str) -> Callable[[], None]:
    from . import pixels

    if not pixels.KNOWN_PILLOW:
        return lambda: None
    _undo[name] = lambda: patch(name)()  # for a child that is forked meanwhile: completes it, then undoes it
    return patch(name)


def _patch_transforms(name: str) -> Callable[[], None]:
    from . import compose

    return _patch_by(compose.patch, name)


def _patch_ops(name: str) -> Callable[[], None]:
    from . import pillow_ops

    return _patch_by(pillow_ops.patch, name)


def _patch_functions(name: str) -> Callable[[], None]:
    """Patch functions of OpenCV, or of Albumentations."""
    module = sys.modules[f"{__package__}.{_PATCHES[name][1]}"]
    return _patch_by(lambda name: applied(module.patches(name, _is_on)), name)


# By the module that is patched: how, and the module of this package that does it.
_PATCHES: dict[str, tuple[Callable[[str], Callable[[], None]], str]] = {
    "PIL.Image": (_patch_pillow, "files"),
    "PIL.ImageOps": (_patch_ops, "pillow_ops"),
    "PIL.ImageEnhance": (_patch_ops, "pillow_ops"),
    "cv2": (_patch_functions, "opencv"),
    "albucore.functions": (_patch_functions, "albumentations"),
    "albumentations.core.transforms_interface": (_patch_functions, "albumentations"),
    "torchvision.transforms.transforms": (_patch_transforms, "compose"),
    "torchvision.transforms.v2": (_patch_transforms, "compose"),
    "torchvision.transforms._presets": (_patch_transforms, "compose"),
    "timm.data.transforms": (_patch_transforms, "compose"),
    "timm.data.auto_augment": (_patch_transforms, "compose"),
}

# These are patched when a context begins, the others when one of them is used.
_AT_ONCE = ("PIL.Image", "cv2", "albucore.functions", "albumentations.core.transforms_interface")


def look() -> None:
    """Patch modules that were imported in the meantime."""
    if len(_undo) == len(_PATCHES):
        return
    for name in _PATCHES:
        if name not in _undo and _is_imported(name):
            _import_patch(name)
            with _lock.held():
                if _contexts and name not in _undo:
                    _undo[name] = _PATCHES[name][0](name)


def _import_patch(name: str) -> None:
    """Import what patches a module, before the lock is taken: a thread that imports something waits for other threads
    that do, and these may wait for the lock, if they open an image on import."""
    importlib.import_module(f".{_PATCHES[name][1]}", __package__)


def prepare() -> None:
    """Import what worker processes will need. In one that is forked while another thread imports it, the import would
    never end."""
    for name in _PATCHES:
        if _is_imported(name):
            _import_patch(name)


def _is_imported(name: str) -> bool:
    """Return whether a module is completely imported: it is in sys.modules while it is still being imported."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)


def _begin() -> None:
    """Patch what reads images, and what needs no lazy ones. Transforms are patched when that is called, or earlier (look)."""
    global _contexts
    present = [name for name in _AT_ONCE if _is_imported(name)]
    for name in present:
        _import_patch(name)
    with _lock.held():
        _contexts += 1
        _patch_if_not(present)


def _patch_if_not(names: list[str]) -> None:
    for name in names:
        if name not in _undo:
            _undo[name] = _PATCHES[name][0](name)


def _end() -> None:
    global _contexts
    with _lock.held():
        _contexts -= 1
        if not _contexts:
            _undo_all()


def _undo_all() -> None:
    for name in list(_undo):
        _undo[name]()
        del _undo[name]


def _begin_child() -> None:
    """Leave the contexts of threads that a forked child does not have, and patches that one of them had not finished."""
    global _contexts
    _contexts = _here.depth + _everywhere
    patched = [name for name in _AT_ONCE if name in _undo]
    _undo_all()
    if _contexts:
        _patch_if_not(patched)


_lock = Lock(_begin_child)


def everywhere() -> None:
    """Turn lazy images on in all threads of a worker process, until it ends."""
    global _everywhere
    _everywhere = True
    _begin()


class lazy_images:  # noqa: N801 (called like a function)
    """A context manager: images that this thread opens with Pillow inside it are lazy.

    `Image.open` of an ordinary JPEG returns a Pillow image that is not decoded yet; `convert`, `copy`, `crop`,
    `resize` and `transpose` keep it so. torchvision's transforms (v1 or v2) draw their numbers as always; what they do
    to the image runs in the engine when it becomes a tensor, on the part of the file that is needed, with torchvision's
    result to the bit. Any other access to the pixels decodes the image, with Pillow's bytes. Unusual files are left to
    Pillow, with its errors.

    Functions of OpenCV and Albumentations whose bytes the engine gives, such as `cv2.imread` of an ordinary JPEG and
    `A.Normalize`, run in it too; arrays are never lazy.

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
        self._enter()
        look()
        return self

    def _enter(self) -> lazy_images:
        _begin()
        _here.depth += 1
        return self

    def __exit__(self, *args: Any) -> None:
        _here.depth -= 1
        _end()


class fetching(lazy_images):  # noqa: N801
    """The same for a dataset that may not use images: it does not import Pillow, and patches transforms only once an image
    is opened; in a worker process at once, which has to do that only once."""

    def __enter__(self) -> fetching:
        self._enter()
        if _everywhere:
            look()
        return self
