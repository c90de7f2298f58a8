# SPDX-License-Identifier: Apache-2.0
"""Albumentations' pipelines without ToTensorV2: arrays of height x width x channels, of which torch makes such batches."""

from __future__ import annotations

import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
import torch
from PIL import Image
from stoker import transforms as T
from test_boxes import npy, png, write
from transform_parity import coordinates

cv2 = pytest.importorskip("cv2")
A = pytest.importorskip("albumentations")
from albumentations.pytorch import ToTensorV2  # noqa: E402
from torch.utils.data import DataLoader, default_collate  # noqa: E402
from torchvision import transforms as V  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning")]

# Pipelines in which nothing is drawn, that end with one size.
FIXED = {
    "bytes": [A.HorizontalFlip(p=1), A.Resize(19, 23)],
    "turned": [A.Transpose(p=1), A.CenterCrop(40, 30)],
    "normalized": [A.Resize(19, 23), A.Normalize()],
    "normalized, then turned": [A.CenterCrop(40, 30), A.Normalize((0.5,) * 3, (0.5,) * 3), A.Transpose(p=1), A.VerticalFlip(p=1)],
    "floats": [A.CenterCrop(31, 33), A.ToFloat()],
}


def arrays(two_classes):
    return [np.array(Image.open(path).convert("RGB")) for path in sorted(two_classes.rglob("*.*"))]


def in_engine(loader):
    return "engine" in str(loader.explain()) and "Python" not in str(loader.explain())


@pytest.mark.parametrize("name", FIXED)
def test_batches_are_what_torch_makes_of_arrays(two_classes, name):
    pipeline = A.Compose(FIXED[name])
    data = stoker.datasets.ImageFolder(two_classes, pipeline)
    wanted = default_collate([pipeline(image=image)["image"] for image in arrays(two_classes)])
    loader = stoker.DataLoader(data, batch_size=6)
    images, labels = next(iter(loader))
    assert in_engine(loader)
    assert (images.dtype, images.shape, images.is_contiguous()) == (wanted.dtype, wanted.shape, True)
    assert torch.equal(images, wanted) and labels.tolist() == data.targets
    for options in ({"memory_format": "channels_last"}, {"output": "numpy"}, {"output": "dlpack"}):
        again = next(iter(stoker.DataLoader(data, batch_size=6, **options)))[0]
        assert torch.equal(torch.from_dlpack(again), wanted)
    one = data[3][0]
    assert isinstance(one, np.ndarray) and np.array_equal(one, wanted[3].numpy())
    assert torch.equal(next(iter(DataLoader(data, batch_size=6)))[0], wanted)
    assert torch.equal(next(iter(stoker.DataLoader(data, batch_size=None)))[0], wanted[0])
    assert np.array_equal(T.functional_apply(pipeline, arrays(two_classes)[1]), wanted[1].numpy())
    assert np.array_equal(T.Compose([pipeline])(arrays(two_classes)[1]), wanted[1].numpy())


def test_arrays_of_different_sizes_are_a_list_or_padded(two_classes):
    data = stoker.datasets.ImageFolder(two_classes, A.Compose([A.Transpose(p=1)]))
    wanted = [torch.from_numpy(image.transpose(1, 0, 2)) for image in arrays(two_classes)]
    images = next(iter(stoker.DataLoader(data, batch_size=6)))[0]
    assert all(map(torch.equal, images, wanted))
    padded = next(iter(stoker.DataLoader(data, batch_size=6, ragged="pad")))[0]
    assert padded.shape == (6, max(len(w) for w in wanted), max(w.shape[1] for w in wanted), 3)
    for image, array in zip(padded, wanted, strict=True):
        height, width, _ = array.shape
        assert torch.equal(image[:height, :width], array) and not image[height:].any() and not image[:, width:].any()
    assert torch.equal(next(iter(stoker.DataLoader(data, batch_size=1)))[0][0], wanted[0])


def test_a_single_pixel_is_an_array():
    assert T.functional_apply(A.Compose([]), np.array([[[1, 2, 3]]], np.uint8)).tolist() == [[[1, 2, 3]]]


def test_masks_boxes_and_labels_are_beside_arrays(tmp_path):
    image = coordinates(20, 14)
    mask, boxes = image[:, :, 0] // 2, np.array([[1, 2, 9, 8], [3, 3, 5, 12]], np.float32)
    sample = (png(image), npy(boxes), npy(np.arange(2)), png(mask))
    names = ("png", "boxes.npy", "labels.npy", "seg.png")
    path = write(tmp_path / "a.tar", [sample] * 2, names)
    pipeline = A.Compose([A.HorizontalFlip(p=1), A.Normalize()], bbox_params=A.BboxParams("coco", label_fields=["labels"]))
    data = stoker.datasets.WebDataset(path, names, pipeline, masks="seg.png", boxes={"boxes.npy": ["labels.npy"]})
    loader = stoker.DataLoader(data, 2)
    found, moved, labels, part = next(iter(loader))
    assert in_engine(loader)
    corners = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
    wanted = pipeline(image=image, mask=mask, bboxes=corners, labels=[0, 1])
    assert np.array_equal(found[1].numpy(), wanted["image"]) and found.dtype == torch.float32
    assert np.array_equal(part[1].numpy(), wanted["mask"]) and part.dtype == torch.uint8
    assert np.allclose(moved[1], wanted["bboxes"], atol=1e-5) and labels[1].tolist() == [0, 1]
    assert isinstance(data[0][0], np.ndarray) and data[0][0].shape == (14, 20, 3)


def test_what_takes_arrays_stays_in_python(two_classes):
    pipeline = A.Compose([A.CenterCrop(60, 50)])
    steps = V.Compose([pipeline, lambda array: array[:2]])
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(two_classes, steps), batch_size=3)
    assert tuple(next(iter(loader))[0].shape) == (3, 2, 50, 3) and not in_engine(loader)
    behind = stoker.datasets.ImageFolder(two_classes, V.Compose([pipeline, V.ToTensor()]))
    loader = stoker.DataLoader(behind, batch_size=3)
    assert tuple(next(iter(loader))[0].shape) == (3, 3, 60, 50)
    assert "end the pipeline with ToTensorV2()" in str(loader.explain())
    apart = stoker.DataLoader(stoker.datasets.ImageFolder(two_classes, pipeline), 2, collate_fn=lambda batch: tuple(zip(*batch)))
    assert all(isinstance(image, np.ndarray) for image in next(iter(apart))[0])


def test_steps_behind_an_array_get_it_with_its_mask(tmp_path):
    mask = coordinates(9, 7)[:, :, 0].copy()
    path = write(tmp_path / "a.tar", [(png(coordinates(9, 7)), png(mask))], ("png", "seg.png"))

    def check(image, target):
        assert isinstance(image, np.ndarray) and image.shape == (7, 9, 3)
        return image[:5], target

    steps = T.Compose([A.Compose([A.HorizontalFlip(p=1)]), check])
    data = stoker.datasets.WebDataset(path, ("png", "seg.png"), masks="seg.png", transforms=steps)
    assert data[0][0].shape == (5, 9, 3)


def test_batch_transforms_need_tensors(two_classes):
    data = stoker.datasets.ImageFolder(two_classes, A.Compose([A.CenterCrop(60, 50), A.ToFloat()]))
    with pytest.raises(ValueError, match="batch_transforms works on images of channels x height x width"):
        stoker.DataLoader(data, 2, batch_transforms=T.MixUp(num_classes=2))


def test_a_transform_may_be_replaced_by_one_with_tensors(two_classes):
    data = stoker.datasets.ImageFolder(two_classes, A.Compose([A.CenterCrop(60, 50)]))
    loader = stoker.DataLoader(data, batch_size=2)
    assert tuple(next(iter(loader))[0].shape) == (2, 60, 50, 3)
    data.transform = A.Compose([A.CenterCrop(60, 50), ToTensorV2()])
    assert tuple(next(iter(loader))[0].shape) == (2, 3, 60, 50)
