# SPDX-License-Identifier: Apache-2.0
"""The gallery of transforms: every public transform on a picture of stoker.synth, before and after, made when the site is
built. A transform that is not in it makes the build fail."""

from __future__ import annotations

import html
import inspect
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import stoker
from PIL import Image
from reference import escaped
from stoker import transforms as T
from stoker._steps.base import Transform
from stoker._steps.mix import BatchTransform
from stoker.synth import Painter

_SIZE = (240, 180)
_PICTURES = (20, 7, 13)  # those of Painter(1): transforms of single images are shown on the first
_SEED = 6909  # of the batches: draws that show what mixing does, and first MixUp, then CutMix
_HEAD = """# Gallery of transforms

Every transform of `stoker.transforms`, before and after. The pictures are generated ones (`stoker.synth`), and were made
by the code beside them when this page was built. Random transforms are shown with several draws; in training, each draw
follows from the seed, the epoch and the sample.

torchvision's objects of the same names do the same. [Transforms](../manual/transforms.md) says how they are used, and
[Fidelity](../manual/fidelity.md) how close each is to torchvision's.
"""


class Shown(NamedTuple):
    code: str  # an expression: what is shown is what it makes
    draws: int = 1
    remark: str = ""


_OF_IMAGES = {
    "Geometry": {
        "Resize": Shown("T.Resize(90)"),
        "CenterCrop": Shown("T.CenterCrop(120)"),
        "RandomCrop": Shown("T.RandomCrop(120)", 3),
        "RandomResizedCrop": Shown("T.RandomResizedCrop(120)", 3),
        "RandomHorizontalFlip": Shown("T.RandomHorizontalFlip(p=1)"),
        "RandomVerticalFlip": Shown("T.RandomVerticalFlip(p=1)"),
        "RandomRotation": Shown("T.RandomRotation(30)", 3),
        "RandomAffine": Shown('T.RandomAffine(15, translate=(0.1, 0.1), scale=(0.7, 1.2), shear=15, interpolation="bilinear")', 3),
        "RandomPerspective": Shown("T.RandomPerspective(p=1)", 3),
        "ElasticTransform": Shown("T.ElasticTransform(150.0)", 3),
        "RandomResize": Shown("T.RandomResize(60, 150)", 3),
        "RandomShortestSize": Shown("T.RandomShortestSize([60, 90, 120])", 3),
        "ScaleJitter": Shown("T.ScaleJitter((120, 120), (0.5, 1.5))", 3),
        "RandomZoomOut": Shown("T.RandomZoomOut(side_range=(1.0, 2.0), p=1)", 3),
        "Pad": Shown('T.Pad(30, padding_mode="reflect")'),
    },
    "Colour and blur": {
        "ColorJitter": Shown("T.ColorJitter(brightness=0.5, contrast=0.5, saturation=0.5, hue=0.2)", 3),
        "Grayscale": Shown("T.Grayscale()"),
        "RandomGrayscale": Shown("T.RandomGrayscale(p=1)"),
        "RandomInvert": Shown("T.RandomInvert(p=1)"),
        "RandomPosterize": Shown("T.RandomPosterize(2, p=1)"),
        "RandomSolarize": Shown("T.RandomSolarize(128, p=1)"),
        "RandomAutocontrast": Shown("T.RandomAutocontrast(p=1)"),
        "RandomEqualize": Shown("T.RandomEqualize(p=1)"),
        "RandomAdjustSharpness": Shown("T.RandomAdjustSharpness(8, p=1)"),
        "RandomChannelPermutation": Shown("T.RandomChannelPermutation()", 3),
        "RandomPhotometricDistort": Shown("T.RandomPhotometricDistort()", 3),
        "GaussianBlur": Shown("T.GaussianBlur(13, sigma=(0.1, 4.0))", 3),
        "JPEG": Shown("T.JPEG((1, 20))", 3),
    },
    "Automatic augmentation": {
        "AutoAugment": Shown("T.AutoAugment()", 3),
        "RandAugment": Shown("T.RandAugment()", 3),
        "TrivialAugmentWide": Shown("T.TrivialAugmentWide()", 3),
    },
    "Tensors": {
        "ToTensor": Shown("T.ToTensor()"),
        "RandomIoUCrop": Shown("T.RandomIoUCrop()", 0, "Which part it crops depends on boxes, which the picture does not have."),
        "SanitizeBoundingBoxes": Shown("T.SanitizeBoundingBoxes()", 1, "It removes boxes, and leaves images as they are."),
        "ClampBoundingBoxes": Shown("T.ClampBoundingBoxes()", 1, "It changes boxes, and leaves images as they are."),
        "ConvertBoundingBoxFormat": Shown(
            'T.ConvertBoundingBoxFormat("CXCYWH")', 1, "It changes boxes, and leaves images as they are."
        ),
        "PILToTensor": Shown("T.PILToTensor()"),
        "ConvertImageDtype": Shown('T.Compose([T.PILToTensor(), T.ConvertImageDtype("float16")])'),
        "Normalize": Shown(
            "T.Compose([T.ToTensor(), T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])", 1,
            "Shown with the lowest value as black and the highest as white.",
        ),
        "RandomErasing": Shown("T.Compose([T.ToTensor(), T.RandomErasing(p=1)])", 3),
    },
    "Several": {
        "Compose": Shown("T.Compose([T.RandomResizedCrop(120), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4)])", 3),
        "RandomApply": Shown("T.RandomApply([T.Grayscale(3), T.GaussianBlur(13, sigma=3.0)], p=0.5)", 3,
                             "A draw either applies all of them, or leaves the image as it is."),
        "RandomOrder": Shown("T.RandomOrder([T.RandomSolarize(128, p=1), T.RandomPosterize(2, p=1)])", 3),
    },
}
_OF_BATCHES = {
    "MixUp": Shown("T.MixUp(num_classes=3)"),
    "CutMix": Shown("T.CutMix(num_classes=3)"),
    "RandomChoice": Shown("T.RandomChoice([T.MixUp(num_classes=3), T.CutMix(num_classes=3)])", 2),
}


def page(pictures: Path) -> str:
    """The page as Markdown; the pictures are written to the folder `pictures`, which is beside it."""
    lacking = sorted(transforms() ^ {*_OF_BATCHES, *(name for group in _OF_IMAGES.values() for name in group)})
    if lacking:
        raise ValueError(f"scripts/docs/gallery.py and stoker.transforms.__all__ differ in {', '.join(lacking)}")
    pictures.mkdir(parents=True)
    painted = [Painter(1).image(number).convert("RGB").resize(_SIZE) for number in _PICTURES]
    out = [_HEAD]
    for title, group in _OF_IMAGES.items():
        out += [f"## {title}", ""]
        for name, shown in group.items():
            out += _entry(name, shown.code, shown.remark, [_rows_of_image(name, shown, painted[0], pictures)])
    out += ["## Whole batches", "", "A batch of three images, and what the loader delivers. The labels become shares of the",
            "classes.", ""]
    for name, shown in _OF_BATCHES.items():
        out += _entry(name, f"stoker.DataLoader(data, batch_size=3, batch_transforms={shown.code})", shown.remark,
                      _rows_of_batch(name, shown, painted, pictures))
    return "\n".join(out) + "\n"


def transforms() -> set[str]:
    """The names of all public transforms."""
    kinds = {name: getattr(T, name) for name in T.__all__}
    return {name for name, kind in kinds.items() if inspect.isclass(kind) and issubclass(kind, (Transform, BatchTransform))}


def _entry(name: str, code: str, remark: str, rows: Sequence[str]) -> list[str]:
    words = " ".join(inspect.cleandoc(getattr(T, name).__doc__).split("\n\n")[0].split())
    words = f"{escaped(words)} [Reference](../reference/transforms.md#{name.lower()})"
    return [f"### {name}", "", words, "", "```python", code, "```", "", *rows, "", *([remark, ""] if remark else [])]


def _rows_of_image(name: str, shown: Shown, image: Image.Image, pictures: Path) -> str:
    transform = eval(shown.code, {"T": T})
    before = np.asarray(image)
    figures = [_figure(pictures, "before", before, f"before: {_facts(before)}")]
    for draw in range(shown.draws):
        label = f"after: {_facts(np.asarray(transform(image)))}" if shown.draws == 1 else f"after, draw {draw + 1}"
        after = _levels(T.functional_apply(transform, image, seed=draw))
        figures.append(_figure(pictures, f"{name.lower()}-{draw}", after, label))
    return f'<div class="gallery">{"".join(figures)}</div>'


def _rows_of_batch(name: str, shown: Shown, painted: list[Image.Image], pictures: Path) -> list[str]:
    data = stoker.datasets.ImageBytes([_png(image) for image in painted], labels=[0, 1, 2], transform=T.ToTensor())
    plain, _ = next(iter(stoker.DataLoader(data, batch_size=3, output="torch")))
    befores = [_figure(pictures, f"batch-{k}", _levels(image.numpy()), f"before: class {k}") for k, image in enumerate(plain)]
    rows = [befores]
    mix = eval(shown.code, {"T": T})
    loader = stoker.DataLoader(data, batch_size=3, seed=_SEED, batch_transforms=mix, output="torch")
    for draw in range(shown.draws):
        images, labels = next(iter(loader))
        rows.append([_figure(pictures, f"{name.lower()}-{draw}-{k}", _levels(image.numpy()), f"after: {_shares(label.tolist())}")
                     for k, (image, label) in enumerate(zip(images, labels))])
    return [f'<div class="gallery">{"".join(row)}</div>' for row in rows]


def _shares(label: list[float]) -> str:
    return ", ".join(f"{share:.0%} class {k}" for k, share in enumerate(label) if share)


def _facts(values: np.ndarray) -> str:
    """The type and the shape of an array, and the range of floats."""
    span = "" if values.dtype == np.uint8 else f", {values.min():.2f} to {values.max():.2f}"
    return f"{values.dtype} {list(values.shape)}{span}"


def _levels(values: np.ndarray) -> np.ndarray:
    """An array that is channels first as uint8, channels last: floats in [0, 1] as levels, others stretched to that."""
    values = values.transpose(1, 2, 0)
    if values.dtype != np.uint8:
        values = values.astype(np.float32)
        low, high = min(values.min(), 0.0), max(values.max(), 1.0)
        values = np.round((values - low) / (high - low) * 255).astype(np.uint8)
    return values


def _figure(pictures: Path, name: str, levels: np.ndarray, label: str) -> str:
    path = pictures / f"{name}.webp"
    if not path.exists():
        Image.fromarray(levels.squeeze()).convert("RGB").save(path, quality=85)
    height, width = levels.shape[:2]
    return (
        f'<figure><img src="{pictures.name}/{path.name}" width="{width}" height="{height}" alt="{html.escape(name)}">'
        f"<figcaption>{html.escape(label)}</figcaption></figure>"
    )


def _png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
