# SPDX-License-Identifier: Apache-2.0
"""torchvision's second transforms, on tensors, with torch's threads off."""

import sys

import torch
from ops_harness import MEAN, STD, boxes_of, files_of, into_batches, main, mask_of, one_at_a_time
from ops_of_torchvision import ops_of
from torchvision import tv_tensors
from torchvision.io import ImageReadMode, decode_image, decode_jpeg, read_file
from torchvision.transforms import v2 as T

PACKAGES = []
NOTE = "uint8 tensors"
LINEAR = T.InterpolationMode.BILINEAR
FLOAT = {"dtype": torch.float32, "scale": True}

OPS = ops_of(T) | {
    "photometric distortion": lambda: T.RandomPhotometricDistort(p=1.0),
    "normalize": lambda: T.Compose([T.ToDtype(**FLOAT), T.Normalize(MEAN, STD)]),
    "erasing": lambda: T.Compose([T.ToDtype(**FLOAT), T.RandomErasing(1.0)]),
}


def classification(*augments):
    return T.Compose(
        [
            T.RandomResizedCrop(224),
            T.RandomHorizontalFlip(),
            *augments,
            T.ToDtype(**FLOAT),
            T.Normalize(MEAN, STD),
            T.RandomErasing(0.1),
        ]
    )


RECIPES = {
    "crop and flip": classification,
    "TrivialAugment": lambda: classification(T.TrivialAugmentWide(interpolation=LINEAR)),
    "RandAugment": lambda: classification(T.RandAugment(interpolation=LINEAR)),
    "AutoAugment": lambda: classification(T.AutoAugment(interpolation=LINEAR)),
    "SimCLR": lambda: T.Compose(
        [
            T.RandomResizedCrop(224),
            T.RandomHorizontalFlip(),
            T.RandomApply([T.ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8),
            T.RandomGrayscale(0.2),
            T.RandomApply([T.GaussianBlur(23, (0.1, 2.0))], 0.5),
            T.ToDtype(**FLOAT),
        ]
    ),
}

# Of the reference training scripts, with masks or boxes.
SEGMENTATION = {
    "segmentation": lambda: [
        T.RandomResize(260, 1040),
        T.RandomHorizontalFlip(),
        T.RandomCrop(480, pad_if_needed=True),
        T.PILToTensor(),
        T.ToDtype(**FLOAT),
        T.Normalize(MEAN, STD),
    ]
}
DETECTION = {
    "detection, several sizes": lambda: [
        T.RandomShortestSize(tuple(range(480, 801, 32)), max_size=1333),
        T.RandomHorizontalFlip(),
        T.PILToTensor(),
        T.ToDtype(**FLOAT),
    ],
    "detection, large-scale jitter": lambda: [
        T.ScaleJitter((1024, 1024)),
        T.RandomCrop(1024, pad_if_needed=True),
        T.RandomHorizontalFlip(),
        T.PILToTensor(),
        T.ToDtype(**FLOAT),
    ],
    "detection, SSD": lambda: [
        T.RandomPhotometricDistort(),
        T.RandomZoomOut(fill=(123, 117, 104)),
        T.RandomIoUCrop(),
        T.RandomHorizontalFlip(),
        T.PILToTensor(),
        T.ToDtype(**FLOAT),
    ],
}


def with_targets(name, folder, opened):
    """Return what runs a recipe with masks or boxes on images that `opened` reads; None if it is not one."""
    if name not in SEGMENTATION | DETECTION:
        return None
    step = T.Compose((SEGMENTATION | DETECTION)[name]())
    if name in SEGMENTATION:
        masks = {path: mask_of(folder, path) for path in files_of(folder)}
        return one_at_a_time(files_of(folder), lambda path: step(opened(path), tv_tensors.Mask(decode_image(masks[path]))))
    rows = {path: boxes_of(folder, path) for path in files_of(folder)}

    def one(path):
        image, (boxes, labels) = opened(path), rows[path]
        size = image.shape[-2:] if isinstance(image, torch.Tensor) else image.size[::-1]
        target = {"boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=size), "labels": torch.tensor(labels)}
        return step(image, target)

    return one_at_a_time(files_of(folder), one)


def opened(path):
    return tv_tensors.Image(decode_jpeg(read_file(path), ImageReadMode.RGB))


def op(name, images):
    torch.set_num_threads(1)
    if name not in OPS:
        return None
    return into_batches([torch.from_numpy(image).permute(2, 0, 1).contiguous() for image in images], OPS[name]())


def recipe(name, folder):
    torch.set_num_threads(1)
    if name not in RECIPES:
        return with_targets(name, folder, opened)
    step = RECIPES[name]()
    return into_batches(files_of(folder), lambda path: step(opened(path)))


if __name__ == "__main__":
    main(sys.modules[__name__])
