# SPDX-License-Identifier: Apache-2.0
"""Images with labels in YOLO's text files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import stoker
from PIL import Image
from stoker import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from torchvision.transforms.v2 import functional as F  # noqa: E402


def save_image(path, size=(10, 20)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size).save(path)


def save_label(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Images of any sizes, of which some have no label file or an empty one; and the boxes and labels of each."""
    root, rng = tmp_path_factory.mktemp("yolo"), np.random.default_rng(4)
    wanted = []
    for k in range(24):
        name, size = f"{'ab'[k % 2]}/{k:02}", tuple(map(int, rng.integers(1, 900, 2)))
        save_image(root / "images" / f"{name}.{('png', 'jpg')[k % 3 == 0]}", size)
        count = k % 5 if k != 7 else 0
        boxes, labels = rng.random((count, 4)).round(6), rng.integers(0, 7, count)
        lines = [f"{label} {' '.join(map(str, box))}" for label, box in zip(labels.tolist(), boxes.tolist(), strict=True)]
        if count or k % 2:
            save_label(root / "labels" / f"{name}.txt", "\r\n".join(["", *lines]) + "\n")
        pixels = torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4) * torch.tensor([*size, *size])
        wanted.append((name, size, F.convert_bounding_box_format(pixels, "CXCYWH", "XYXY"), torch.tensor(labels)))
    return root, sorted(wanted, key=lambda each: each[0])


def same(sample, wanted):
    _, size, boxes, labels = wanted
    assert sample[0].shape == (size[1], size[0], 3)
    for ours, theirs in zip(map(torch.as_tensor, sample[1:]), (boxes, labels), strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape and torch.equal(ours, theirs)


@pytest.mark.parametrize("form", ["folder", "both folders", "list", "list with labels", "absolute list"])
def test_layouts(tree, tmp_path, form):
    root, wanted = tree
    files = {path.stem: path for path in (root / "images").rglob("*.*")}
    if form == "folder":
        data = stoker.datasets.YOLODetection(root / "images")
    elif form == "both folders":
        data = stoker.datasets.YOLODetection(f"{root}/images/", root / "labels")
    else:
        wanted = wanted[::-1]
        paths = [files[each[0][2:]] for each in wanted]
        absolute = form == "absolute list"
        lines = [str(path) if absolute else f"./{path.relative_to(root)}" for path in paths]
        where = (tmp_path if absolute else root) / "train.txt"
        where.write_text("\n".join(lines) + "\n\n")
        data = stoker.datasets.YOLODetection(where, root / "labels" if form == "list with labels" else None)
    assert len(data) == len(wanted) and data.classes == []
    assert list(data.field_types.items()) == [("image", "image"), ("boxes", "array"), ("labels", "array")]
    for sample, each in zip(data, wanted, strict=True):
        same(sample, each)
    same(pickle.loads(pickle.dumps(data))[3], wanted[3])


def test_labels_beside_their_images(tmp_path):
    save_image(tmp_path / "obj_train_data" / "1.jpg", (50, 40))
    save_label(tmp_path / "obj_train_data" / "1.txt", "3 0.5 0.25 1 0.5")
    save_label(tmp_path / "obj_train_data" / "classes.txt", "a\nb\n")
    (tmp_path / "train.txt").write_text("obj_train_data/1.jpg")
    for where in (tmp_path / "obj_train_data", tmp_path / "train.txt"):
        _, boxes, labels = stoker.datasets.YOLODetection(where)[0]
        assert boxes.tolist() == [[0, 0, 50, 20]] and labels.tolist() == [3]


def test_the_last_folder_of_that_name_counts(tmp_path):
    root = tmp_path / "images" / "a" / "images" / "images.v2"
    save_image(root / "1.jpg", (50, 40))
    save_label(tmp_path / "images" / "a" / "labels" / "images.v2" / "1.txt", "0 0.5 0.5 1 1")
    assert stoker.datasets.YOLODetection(root)[0][1].tolist() == [[0, 0, 50, 40]]


def test_boxes_follow_their_image(tree):
    root, wanted = tree
    steps = T.Compose([T.RandomHorizontalFlip(1.0), T.Resize((30, 40)), T.ToTensor()])
    data = stoker.datasets.YOLODetection(root / "images", transform=steps, names=list("abcdefg"))
    assert data.classes == list("abcdefg") and data.class_to_idx["g"] == 6
    at = 0
    for images, boxes, labels in stoker.DataLoader(data, 5, num_workers=2):
        assert images.shape[1:] == (3, 30, 40)
        for box, label in zip(boxes, labels, strict=True):
            _, (width, height), original, numbers = wanted[at]
            left, top, right, bottom = original.unbind(1)
            scale = torch.tensor([40 / width, 30 / height] * 2)
            assert torch.allclose(box, torch.stack([width - right, top, width - left, bottom], 1) * scale, atol=1e-3)
            assert torch.equal(label, numbers)
            at += 1
    assert at == len(wanted)


def test_polygons_have_the_box_around_them(tmp_path):
    save_image(tmp_path / "images" / "1.png", (100, 200))
    save_label(tmp_path / "labels" / "1.txt", "2 0.1 0.5 0.3 0.25 0.2 0.75\n1 0.5 0.5 0.5 0.5\n")
    _, boxes, labels = stoker.datasets.YOLODetection(tmp_path / "images")[0]
    assert np.allclose(boxes, [[10, 50, 30, 150], [25, 50, 75, 150]], atol=1e-4) and labels.tolist() == [2, 1]


@pytest.mark.parametrize(
    "text, message",
    [
        ("0 0.5 0.5 0.5 0.5\ncat 0.5 0.5 0.5 0.5", r"1\.txt, line 2: the class is 'cat' instead of a whole number"),
        ("0 0.5 0.5 0.5 wide", r"1\.txt, line 1: 'wide' is not a number"),
        ("\n\n0 0.5 0.5 0.5", r"line 3: 3 numbers follow the class, which are neither a box nor the corners"),
        ("0 0.5 0.5 0.5 0.5 0.9", "line 1: 5 numbers follow the class"),
        ("0", "line 1: 0 numbers follow the class"),
        ("0 0.5 0.5 nan 0.5", "line 1: 'nan' is not"),
        ("0 0.5 0.5 inf 0.5", "line 1: 'inf' is not"),
        ("0 12 30 100 20", "line 1: '12' is not between 0 and 1: coordinates are fractions"),
        ("-1 0.5 0.5 0.5 0.5", "the class is '-1' instead of a whole number"),
        ("1.5 0.5 0.5 0.5 0.5", "the class is '1.5' instead of a whole number"),
        ("3 0.5 0.5 0.5 0.5", "the class is 3, but there are only 3"),
        ("1e300 0.5 0.5 0.5 0.5", "the class is '1e300'"),
        ("\0", "line 1: the class is"),
    ],
)  # fmt: skip
def test_lines_that_are_no_labels(tmp_path, text, message):
    save_image(tmp_path / "images" / "1.png")
    save_label(tmp_path / "labels" / "1.txt", text)
    with pytest.raises(stoker.StokerError, match=message):
        stoker.datasets.YOLODetection(tmp_path / "images", names=["a", "b", "c"])


def test_files_that_are_missing(tmp_path):
    save_image(tmp_path / "images" / "1.png")
    with pytest.raises(OSError, match="labels"):
        stoker.datasets.YOLODetection(tmp_path / "images")
    (tmp_path / "labels").mkdir()
    with pytest.raises(stoker.StokerError, match="none of 1 images has a label file"):
        stoker.datasets.YOLODetection(tmp_path / "images")
    (tmp_path / "train.txt").write_text("images/1.png\nimages/2.png\n")
    save_label(tmp_path / "labels" / "1.txt", "")
    with pytest.raises(stoker.StokerError, match=r"train\.txt: 1 listed image is missing: .*images/2\.png\. Paths in it"):
        stoker.datasets.YOLODetection(tmp_path / "train.txt")
    (tmp_path / "train.txt").write_text("\n")
    with pytest.raises(stoker.StokerError, match="it lists no images"):
        stoker.datasets.YOLODetection(tmp_path / "train.txt")
    with pytest.raises(OSError, match=r"val\.txt"):
        stoker.datasets.YOLODetection(tmp_path / "val.txt")
    with pytest.raises(OSError, match="nowhere"):
        stoker.datasets.YOLODetection(tmp_path / "nowhere")
    with pytest.raises(TypeError, match="a list of names"):
        stoker.datasets.YOLODetection(tmp_path / "images", names="cat")
    with pytest.raises(ValueError, match="is not the name of a class"):
        stoker.datasets.YOLODetection(tmp_path / "images", names=["cat", ""])


# ---- polygons and key points ----


def test_masks_of_polygons(tmp_path):
    mask = pytest.importorskip("pycocotools.mask")
    save_image(tmp_path / "images" / "1.png", (40, 30))
    polygon = [0.1, 0.2, 0.9, 0.1, 0.55, 0.8]
    save_label(tmp_path / "labels" / "1.txt", f"2 {' '.join(map(str, polygon))}\n0 0.5 0.5 0.2 0.2\n0 0 0 0 0.5 0.5 0.5\n")
    pixels = [[value * (30 if k % 2 else 40) for k, value in enumerate(each)] for each in (polygon, [0, 0, 0, 0.5, 0.5, 0.5])]
    wanted = [mask.decode(mask.frPyObjects([each], 30, 40))[..., 0] for each in pixels]
    *_, ours = stoker.datasets.YOLODetection(tmp_path / "images", masks="objects")[0]
    assert np.array_equal(ours, [wanted[0], np.zeros((30, 40)), wanted[1]]) and wanted[0].sum() > 100
    *_, ours = stoker.datasets.YOLODetection(tmp_path / "images", masks="classes")[0]
    assert np.array_equal(ours, np.where(wanted[1], 1, 3 * wanted[0]))
    steps = T.Compose([T.RandomHorizontalFlip(1.0), T.SanitizeBoundingBoxes(9), T.ToTensor()])
    *_, labels, ours = stoker.datasets.YOLODetection(tmp_path / "images", None, steps, masks="objects")[0]
    assert labels.tolist() == [2, 0] and np.array_equal(ours, np.stack(wanted)[..., ::-1])
    save_label(tmp_path / "labels" / "1.txt", f"255 {' '.join(map(str, polygon))}\n")
    with pytest.raises(stoker.CorruptSample, match="1.png: .*has a class above 254"):
        stoker.datasets.YOLODetection(tmp_path / "images", masks="classes")


@pytest.mark.parametrize("each", [2, 3])
def test_key_points(tmp_path, each):
    rng = np.random.default_rng(each)
    save_image(tmp_path / "images" / "1.png", (60, 50))
    save_image(tmp_path / "images" / "2.png", (60, 50))
    boxes, points = rng.random((4, 4)).round(6), rng.random((4, 5, 3)).round(6)
    points[..., 2] = rng.integers(0, 3, (4, 5)) if each == 3 else 2
    lines = [" ".join(map(str, [1, *boxes[k], *points[k, :, :each].ravel()])) for k in range(4)]
    save_label(tmp_path / "labels" / "1.txt", "\n".join(lines))
    data = stoker.datasets.YOLODetection(tmp_path / "images", keypoints=(5, each))
    assert list(data.field_types) == ["image", "boxes", "labels", "keypoints"]
    wanted = points.astype(np.float32) * np.array([60, 50, 1], np.float32)
    assert np.array_equal(data[0][3], wanted) and data[0][3].dtype == np.float32 and data[1][3].shape == (0, 5, 3)
    plain = F.convert_bounding_box_format(torch.tensor(boxes, dtype=torch.float32) * torch.tensor([60, 50, 60, 50]), "CXCYWH", "XYXY")
    assert torch.equal(torch.as_tensor(data[0][1]), plain)
    flipped = T.Compose([T.RandomHorizontalFlip(1.0), T.ToTensor()])
    moved = stoker.datasets.YOLODetection(tmp_path / "images", None, flipped, keypoints=(5, each))[0][3]
    assert np.array_equal(moved[..., 0], np.float32(59) - wanted[..., 0]) and np.array_equal(moved[..., 1:], wanted[..., 1:])
    with pytest.raises(stoker.CorruptSample, match="1.txt, line 1: .* numbers follow the class instead of"):
        stoker.datasets.YOLODetection(tmp_path / "images", keypoints=(6, each))


def test_arguments_of_key_points(tree):
    for wrong in ((0, 2), (5, 4)):
        with pytest.raises(ValueError, match="give their number and what each has"):
            stoker.datasets.YOLODetection(tree[0] / "images", keypoints=wrong)
    with pytest.raises(ValueError, match="one of them"):
        stoker.datasets.YOLODetection(tree[0] / "images", keypoints=(5, 2), masks="objects")
