# SPDX-License-Identifier: Apache-2.0
"""What transforms have in common: how they are put together, become a pipeline's text, and run on one image."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _single
from ._arguments import op
from ._convert import default_seed, torch_if_installed


class Transform:
    """What all transforms here have in common."""

    _makes_tensor = False  # whether what comes out is a tensor, channels first
    _wants_tensor = False  # whether a tensor must go in
    _deferred = False  # makes a tensor, but as late as an op wants one (v2's ToImage)

    def _spec(self) -> str:
        """This transform as part of a pipeline's text."""
        raise NotImplementedError

    def _spec_of_grey(self) -> str:
        """The same where the image has one channel."""
        return self._spec()

    def __call__(self, img: Any) -> Any:
        out = functional_apply(self, img, seed=default_seed(), _epoch=next(_calls))
        if not self._makes_tensor:
            return np.ascontiguousarray(out.transpose(1, 2, 0))
        torch = torch_if_installed()
        return torch.from_numpy(out) if torch else out

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Compose(Transform):
    """Several transforms, one after the other; torchvision's own may be among them.

    >>> T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor()])
    Compose(
        Resize(size=256, interpolation=bilinear, max_size=None, antialias=True)
        CenterCrop(size=(224, 224))
        ToTensor()
    )
    """

    def __init__(self, transforms: Sequence[Any]) -> None:
        self.transforms = transforms

    @property
    def _makes_tensor(self) -> bool:  # type: ignore[override]
        return any(t._makes_tensor for t in _flat(self.transforms))

    def _spec(self) -> str:
        return self._text(grey=False)

    def _spec_of_grey(self) -> str:
        return self._text(grey=True)

    def _text(self, grey: bool) -> str:
        parts: list[str] = []
        deferred = False
        for transform in _flat(self.transforms):
            if transform._wants_tensor and deferred:
                parts.append("pil_to_tensor")
                deferred = False
            deferred = deferred or transform._deferred
            parts.append(transform._spec_of_grey() if grey else transform._spec())
            if parts[-1].startswith("grayscale"):
                grey = "num_output_channels=3" not in parts[-1]
        return "; ".join(filter(None, parts))

    def __repr__(self) -> str:
        return "\n    ".join([f"{type(self).__name__}(", *(str(t) for t in self.transforms)]) + "\n)"


class RandomApply(Transform):
    """A list of transforms, all of them with probability p, else none."""

    def __init__(self, transforms: Sequence[Any], p: float = 0.5) -> None:
        self.transforms = transforms
        self.p = p

    def _spec(self) -> str:
        return self._around(Compose(self.transforms)._spec())

    def _spec_of_grey(self) -> str:
        return self._around(Compose(self.transforms)._spec_of_grey())

    def _around(self, inner: str) -> str:
        return op("random_apply", p=self.p) + "{" + inner + "}"

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}(", f"p={self.p}", *(str(t) for t in self.transforms)]
        return "\n    ".join(lines) + "\n)"


# ---- from transforms to the engine ----

_calls = itertools.count()


def _known(transforms: Any) -> list[Transform]:
    from .compile import compile_transform

    return [compile_transform(t) for t in transforms]


def _flat(transforms: Any) -> Iterator[Transform]:
    """The transforms one by one, those of inner Composes as well."""
    for transform in _known(transforms):
        if isinstance(transform, Compose):
            yield from _flat(transform.transforms)
        else:
            yield transform


def pipeline_text(transform: Any, *, grey: bool = False) -> str:
    """What the engine is asked to do for a transform, one of these or torchvision's; None does nothing.
    `grey`: the images have one channel, as Pillow's of mode "L".

    >>> T.pipeline_text(T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor()]))
    'resize(size=256, interpolation=bilinear); center_crop(size=[224,224]); to_tensor'
    """
    steps = Compose([] if transform is None else [transform])
    return "; ".join(filter(None, [op("grayscale", num_output_channels=1), steps._spec_of_grey()])) if grey else steps._spec()


def functional_apply(
    transform: Any,
    image: Any,
    seed: int = 0,
    dtype: Any = None,
    memory_format: Any = None,
    pillow: int = 13,
    *,
    _epoch: int = 0,
) -> np.ndarray:
    """What the loader would make of one image, as a NumPy array of channels x height x width.

    What is drawn is a function of the seed alone:

    >>> import numpy as np
    >>> image = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    >>> once, again = (T.functional_apply(T.RandomCrop(4), image, seed=7) for _ in range(2))
    >>> once.shape, bool((once == again).all())
    ((3, 4, 4), True)
    """
    return _single.run(
        pipeline_text(transform),
        image,
        _epoch,
        seed=seed,
        dtype=dtype,
        memory_format=memory_format,
        pillow=pillow,
    )
