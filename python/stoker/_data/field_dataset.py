# SPDX-License-Identifier: Apache-2.0
"""The base class of datasets whose samples have several fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _ext
from .._base.tensors import torch_if_installed
from .._steps.base import gives_array, library_of
from .._steps.single import as_pnm
from .base import EngineDataset, opened
from .dicts import Dicts, format_after
from .fields import IMAGE, first_of, pixels_of, sample, worked_on
from .file_options import IMAGE_SUFFIX
from .in_python import engine_text
from .joint import Joint, joint_of


class FieldDataset(EngineDataset):
    """Base class of datasets whose samples are tuples of fields."""

    _asks_pillow = False
    _as_dict = False  # whether a sample is an image and a dict of its other fields

    def __init__(self, transform: Any, transforms: Any = None) -> None:
        if transforms is not None:
            self._check_joint(transform, transforms)
        self.is_joint = transforms is not None
        self._undecoded: tuple[_ext.Dataset, _ext.Dataset | None] | None = None  # made of the first one
        super().__init__(transforms if self.is_joint else transform)
        transform = self.transform
        self._check_names()
        fields, kind = self._engine().fields, worked_on(engine_text(transform) or "")
        if transform is not None and first_of(fields, kind) is None:
            raise ValueError(
                f"transform={transform!r}: there is no field of type {kind}; the fields are "
                + ", ".join(f"{name} ({kind})" for name, kind in fields)
            )

    def _kinds(self) -> list[str]:
        return [IMAGE, "json"] if self._as_dict else [kind for _, kind in self._engine().fields]

    @property
    def field_types(self) -> dict[str, str]:
        """The names of the fields, in order, and their types: image, audio, int, float, array, text, json or bytes."""
        return dict(self._engine().fields)

    def _check_joint(self, transform: Any, transforms: Any) -> None:
        if transform is not None:
            raise ValueError("transform= and transforms= are both given: transforms= alone does what both would do")
        if (self._masks or self._boxes) is None:
            raise ValueError("transforms= is for images with masks or boxes, which this dataset does not have: use transform=")
        if not callable(transforms):
            raise TypeError(f"transforms={transforms!r} is neither a transform nor a function")

    def _check_names(self) -> None:
        """Raise if a pipeline of Albumentations has more images or masks than the dataset names, and there are such fields."""
        transform = self.transform
        kinds = list((getattr(transform, "additional_targets", None) or {}).values())
        names = (self._masks or "").split(",") if self._masks else []
        if library_of(transform) != "albumentations" or not kinds or self._kinds().count(IMAGE) - 1 <= len(names):
            return
        images = sum(name.endswith(IMAGE_SUFFIX) for name in names)
        for kind, named, most in (("image", images, 0), ("mask", len(names) - images, 1)):
            if kinds.count(kind) + most > max(named, most):
                raise ValueError(
                    f"additional_targets={transform.additional_targets!r} has more {kind}s than the dataset: name fields in {kind}s="
                )

    def _text(self) -> str | None:
        text = super()._text()
        if text is None and (self._masks or self._boxes) is not None and not self.is_joint:
            if IMAGE_SUFFIX in (self._masks or ""):
                raise NotImplementedError(
                    f"transform={self.transform!r} has a step that the engine does not have, and several images only follow "
                    "steps of the engine: remove that step, or leave out images="
                )
            what = "mask" if self._masks else "boxes"
            raise NotImplementedError(
                f"transform={self.transform!r} has a step that the engine does not have. As transform= it would get the "
                f"image without its {what}: pass transforms=, whose own steps get both and return both"
            )
        return text

    def _python_call(self) -> Any:
        if not self.is_joint:
            return super()._python_call()
        if IMAGE_SUFFIX in (self._masks or ""):
            raise NotImplementedError("transforms= has steps of your own, and several images only follow steps of the engine")
        return joint_of(self.transform, self._masks, self._boxes, self._of_objects)

    def _subset(self, indices: Sequence[int]) -> _ext.Dataset:
        return self._engine().subset(np.asarray(indices, np.int64))

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """Return one sample.

        Args:
            index: The number of the sample; negative numbers count from the end.

        Returns:
            The fields. Without a transform an image is a uint8 array of shape height x width x 3; with one, the first
            image is what a loader would make of it, with random draws that differ from call to call, and further
            images are as without a transform. Other fields are int, float, str, bytes, NumPy arrays or parsed JSON.

        Raises:
            IndexError: There is no such sample.
            CorruptSample: The sample is damaged.
        """
        values = self._sample(range(len(self))[index])
        form = self._form()
        return values if form is None else form.sample(*values)

    def _form(self) -> Dicts | None:
        """Return how samples become an image and a dict; None if they are tuples of their fields."""
        if not self._as_dict:
            return None
        boxes = [re.split("[=+]", group)[0] for group in (self._boxes or "").split(",")]
        masks = [*self._of_objects, *re.sub("=[^,]*", "", self._masks or "").split(",")]
        return Dicts(tuple(self.field_types), tuple(boxes), tuple(masks), format_after(self.transform))

    def _sample(self, index: int) -> tuple[Any, ...]:
        text = self._text()
        if text is None and self.is_joint:
            return self._joint_sample(index)
        if text is None:
            return self._sample_in_python(index)
        batch = self._batch_of(index, text, interleaved=self.transform is None and not text)
        values = sample(self._engine(), batch, text, self._image(batch, text))
        return self._with_images(values, text) if IMAGE_SUFFIX in (self._masks or "") else values

    def _with_images(self, values: tuple[Any, ...], text: str) -> tuple[Any, ...]:
        """Return a sample whose further images are in the form of its first one."""
        names = {name.removesuffix(IMAGE_SUFFIX) for name in (self._masks or "").split(",") if name.endswith(IMAGE_SUFFIX)}
        torch = None if gives_array(text) else torch_if_installed()
        out = dict(zip(self.field_types, values, strict=True))
        for name in names:
            if self.transform is None:
                out[name] = np.ascontiguousarray(out[name].transpose(1, 2, 0))
            elif torch is not None:
                out[name] = torch.from_numpy(out[name])
        return tuple(out.values())

    def _sample_in_python(self, index: int) -> tuple[Any, ...]:
        engine, encoded = self._engine(), self._encoded()
        at = first_of(engine.fields, IMAGE)
        assert at is not None
        if encoded is None:
            batch = self._batch_of(index, "", interleaved=True)
            return sample(engine, batch, "", self._in_python(_pillows(batch)))
        batch = self._batch_of(index, "", encoded)
        values = list(sample(encoded, batch, "", None if batch.images is None else pixels_of(batch)))
        try:
            image = opened(values[at])
        except Exception as reason:
            raise _ext.CorruptSample(f"{engine.name(index)}: {reason}") from reason
        values[at] = self._in_python(image)
        return tuple(values)

    def _encoded(self) -> _ext.Dataset | None:
        """Return the same samples, with their first image as the bytes that encode it; None if it is not encoded."""
        engine = self._engine()
        if self._undecoded is None or self._undecoded[0] is not engine:
            try:
                self._undecoded = engine, engine.encoded()
            except _ext.Unsupported:
                self._undecoded = engine, None
        return self._undecoded[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_undecoded": None}

    def _joint_sample(self, index: int) -> tuple[Any, ...]:
        assert self._called is not None
        joint: Joint = self._called[1]
        batch = self._batch_of(index, joint.text, interleaved=not joint.makes_tensor)
        image = self._finished(batch, joint.text) if joint.makes_tensor else _pillows(batch)
        names = [name for name, _ in self._engine().fields]
        values = dict(zip(names, sample(self._engine(), batch, joint.text, None), strict=True))
        image, parts = joint(image, {name: values[name] for name in joint.names})
        at = first_of(self._engine().fields, IMAGE)
        assert at is not None
        return tuple({**values, **parts, names[at]: image}.values())

    def _image(self, batch: _ext.Batch, text: str) -> Any:
        if self.transform is not None:
            return self._finished(batch, text)
        return None if batch.images is None else pixels_of(batch)


def _pillows(batch: _ext.Batch) -> Any:
    """Return the same as Pillow's image; from a file, so that it may be lazy."""
    return opened(as_pnm(pixels_of(batch)))
