# SPDX-License-Identifier: Apache-2.0
"""Datasets of images with the boxes of the objects in them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any, Literal


from .._base.tensors import to_numpy
from .base import Classes
from .pairs import Pairs, voc_folder

__all__ = ["CocoDetection", "VOCDetection", "YOLODetection"]


class _Boxes(Classes, Pairs):
    """Base class. The arrays of a sample have a row for each object; none if there are no objects."""

    _boxes: str  # their field, and those with a value for each box

    def __init__(self, as_dict: bool, *given: Any, **options: Any) -> None:
        if as_dict and importlib.util.find_spec("torchvision") is None:
            raise ModuleNotFoundError("as_dict=True makes torchvision's tensors of boxes: install torchvision")
        self._as_dict = bool(as_dict)
        super().__init__(*given, **options)

    def _masked(self, masks: str | None) -> dict[str, Any]:
        """Name the masks that are drawn, and return the option for the engine."""
        if masks not in (None, "objects", "classes"):
            raise ValueError(f'masks={masks!r}: allowed are "objects" and "classes"')
        self.masks = masks
        if masks == "objects":
            self._boxes += "+masks"
            self._of_objects = ("masks",)
        if masks == "classes":
            self._masks = "mask"
        return {"masks": masks} if masks else {}

    @property
    def targets(self) -> list[int]:
        """Not available: an image has as many labels as objects."""
        raise AttributeError(
            f"{type(self).__name__} has no targets: an image has as many labels as objects; those of image i are data[i][2]"
        )


class CocoDetection(_Boxes):
    """Images and boxes in COCO's format, in torchvision's order: that of the images' ids.

    A sample is (image, boxes, labels, area, iscrowd, image_id). For an image with n objects, boxes are float32 [n, 4]
    (left, top, right, bottom in pixels), labels and iscrowd int64 [n], and area float32 [n].

    Args:
        root: The folder of the images.
        annFile: The JSON file, such as instances_train2017.json. It may be a URL.
        transform: One of stoker.transforms or torchvision's, for the image; the boxes follow.
        transforms: In place of `transform`, with steps of your own, as in ImageMaskFolder: each gets the image and a dict of
            boxes (a tv_tensor), labels, area and iscrowd.
        as_dict: A sample is (image, target), as torchvision's detection models take them: a dict of all other fields, as
            tensors. Boxes are tv_tensors.BoundingBoxes, masks are tv_tensors.Mask. A batch is [images, list of dicts], or
            with `collate_fn=lambda batch: tuple(zip(*batch))` (images, dicts), both tuples.
        contiguous: Labels are 0, 1, ... in the order of the category ids; otherwise the ids themselves.
        keypoints: Samples have the key points of the objects at their end, float32 [n, k, 3] (x, y and visibility), which
            follow the image, too. Objects without key points have zeros.
        masks: Samples have masks at their end, which are drawn from polygons and run lengths as pycocotools draws them, and
            follow the image. "objects": one for each object, uint8 [n, height, width], 1 where it is; objects that
            SanitizeBoundingBoxes removes have none. "classes": one, uint8 [height, width], with the label of the object at each
            pixel, and 0 elsewhere; with `contiguous`, the label plus 1. Crowds are below all other objects, of which later ones
            in the file cover earlier ones. Images must have the size that the file says.

    Raises:
        OSError: The file or the folder cannot be read.
        StokerError: Images of the file are missing (the message names the first ones), or the file is not in COCO's
            format, or an annotation has no box; with masks="classes", a category is not from 1 to 255.

    >>> import json
    >>> about = {"images": [{"id": 7, "file_name": "cat/0.png"}], "categories": [{"id": 17, "name": "cat"}],
    ...     "annotations": [{"id": 1, "image_id": 7, "category_id": 17, "bbox": [4, 2, 30, 40], "area": 900.0}]}
    >>> with open("cats.json", "w") as file:
    ...     json.dump(about, file)
    >>> image, boxes, labels, area, iscrowd, image_id = stoker.datasets.CocoDetection("images", "cats.json")[0]
    >>> boxes.tolist(), labels.tolist(), image_id
    ([[4.0, 2.0, 34.0, 42.0]], [17], 7)
    """

    _layout = "coco"
    _boxes = "boxes+labels+area+iscrowd"

    def __init__(
        self,
        root: Any,
        annFile: Any,
        transform: Any = None,
        *,
        contiguous: bool = False,
        keypoints: bool = False,
        masks: Literal["objects", "classes"] | None = None,
        transforms: Any = None,
        as_dict: bool = False,
    ) -> None:
        self.root, self.annFile, self.contiguous, self.keypoints = root, annFile, contiguous, keypoints
        if keypoints:
            self._boxes += "+keypoints=points"
        given = self._masked(masks)
        super().__init__(as_dict, root, annFile, transform, transforms, contiguous=contiguous, keypoints=keypoints, **given)

    @property
    def classes(self) -> list[str]:
        """The names of the categories, in the order of their ids. `class_to_idx` has the label of each."""
        return self._engine().classes

    @property
    def ids(self) -> list[int]:
        """The id of each image."""
        return list(map(int, to_numpy(self._engine().labels())))


class VOCDetection(_Boxes):
    """Pascal VOC: images and boxes, in torchvision's order.

    A sample is (image, boxes, labels, difficult). For an image with n objects, boxes are float32 [n, 4] (left, top,
    right, bottom as in the files, which count pixels from 1), labels and difficult int64 [n]. Labels are 1 to 20, in
    alphabetical order; 0 is the background.

    Args:
        root: The folder that contains VOCdevkit, as torchvision's class takes it.
        year: "2007" to "2012".
        image_set: A list in ImageSets/Main: "train", "val", "trainval" or "test".
        transform: One of stoker.transforms or torchvision's, for the image; the boxes follow.
        transforms: As in CocoDetection; the dict has boxes, labels and difficult.
        as_dict: As in CocoDetection.

    Raises:
        OSError: A file or a folder cannot be read.
        StokerError: Files of listed images are missing (the message names the first ones), or an annotation is damaged
            or has a class that VOC does not have.
    """

    _layout = "voc boxes"
    _boxes = "boxes+labels+difficult"

    def __init__(
        self,
        root: Any,
        year: str = "2012",
        image_set: str = "train",
        transform: Any = None,
        *,
        transforms: Any = None,
        as_dict: bool = False,
    ) -> None:
        self.root, self.year, self.image_set = root, year, image_set
        super().__init__(as_dict, voc_folder(root, year), None, transform, transforms, set=image_set)


class YOLODetection(_Boxes):
    """Images and boxes in YOLO's text files, one for each image with a line for each object.

    A sample is (image, boxes, labels). For an image with n objects, boxes are float32 [n, 4] (left, top, right, bottom in
    pixels), and labels int64 [n]. A line is "class x y width height", with the centre and the size as fractions of the
    image's, or "class x y x y x y ...", the corners of a polygon, whose box counts; with `keypoints` it is
    "class x y width height" and the key points.

    Args:
        images: The folder of the images, sorted by path, or a text file that lists images, with paths relative to its folder.
        labels: The folder of the text files; by default where YOLO has them: for images/train/1.jpg in labels/train/1.txt
            (the last folder named images counts), and beside the images if none is named so. An image without a file has no
            objects.
        transform: One of stoker.transforms or torchvision's, for the image; boxes follow.
        transforms: As in CocoDetection; the dict has boxes and labels.
        as_dict: As in CocoDetection.
        names: The names of the classes. A label that has none is an error.
        keypoints: The number of key points in a line and what each has: (17, 3) for x, y and visibility, (17, 2) for x and y.
            Samples have them at their end, float32 [n, k, 3] in pixels, with visibility 2 where it is not written.
        masks: As in CocoDetection, drawn from polygons. With "classes" the numbers are the labels plus 1, as 0 is the background.
            Objects of which a line has only the box have masks without pixels.

    Raises:
        OSError: A file or a folder cannot be read.
        StokerError: A line is not in YOLO's format (the message has its number), listed images are missing, or no image has
            a label file.

    >>> os.makedirs("yolo/images", exist_ok=True), os.makedirs("yolo/labels", exist_ok=True)
    (None, None)
    >>> from PIL import Image
    >>> Image.new("RGB", (200, 100)).save("yolo/images/1.png")
    >>> with open("yolo/labels/1.txt", "w") as file:
    ...     file.write("1 0.5 0.5 0.1 0.2\\n")
    18
    >>> data = stoker.datasets.YOLODetection("yolo/images", names=["cat", "dog"])
    >>> image, boxes, labels = data[0]
    >>> boxes.tolist(), [data.classes[label] for label in labels]
    ([[90.0, 40.0, 110.0, 60.0]], ['dog'])
    """

    _layout = "yolo"
    _boxes = "boxes=relative_cxcywh+labels"

    def __init__(
        self,
        images: Any,
        labels: Any = None,
        transform: Any = None,
        *,
        transforms: Any = None,
        as_dict: bool = False,
        names: Sequence[str] | None = None,
        keypoints: tuple[int, int] | None = None,
        masks: Literal["objects", "classes"] | None = None,
    ) -> None:
        self.images, self.labels, self.names, self.keypoints = images, labels, names, keypoints
        if isinstance(names, str):
            raise TypeError(f"names={names!r}: give a list of names, not a str")
        for name in names or ():
            if not name or "\n" in name:
                raise ValueError(f"names={names!r}: {name!r} is not the name of a class")
        given = self._masked(masks)
        if keypoints is not None:
            count, each = keypoints
            if masks is not None:
                raise ValueError("keypoints and masks are both given: a line of YOLO's files has one of them")
            if count < 1 or each not in (2, 3):
                raise ValueError(f"keypoints={keypoints!r}: give their number and what each has, such as (17, 3)")
            self._boxes += "+keypoints=relative_points"
            given |= {"points": count, "point_numbers": each}
        names = "\n".join(names) if names else None
        super().__init__(as_dict, images, labels, transform, transforms, names=names, **given)
