# SPDX-License-Identifier: Apache-2.0
"""Masks that CocoDetection draws from polygons and run lengths: pycocotools' pixels, moved with their image."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import stoker
import torch
from PIL import Image
from stoker import transforms as T
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.functional import to_tensor

CocoDetection = stoker.datasets.CocoDetection
pycocotools = pytest.importorskip("pycocotools.coco")
encoded = pytest.importorskip("pycocotools.mask")

COUNTS = {1: 3, 2: 0, 4: 9, 8: 17, 9: 1}  # of objects, by the id of the image: more and fewer than eight
CATEGORIES = [90, 1, 13]


def any_shape(rng, height, width):
    """Return polygons, run lengths or compressed ones."""
    kind = rng.integers(3)
    if kind == 0:
        return [
            [float(x) for x in (rng.random((rng.integers(3, 9), 2)) * [1.2 * width, 1.2 * height] - 3).ravel()]
            for _ in range(rng.integers(1, 4))
        ]
    mask = np.asfortranarray(rng.random((height, width)) < rng.random(), np.uint8)
    mask[: height // 2] &= rng.random() < 0.5
    if kind == 1:
        counts = encoded.encode(mask)["counts"].decode()
    else:
        runs = np.flatnonzero(np.diff(np.concatenate([[0], mask.ravel("F"), [2]])))
        counts = np.diff(runs, prepend=0).tolist()
    return {"size": [height, width], "counts": counts}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root, rng = tmp_path_factory.mktemp("drawn"), np.random.default_rng(11)
    about = {"images": [], "annotations": [], "categories": [{"id": k, "name": f"class {k}"} for k in CATEGORIES]}
    for image, count in COUNTS.items():
        height, width = map(int, rng.integers(20, 90, 2))
        pixels = rng.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(pixels).save(root / f"{image}.png")
        about["images"].append({"id": image, "file_name": f"{image}.png", "width": width, "height": height})
        about["annotations"] += [
            {
                "id": 100 * image + k,
                "image_id": image,
                "category_id": CATEGORIES[rng.integers(3)],
                "bbox": [*map(float, rng.random(2) * 10), *map(float, 1 + rng.random(2) * 30)],
                "area": 1.0,
                "iscrowd": int(rng.random() < 0.3),
                "segmentation": any_shape(rng, height, width),
            }
            for k in range(count)
        ]
    (root / "a.json").write_text(json.dumps(about))
    return root


@pytest.fixture(scope="module")
def wanted(root):
    """Return (image, masks, annotations) of each sample, by pycocotools."""
    coco, found = pycocotools.COCO(root / "a.json"), []
    for image in sorted(COUNTS):
        about, shapes = coco.loadImgs(image)[0], coco.loadAnns(coco.getAnnIds(image))
        masks = [coco.annToMask(each) for each in shapes]
        size = about["height"], about["width"]
        stack = np.stack(masks) if masks else np.zeros((0, *size), np.uint8)
        found.append((np.asarray(Image.open(root / f"{image}.png")), stack, shapes))
    return found


def data(root, *transform, **options):
    return CocoDetection(root, root / "a.json", *transform, **options)


def test_masks_of_objects_are_pycocotools(root, wanted):
    found = data(root, masks="objects")
    assert found.field_types["masks"] == "array" and list(found.field_types)[-1] == "masks"
    for (image, *_, ours), (pixels, masks, shapes) in zip(found, wanted, strict=True):
        assert ours.dtype == np.uint8 and np.array_equal(ours, masks) and np.array_equal(image, pixels)
        assert len(ours) == len(shapes)


def classes(masks, shapes, size, number):
    out = np.zeros(size, np.uint8)
    for crowds in (1, 0):
        for mask, shape in zip(masks, shapes, strict=True):
            if shape["iscrowd"] == crowds:
                out[mask > 0] = number(shape["category_id"])
    return out


@pytest.mark.parametrize("contiguous", [False, True])
def test_masks_of_classes(root, wanted, contiguous):
    found = data(root, masks="classes", contiguous=contiguous)
    number = (lambda label: sorted(CATEGORIES).index(label) + 1) if contiguous else int
    assert list(found.field_types)[-1] == "mask"
    for (*_, ours), (pixels, masks, shapes) in zip(found, wanted, strict=True):
        assert ours.dtype == np.uint8 and np.array_equal(ours, classes(masks, shapes, pixels.shape[:2], number))


STEPS = {
    "flips": lambda M: [M.RandomHorizontalFlip(1.0), M.RandomVerticalFlip(1.0)],
    "crop": lambda M: [M.CenterCrop((18, 15)), M.RandomHorizontalFlip(1.0)],
    "pad": lambda M: [M.Pad([3, 4, 5, 6]), M.RandomVerticalFlip(1.0)],
}


@pytest.mark.parametrize("name", STEPS)
def test_they_move_as_torchvisions(root, wanted, name):
    found = data(root, T.Compose([*STEPS[name](T), T.ToTensor()]), masks="objects")
    theirs = v2.Compose(STEPS[name](v2))
    for (image, boxes, *_, ours), (pixels, masks, shapes) in zip(found, wanted, strict=True):
        corners = torch.tensor([each["bbox"] for each in shapes], dtype=torch.float32).reshape(-1, 4)
        corners[:, 2:] += corners[:, :2]
        given = tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=pixels.shape[:2])
        moved, corners, stack = theirs(Image.fromarray(pixels), given, tv_tensors.Mask(masks))
        assert np.array_equal(ours, stack.numpy()) and torch.equal(torch.as_tensor(boxes), corners)
        assert torch.equal(image, to_tensor(moved))


WARPS = {
    "resize": lambda fill: [T.Resize((33, 57)), T.Pad(4, mask_fill=fill)],
    "crop": lambda fill: [T.RandomResizedCrop((16, 24)), T.RandomHorizontalFlip()],
    "rotation": lambda fill: [T.RandomRotation(70, expand=True, mask_fill=fill), T.CenterCrop(40)],
    "affine": lambda fill: [T.RandomAffine(30, (0.2, 0.3), (0.5, 2), 20, mask_fill=fill), T.Resize(30)],
    "perspective": lambda fill: [T.RandomPerspective(p=1.0, mask_fill=fill)],
    "elastic": lambda fill: [T.ElasticTransform(20.0, 3.0, mask_fill=fill), T.CenterCrop((25, 20))],
    "zoom": lambda fill: [T.RandomZoomOut(mask_fill=fill), T.RandomCrop(30, pad_if_needed=True, mask_fill=fill)],
}


@pytest.mark.parametrize("name", WARPS)
def test_a_mask_of_one_object_moves_as_that_of_its_class(root, name, tmp_path):
    """Masks of classes are moved as those in files, which other tests compare with torchvision and Pillow."""
    about = json.loads((root / "a.json").read_text())
    draws = {"seed": 5, "shuffle": False}
    for place, image in enumerate(sorted(COUNTS)):
        for kept in [each for each in about["annotations"] if each["image_id"] == image][::4]:
            (tmp_path / "b.json").write_text(json.dumps({**about, "annotations": [kept]}))
            steps = T.Compose([*WARPS[name](0), T.ToTensor()])
            sets = [CocoDetection(root, tmp_path / "b.json", steps, masks=kind) for kind in ("objects", "classes")]
            rows = [[sample[-1][0] for sample in stoker.DataLoader(each, 1, **draws)][place] for each in sets]
            assert torch.equal(rows[0][0] * kept["category_id"], rows[1])
    filled = data(root, T.Compose([*WARPS[name](200), T.ToTensor()]), masks="objects")
    plain = data(root, T.Compose([*WARPS[name](0), T.ToTensor()]), masks="objects")
    batches = zip(stoker.DataLoader(filled, 1, **draws), stoker.DataLoader(plain, 1, **draws), strict=True)
    assert all(torch.equal(one[-1][0], other[-1][0]) for one, other in batches)  # what is outside belongs to no object


def test_removed_boxes_have_no_masks(root, wanted):
    steps = [T.SanitizeBoundingBoxes(min_size=12), T.RandomHorizontalFlip(1.0), T.ToTensor()]
    found, removed = data(root, T.Compose(steps), masks="objects", keypoints=False), 0
    for (_, boxes, labels, *_, ours), (pixels, masks, shapes) in zip(found, wanted, strict=True):
        stays = [
            min(each["bbox"][2:]) >= 12
            and each["bbox"][0] + each["bbox"][2] <= pixels.shape[1]
            and each["bbox"][1] + each["bbox"][3] <= pixels.shape[0]
            for each in shapes
        ]
        removed += len(stays) - sum(stays)
        assert np.array_equal(ours, masks[np.array(stays, bool), :, ::-1]) and len(boxes) == len(labels) == len(ours)
    assert removed > 5


def rows_of(batch):
    return [list(map(torch.as_tensor, row)) for row in zip(*batch, strict=True)]


@pytest.mark.parametrize("kind", ["objects", "classes"])
def test_threads_and_ranks_and_pickles_change_nothing(root, kind):
    steps = T.Compose([T.RandomResizedCrop(20), T.RandomHorizontalFlip(), T.ToTensor()])
    found = data(root, steps, masks=kind)
    runs = []
    for given, options in [(found, {}), (found, {"num_workers": 2}), (pickle.loads(pickle.dumps(found)), {"num_workers": 3})]:
        loader = stoker.DataLoader(given, 2, shuffle=True, seed=3, **options)
        runs.append([row for batch in loader for row in rows_of(batch)])
    ranks = [stoker.DataLoader(found, 1, shuffle=True, seed=3, rank=rank, world_size=5) for rank in range(5)]
    runs.append([row for loader in ranks for batch in loader for row in rows_of(batch)])
    by_id = [sorted(run, key=lambda row: int(row[5])) for run in runs]
    for other in by_id[1:]:
        assert all(torch.equal(a, b) for one, two in zip(by_id[0], other, strict=True) for a, b in zip(one, two, strict=True))
    assert len(runs[0]) == len(COUNTS)


def test_subsets_and_keypoints_beside_masks(root, wanted, tmp_path):
    part = stoker.datasets.Subset(data(root, masks="objects"), [4, 2])
    assert all(np.array_equal(part[k][-1], wanted[place][1]) for k, place in enumerate([4, 2]))
    about = json.loads((root / "a.json").read_text())
    for each in about["annotations"]:
        each["keypoints"] = [1, 2, 2]
    (tmp_path / "k.json").write_text(json.dumps(about))
    both = CocoDetection(root, tmp_path / "k.json", keypoints=True, masks="objects")
    assert list(both.field_types)[-2:] == ["keypoints", "masks"]
    assert np.array_equal(both[2][-1], wanted[2][1]) and both[2][-2].shape == (9, 1, 3)


def test_steps_of_ones_own_get_tensors_that_are_masks(root, wanted):
    def turn(image, target):
        assert type(target["masks"]) is tv_tensors.Mask and type(target["boxes"]) is tv_tensors.BoundingBoxes
        assert target["masks"].shape[1:] == image.size[::-1] and len(target["masks"]) == len(target["labels"])
        return v2.functional.horizontal_flip(image), {k: v2.functional.horizontal_flip(v) if k == "masks" else v for k, v in target.items()}

    steps = T.Compose([T.RandomVerticalFlip(1.0), turn, T.Pad(2, fill=9, mask_fill=5), T.SanitizeBoundingBoxes(), T.ToTensor()])
    found = data(root, transforms=steps, masks="objects")
    for (_, boxes, *_, ours), (_, masks, shapes) in zip(found, wanted, strict=True):
        assert len(boxes) == len(ours) and ours.dtype == np.uint8
        if len(ours) == len(shapes):
            assert np.array_equal(ours, np.pad(masks[:, ::-1, ::-1], [(0, 0), (2, 2), (2, 2)]))
    whole = stoker.datasets.Subset(found, [2])
    assert np.array_equal(whole[0][-1], found[2][-1])


# ---- bad input ----


def one(tmp_path, segmentation, size=(10, 12), category=1, **image):
    Image.new("RGB", size[::-1]).save(tmp_path / "x.png")
    about = {
        "images": [{"id": 5, "file_name": "x.png", "width": size[1], "height": size[0], **image}],
        "annotations": [{
            "id": 77, "image_id": 5, "category_id": category, "bbox": [9, 9, -5, -5], "area": 1, "segmentation": segmentation,
        }],
        "categories": [{"id": category, "name": "x"}],
    }  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps(about))
    return tmp_path, tmp_path / "x.json"


DAMAGE = {
    "short run lengths": ({"size": [10, 12], "counts": [5, 6]}, "run lengths of the mask add up to 11, but 12 x 10"),
    "long run lengths": ({"size": [10, 12], "counts": [100, 100]}, "run lengths of the mask add up to 200"),
    "compressed text": ({"size": [10, 12], "counts": "\x7f\x7f"}, "damaged at its character 1"),
    "another size": ({"size": [12, 10], "counts": [120]}, "the mask has 10 x 12 pixels, but the image 12 x 10"),
    "far away": ([[0, 0, 1e9, 1, 2, 2]], r"corner 2 of the polygon is at \(1e\+09, 1\)"),
}


@pytest.mark.parametrize("kind", ["objects", "classes"])
@pytest.mark.parametrize("name", DAMAGE)
def test_shapes_that_cannot_be_drawn(tmp_path, name, kind):
    segmentation, message = DAMAGE[name]
    bad = CocoDetection(*one(tmp_path, segmentation), masks=kind)
    with pytest.raises(stoker.CorruptSample, match=f"x.png: field masks?: annotation 77: .*{message}"):
        bad[0]
    with pytest.raises(stoker.CorruptSample, match="annotation 77"):
        list(stoker.DataLoader(bad, 1, num_workers=1))
    replaced = next(iter(stoker.DataLoader(bad, 1, on_error="replace")))
    assert int(replaced[5]) == -100 and len(bad) == 1


def test_an_image_of_another_size_than_the_file_says(tmp_path):
    bad = CocoDetection(*one(tmp_path, [[0, 0, 5, 0, 5, 5]], width=13), masks="objects")
    with pytest.raises(stoker.CorruptSample, match="those of an image of 13 x 10 pixels, but it has 12 x 10"):
        bad[0]
    unsaid = CocoDetection(*one(tmp_path, [[0, 0, 5, 0, 5, 5]], width=None, height=None), masks="objects")
    assert unsaid[0][-1].shape == (1, 10, 12) and unsaid[0][-1].sum() > 5


@pytest.mark.parametrize("segmentation", [None, [], [[]], [[3, 3]], [[1, 1, 8, 8]], [[1, 1, 1, 1, 1, 1]]])
def test_shapes_without_area(tmp_path, segmentation):
    """Two corners enclose nothing; pycocotools takes four numbers for a box."""
    for kind in ("objects", "classes"):
        mask = CocoDetection(*one(tmp_path, segmentation), masks=kind)[0][-1]
        assert mask.shape[-2:] == (10, 12) and mask.sum() == 0


@pytest.mark.parametrize("category", [0, 256, -3])
def test_categories_that_do_not_fit_into_a_mask(tmp_path, category):
    given = one(tmp_path, [[0, 0, 5, 0, 5, 5]], category=category)
    with pytest.raises(stoker.CorruptSample, match="x.png: annotation 77 has a category that is not from 1 to 255.*contiguous"):
        CocoDetection(*given, masks="classes")
    assert CocoDetection(*given, masks="classes", contiguous=True)[0][-1].max() == 1
    assert CocoDetection(*given, masks="objects")[0][-1].max() == 1


def test_masks_that_would_take_too_much_memory(tmp_path):
    given = one(tmp_path, [[0, 0, 5, 0, 5, 5]])
    about = json.loads(given[1].read_text())
    about["annotations"] *= 400
    given[1].write_text(json.dumps(about))
    large = CocoDetection(*given, T.Compose([T.Resize((1700, 1700)), T.ToTensor()]), masks="objects")
    with pytest.raises(stoker.StokerError, match="masks of 1700 x 1700 pixels for 400 objects take more than 1024 MiB"):
        large[0]
    assert CocoDetection(*given, masks="objects")[0][-1].shape == (400, 10, 12)


def test_arguments(root):
    with pytest.raises(ValueError, match="masks='all': allowed are"):
        data(root, masks="all")
