# SPDX-License-Identifier: Apache-2.0
"""Datasets of images with masks: a class for each layout of files."""

from __future__ import annotations

import os
from typing import Any, Literal

from .base import Classes
from .file_options import IMAGE_SUFFIX, wide_suffix
from .pairs import Pairs, voc_folder

__all__ = ["Cityscapes", "ImageMaskFolder", "ImagePairs", "OxfordIIITPet", "VOCSegmentation"]


class _Masks(Pairs):
    """Base class. Each sample is an image and its mask, uint8 [height, width] with the numbers of classes.

    Whatever moves the image's pixels moves those of the mask, with the same draws: crops, flips, borders (of the
    number `mask_fill`), resizes (by the nearest pixels, as Pillow's). What changes colours leaves the mask as it is.
    """

    _masks = "mask"


class ImageMaskFolder(_Masks):
    """Images in one folder and their masks in another, with the same names but for the extension.

    Args:
        images: The folder of the images, which may have folders in it.
        masks: The folder of the masks: PNGs with grey levels or a palette, whose numbers are the classes. (Other
            formats must be grey.)
        transform: One of stoker.transforms or torchvision's, for the image; the mask follows.
        suffix: What the names of masks have before the extension, such as "_mask".
        dtype: "uint8", or "int32" for PNGs of 16 bits, whose numbers may be up to 65535.
        transforms: In place of `transform`, with steps of your own: each is called with the image and the mask, and returns
            both. Both are Pillow's, the mask of mode "L", unless a step before has made something else of them. The steps
            before the first one of yours run in the engine; those behind it are torchvision's v2. With several masks, or
            with boxes (a tv_tensor) and what belongs to them, a step gets a dict by the names of the fields in place of
            the mask.

    Raises:
        FileNotFoundError: A folder does not exist.
        StokerError: Images lack their masks; the message names the first ones.
        NotImplementedError: `transform` has a step that the engine does not have.

    >>> from PIL import Image
    >>> for name in ("0", "1"):
    ...     os.makedirs("photos", exist_ok=True), os.makedirs("masks", exist_ok=True)
    ...     Image.new("RGB", (64, 48)).save(f"photos/{name}.jpg")
    ...     Image.new("L", (64, 48), 7).save(f"masks/{name}.png")
    (None, None)
    (None, None)
    >>> train = T.Compose([T.RandomCrop(32), T.RandomHorizontalFlip(), T.ToTensor()])
    >>> data = stoker.datasets.ImageMaskFolder("photos", "masks", train)
    >>> images, masks = next(iter(stoker.DataLoader(data, batch_size=2)))
    >>> tuple(images.shape), tuple(masks.shape), masks.dtype, int(masks.max())
    ((2, 3, 32, 32), (2, 32, 32), torch.uint8, 7)
    >>> from PIL import ImageChops
    >>> def roll(image, mask):
    ...     return ImageChops.offset(image, 5), ImageChops.offset(mask, 5)
    >>> train = T.Compose([T.RandomCrop(32), roll, T.RandomHorizontalFlip(), T.ToTensor()])
    >>> data = stoker.datasets.ImageMaskFolder("photos", "masks", transforms=train)
    >>> image, mask = data[0]
    >>> tuple(image.shape), mask.shape
    ((3, 32, 32), (32, 32))
    """

    _layout = "stems"

    def __init__(
        self,
        images: Any,
        masks: Any,
        transform: Any = None,
        *,
        suffix: str = "",
        dtype: Any = "uint8",
        transforms: Any = None,
    ) -> None:
        self._masks = f"mask{wide_suffix(dtype)}"
        super().__init__(images, masks, transform, transforms, suffix=suffix)


class ImagePairs(Pairs):
    """Pairs of images of one size in two folders, such as left and right, before and after, or with noise and without it,
    with the same names but for the extension.

    A sample is (first, second). Both become what the transform makes of them, with the same draws.

    Args:
        first: The folder of the first images, which may have folders in it.
        second: The folder of the others.
        transform: One of stoker.transforms, torchvision's, timm's or Albumentations'.
        suffix: What the names of the second images have before the extension, such as "_after".

    Raises:
        FileNotFoundError: A folder does not exist.
        StokerError: Images lack their second ones; the message names the first of them.
        NotImplementedError: `transform` has a step that the engine does not have.

    >>> from PIL import Image
    >>> for folder in ("left", "right"):
    ...     os.makedirs(folder, exist_ok=True)
    ...     Image.new("RGB", (64, 48), (9, 8, 7)).save(f"{folder}/0.png")
    >>> data = stoker.datasets.ImagePairs("left", "right", T.Compose([T.RandomCrop(32), T.ColorJitter(0.4), T.ToTensor()]))
    >>> left, right = data[0]
    >>> tuple(left.shape), bool((left == right).all())
    ((3, 32, 32), True)
    """

    _layout = "stems"
    _masks = f"mask{IMAGE_SUFFIX}"

    def __init__(self, first: Any, second: Any, transform: Any = None, *, suffix: str = "") -> None:
        super().__init__(first, second, transform, suffix=suffix)


class VOCSegmentation(_Masks):
    """Pascal VOC: images and the masks of their classes, in torchvision's order. 255 is the border of objects.

    Args:
        root: The folder that contains VOCdevkit, as torchvision's class takes it.
        year: "2007" to "2012".
        image_set: A list in ImageSets/Segmentation: "train", "val" or "trainval".
        transform, transforms: As in ImageMaskFolder.
    """

    _layout = "voc"

    def __init__(
        self,
        root: Any,
        year: str = "2012",
        image_set: str = "train",
        transform: Any = None,
        *,
        transforms: Any = None,
    ) -> None:
        self.year, self.image_set = year, image_set
        super().__init__(voc_folder(root, year), None, transform, transforms, set=image_set)


class OxfordIIITPet(Classes, _Masks):
    """Oxford-IIIT Pet: images, their trimaps (1: the pet, 2: background, 3: its border), and the breed as label.

    Args:
        root: The folder that contains oxford-iiit-pet, as torchvision's class takes it.
        split: "trainval" or "test".
        transform, transforms: As in ImageMaskFolder.
    """

    _layout = "pets"

    def __init__(
        self,
        root: Any,
        split: Literal["trainval", "test"] = "trainval",
        transform: Any = None,
        *,
        transforms: Any = None,
    ) -> None:
        super().__init__(os.path.join(os.fsdecode(root), "oxford-iiit-pet"), None, transform, transforms, set=split)


class Cityscapes(_Masks):
    """Cityscapes: images and the masks of their classes, sorted by city and name.

    Args:
        root: The folder that contains leftImg8bit and gtFine or gtCoarse.
        split: "train", "val", "test" or "train_extra".
        mode: "fine" or "coarse".
        target_type: "semantic" for classes (labelIds), uint8, or "instance" for objects (instanceIds), int32.
        transform, transforms: As in ImageMaskFolder.
    """

    _layout = "cityscapes"

    def __init__(
        self,
        root: Any,
        split: str = "train",
        mode: Literal["fine", "coarse"] = "fine",
        target_type: Literal["semantic", "instance"] = "semantic",
        transform: Any = None,
        *,
        transforms: Any = None,
    ) -> None:
        if mode not in ("fine", "coarse"):
            raise ValueError(f'mode={mode!r}: allowed are "fine" and "coarse"')
        if target_type not in ("semantic", "instance"):
            raise NotImplementedError(f'target_type={target_type!r}: only "semantic" and "instance" are supported')
        folder = "gtFine" if mode == "fine" else "gtCoarse"
        ending = "labelIds" if target_type == "semantic" else "instanceIds"
        self._masks = f"mask{wide_suffix('uint8' if target_type == 'semantic' else 'int32')}"
        super().__init__(root, None, transform, transforms, set=split, mode=folder, suffix=f"{folder}_{ending}.png")
