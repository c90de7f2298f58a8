# SPDX-License-Identifier: Apache-2.0
"""Datasets of images with boxes, compared with torchvision's."""

import json
import pickle

import numpy as np
import pytest
import stoker
from PIL import Image
from stoker import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

FIELDS = ["boxes", "labels", "area", "iscrowd"]
DTYPES = [torch.float32, torch.int64, torch.float32, torch.int64]


def save_image(path, rng, size=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width = size or rng.integers(1, 60, 2)
    Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(path)


# ---- COCO ----

IDS = [900719925474, 12, 5, 40, 0, 33, 7, 8]  # neither in order nor without gaps
OBJECTS = {12: 3, 5: 1, 40: 7, 33: 2, 8: 3}  # the others have none
CATEGORIES = [(90, "toothbrush"), (1, "person"), (13, "stop sign"), (3, "car")]


def coco(rng):
    """Return what a JSON file says, with annotations of all images mixed."""
    annotations = []
    for image, count in OBJECTS.items():
        for _ in range(count):
            box = [round(float(value), int(rng.integers(0, 9))) for value in rng.random(4) * 50]
            annotations.append(
                {
                    "image_id": image,
                    "category_id": CATEGORIES[rng.integers(len(CATEGORIES))][0],
                    "bbox": box,
                    "area": float(rng.random() * 1e4),
                    "iscrowd": int(rng.random() < 0.3),
                    "segmentation": [[1, 2, 30, 4, 5, 60.5]],
                }
            )
    annotations[3]["bbox"] = [16777217, 0.1, 3, 1e-30]  # what float32 rounds
    annotations = [{**annotations[k], "id": 100 + n} for n, k in enumerate(rng.permutation(len(annotations)))]
    return {
        "images": [{"id": image, "file_name": f"some/{image}.png", "width": 9, "height": 9} for image in IDS],
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for number, name in CATEGORIES],
    }


def write(folder, about):
    (folder / "file.json").write_text(json.dumps(about))
    return folder / "images", folder / "file.json"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("coco"), np.random.default_rng(1)
    for image in IDS:
        save_image(folder / "images" / "some" / f"{image}.png", rng)
    return write(folder, coco(rng))


def expected(tree):
    """Return the samples of torchvision's dataset, with the arrays that a detection reference makes of its objects."""
    from torchvision.datasets import CocoDetection
    from torchvision.ops import box_convert

    theirs = CocoDetection(*map(str, tree))
    for (image, objects), image_id in zip(theirs, theirs.ids, strict=True):
        boxes = torch.tensor([each["bbox"] for each in objects], dtype=torch.float32).reshape(-1, 4)
        arrays = [
            torch.tensor([each[key] for each in objects], dtype=kind)
            for key, kind in [("category_id", torch.int64), ("area", torch.float32), ("iscrowd", torch.int64)]
        ]
        yield np.asarray(image), box_convert(boxes, "xywh", "xyxy"), *arrays, image_id


def same(ours, theirs):
    assert np.array_equal(ours[0], theirs[0])
    for one, other in zip(ours[1:], theirs[1:], strict=True):
        if isinstance(other, int):
            assert one == other
        else:
            one = torch.as_tensor(one)
            assert one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)


def test_coco_is_what_torchvision_reads(tree):
    data = stoker.datasets.CocoDetection(*tree)
    wanted = list(expected(tree))
    assert len(data) == len(wanted) == len(IDS) and data.ids == sorted(IDS)
    assert data.field_types == {"image": "image", **dict.fromkeys(FIELDS, "array"), "image_id": "int"}
    assert list(data.field_types)[1:5] == FIELDS
    for ours, theirs in zip(data, wanted, strict=True):
        same(ours, theirs)
    assert data[0][1].shape == (0, 4) and data[0][2].shape == (0,)
    assert data.classes == ["person", "car", "stop sign", "toothbrush"]
    assert data.class_to_idx == {"person": 1, "car": 3, "stop sign": 13, "toothbrush": 90}
    with pytest.raises(AttributeError, match="as many labels as objects"):
        data.targets


def test_contiguous_labels(tree):
    ids, contiguous = (stoker.datasets.CocoDetection(*tree, contiguous=value) for value in (False, True))
    place = {number: label for label, (number, _) in enumerate(sorted(CATEGORIES))}
    assert contiguous.class_to_idx == {name: place[number] for number, name in CATEGORIES}
    for one, other in zip(ids, contiguous, strict=True):
        assert [place[label] for label in one[2].tolist()] == other[2].tolist()
        assert all(np.array_equal(a, b) for k, (a, b) in enumerate(zip(one, other, strict=True)) if k != 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_coco(tree, workers):
    data = stoker.datasets.CocoDetection(*tree, T.ToTensor())
    wanted = {each[-1]: each for each in expected(tree)}
    seen = []
    for images, *arrays, ids in stoker.DataLoader(data, 3, shuffle=True, seed=3, num_workers=workers):
        assert ids.dtype == torch.int64
        for row, image_id in enumerate(ids.tolist()):
            assert tuple(images[row].shape[1:]) == wanted[image_id][0].shape[:2]
            same([None, *(array[row] for array in arrays)], [None, *wanted[image_id][1:-1]])
        assert [array[0].dtype for array in arrays] == DTYPES
        seen += ids.tolist()
    assert sorted(seen) == sorted(IDS)


def test_images_without_objects_and_images_with_as_many(tree):
    data = stoker.datasets.CocoDetection(*tree, T.Compose([T.Resize((8, 8)), T.ToTensor()]))
    place = {image: k for k, image in enumerate(data.ids)}
    none = stoker.datasets.Subset(data, [place[image] for image in (0, 7)])
    _, boxes, labels, area, iscrowd, ids = next(iter(stoker.DataLoader(none, 2)))
    assert tuple(boxes.shape) == (2, 0, 4) and boxes.dtype == torch.float32 and ids.tolist() == [0, 7]
    assert [tuple(each.shape) for each in (labels, area, iscrowd)] == [(2, 0)] * 3
    three = stoker.datasets.Subset(data, [place[image] for image in (8, 12)])
    _, boxes, labels, *_ = next(iter(stoker.DataLoader(three, 2)))
    assert tuple(boxes.shape) == (2, 3, 4) and tuple(labels.shape) == (2, 3)


def test_subsets_concatenations_and_pickles(tree):
    data = stoker.datasets.CocoDetection(*tree)
    both = stoker.datasets.Concat([stoker.datasets.Subset(data, [5, 1]), data])
    wanted = list(expected(tree))
    for place, k in enumerate([5, 1, *range(len(IDS))]):
        same(both[place], wanted[k])
    assert both._engine().class_labels == [1, 3, 13, 90]
    mixed = stoker.datasets.Concat([data, stoker.datasets.CocoDetection(*tree, contiguous=True)])
    assert mixed.classes == []  # the same label would mean two things
    again = pickle.loads(pickle.dumps(data))
    assert again.ids == data.ids
    same(again[3], wanted[3])
    of_torch = torch.utils.data.Subset(stoker.datasets.CocoDetection(*tree, T.ToTensor()), [4, 2])
    for images, boxes, *_, ids in stoker.DataLoader(of_torch, 1):
        assert torch.equal(boxes[0], next(each[1] for each in wanted if each[-1] == int(ids[0])))


def test_a_bad_image_is_replaced(tree, tmp_path):
    for image in IDS:
        save_image(tmp_path / "images" / "some" / f"{image}.png", np.random.default_rng(image % 100))
    (tmp_path / "images" / "some" / "12.png").write_bytes(b"no image")
    about = json.loads(tree[1].read_text())
    data = stoker.datasets.CocoDetection(*write(tmp_path, about), T.Compose([T.Resize((8, 8)), T.ToTensor()]))
    _, boxes, labels, *_, ids = next(iter(stoker.DataLoader(data, len(IDS), on_error="replace")))
    row = sorted(IDS).index(12)
    assert ids[row] == -100 and len(boxes[row]) == len(labels[row]) == 0
    assert len(boxes[sorted(IDS).index(40)]) == 7


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda about: about["images"].append({"id": 3, "file_name": "some/none.png"}), r"missing: .*some/none\.png"),
        (lambda about: about["annotations"][2].pop("bbox"), "annotation 102 has no box"),
        (lambda about: about["annotations"][2].update(bbox=[]), "annotation 102 has no box"),
        (lambda about: about["annotations"][2].pop("category_id"), "annotation 102 has no category"),
        (lambda about: about["annotations"][2].update(bbox=[1, 2, 3]), "3 numbers instead of 4"),
        (lambda about: about["annotations"][2].update(bbox=[1, 2, 1e300, 4]), "annotation 102 .*too large"),
        (lambda about: about["annotations"][2].update(bbox=[3e38, 2, 3e38, 4]), "annotation 102 .*too large"),
        (lambda about: about["annotations"][2].update(area=-1e300), "annotation 102 .*too large"),
        (lambda about: about.pop("images"), "not in COCO's format"),
        (lambda about: about["images"][1].pop("id"), "an image has no 'id', at byte"),
        (lambda about: about["images"][1].pop("file_name"), "an image has no 'file_name', at byte"),
        (lambda about: about["images"][1].update(id="x"), "the 'id' of an image is not a whole number"),
        (lambda about: about["annotations"][2].pop("image_id"), "an annotation has no 'image_id', at byte"),
    ],
)  # fmt: skip
def test_coco_files_with_faults(tree, change, message):
    about = json.loads(tree[1].read_text())
    change(about)
    other = tree[1].with_name("bad.json")
    other.write_text(json.dumps(about))
    with pytest.raises(stoker.StokerError, match=message):
        stoker.datasets.CocoDetection(tree[0], other)


def test_a_category_that_the_file_does_not_list(tree):
    about = json.loads(tree[1].read_text())
    about["annotations"][0]["category_id"] = 55
    other = tree[1].with_name("unlisted.json")
    other.write_text(json.dumps(about))
    assert 55 in np.concatenate([labels for _, _, labels, *_ in stoker.datasets.CocoDetection(tree[0], other)])
    with pytest.raises(stoker.StokerError, match="annotation 100 has the category 55"):
        stoker.datasets.CocoDetection(tree[0], other, contiguous=True)


def test_annotations_of_images_that_are_not_listed_are_nobodys(tree):
    about = json.loads(tree[1].read_text())
    about["annotations"].append({**about["annotations"][0], "id": 9999, "image_id": 123456})
    other = tree[1].with_name("unknown.json")
    other.write_text(json.dumps(about))
    got, wanted = (stoker.datasets.CocoDetection(tree[0], path) for path in (other, tree[1]))
    assert len(got) == len(wanted)
    assert all(np.array_equal(got[k][1], wanted[k][1]) for k in range(len(wanted)))


def test_coco_without_annotations_or_files(tree, tmp_path):
    other = tree[1].with_name("test.json")
    other.write_text(json.dumps({"images": json.loads(tree[1].read_text())["images"]}))
    data = stoker.datasets.CocoDetection(tree[0], other)
    assert len(data) == len(IDS) and all(len(boxes) == 0 for _, boxes, *_ in data) and data.classes == []
    for paths in ((tree[0], tmp_path / "none.json"), (tmp_path / "none", tree[1])):
        with pytest.raises(OSError, match="none"):
            stoker.datasets.CocoDetection(*paths)


# ---- key points ----


def with_key_points(about, rng, count=17):
    for number, one in enumerate(about["annotations"]):
        if number % 4 == 1:
            one["keypoints"] = [] if number % 8 == 1 else None
        elif number % 4 != 2:
            points = (rng.random((count, 3)) * [50, 50, 3]).round(2)
            points[:, 2] = points[:, 2].astype(int)
            one["keypoints"] = points.ravel().tolist()
    return about


def test_key_points_of_coco(tree):
    about = with_key_points(json.loads(tree[1].read_text()), np.random.default_rng(5))
    file = tree[1].with_name("keypoints.json")
    file.write_text(json.dumps(about))
    data = stoker.datasets.CocoDetection(tree[0], file, keypoints=True)
    assert list(data.field_types)[5:] == ["image_id", "keypoints"]
    of_image = {image: [each for each in about["annotations"] if each["image_id"] == image] for image in IDS}
    for sample, plain in zip(data, stoker.datasets.CocoDetection(*tree), strict=True):
        same(sample[:-1], [plain[0], *(torch.as_tensor(each) if isinstance(each, np.ndarray) else each for each in plain[1:])])
        wanted = [np.array(each.get("keypoints") or np.zeros(51), np.float32).reshape(17, 3) for each in of_image[sample[-2]]]
        assert sample[-1].dtype == np.float32 and sample[-1].shape == (len(wanted), 17, 3)
        assert all(np.array_equal(*pair) for pair in zip(sample[-1], wanted, strict=True))
    steps = T.Compose([T.Resize((9, 9)), T.RandomHorizontalFlip(1.0), T.SanitizeBoundingBoxes(2), T.ToTensor()])
    data = stoker.datasets.CocoDetection(tree[0], file, steps, keypoints=True)
    plain = {sample[-2]: sample for sample in stoker.datasets.CocoDetection(tree[0], file, keypoints=True)}
    removed = 0
    for _, boxes, *_, areas, _, ids, points in ((*batch,) for batch in stoker.DataLoader(data, 3, num_workers=2)):
        for row, number in enumerate(ids.tolist()):
            image, *_, had_areas, _, _, had = plain[number]
            kept = [had_areas.tolist().index(area) for area in areas[row].tolist()]
            moved = had[kept] * np.array([9 / image.shape[1], 9 / image.shape[0], 1], np.float32)
            moved[..., 0] = 8 - moved[..., 0]
            assert len(points[row]) == len(boxes[row]) and np.allclose(points[row], moved, atol=1e-3)
            removed += len(had) - len(kept)
    assert removed


def test_key_points_with_faults(tree):
    rng = np.random.default_rng(6)
    file = tree[1].with_name("bad-keypoints.json")
    for change, message in (
        (lambda about: about["annotations"][3].update(keypoints=[1, 2, 2] * 5), "annotation 103 has another number of key points"),
        (lambda about: about["annotations"][3].update(keypoints=[1, 2]), "not x, y and visibility in turn"),
        (lambda about: about["annotations"][3].update(keypoints=[1e300, 2, 2] * 17), "annotation 103 has a key point too large"),
        (lambda about: [each.pop("keypoints", None) for each in about["annotations"]], "person_keypoints"),
    ):
        about = with_key_points(json.loads(tree[1].read_text()), rng)
        change(about)
        file.write_text(json.dumps(about))
        with pytest.raises(stoker.StokerError, match=message):
            stoker.datasets.CocoDetection(tree[0], file, keypoints=True)
    file.write_text(json.dumps({"images": json.loads(tree[1].read_text())["images"]}))
    assert stoker.datasets.CocoDetection(tree[0], file, keypoints=True)[0][-1].shape == (0, 0, 3)


# ---- Pascal VOC ----

NAMES = ["2007_000032", "2008_000003", "2007_000129", "2009_000001"]


def annotation(name, objects):
    body = "".join(
        f"<object><name>{kind}</name><pose>Left</pose><truncated>0</truncated>"
        + ("" if difficult is None else f"<difficult>{difficult}</difficult>")
        + "<bndbox>" + "".join(f"<{side}>{value}</{side}>" for side, value in zip(("xmin", "ymin", "xmax", "ymax"), box))
        + "</bndbox><part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>"
        "</object>"
        for kind, difficult, box in objects
    )  # fmt: skip
    return (
        f"<annotation><folder>VOC2012</folder><filename>{name}.jpg</filename>"
        f"<size><width>9</width><height>9</height><depth>3</depth></size>{body}</annotation>"
    )


@pytest.fixture(scope="module")
def voc(tmp_path_factory):
    root, rng = tmp_path_factory.mktemp("voc"), np.random.default_rng(2)
    base = root / "VOCdevkit" / "VOC2012"
    (base / "Annotations").mkdir(parents=True)
    (base / "ImageSets" / "Main").mkdir(parents=True)
    (base / "ImageSets" / "Main" / "val.txt").write_text("\n".join(NAMES) + "\n")
    for k, name in enumerate(NAMES):
        save_image(base / "JPEGImages" / f"{name}.jpg", rng, (40, 50))
        objects = [
            (["person", "aeroplane", "tvmonitor", "dog"][rng.integers(4)], int(rng.random() < 0.5), rng.integers(1, 500, 4))
            for _ in range(3 * (k % 3))
        ]
        (base / "Annotations" / f"{name}.xml").write_text(annotation(name, objects))
    return root


def test_voc_is_what_torchvision_reads(voc):
    from torchvision.datasets import VOCDetection

    ours = stoker.datasets.VOCDetection(voc, image_set="val")
    theirs = VOCDetection(voc, image_set="val")
    assert len(ours) == len(theirs) == len(NAMES) and len(ours.classes) == 21
    assert ours.class_to_idx["__background__"] == 0 and ours.class_to_idx["tvmonitor"] == 20
    for sample, (image, target) in zip(ours, theirs, strict=True):
        objects = target["annotation"].get("object", [])
        boxes = [[int(each["bndbox"][side]) for side in ("xmin", "ymin", "xmax", "ymax")] for each in objects]
        labels = [ours.class_to_idx[each["name"]] for each in objects]
        difficult = [int(each["difficult"]) for each in objects]
        wanted = [torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4), torch.tensor(labels, dtype=torch.int64)]
        same(sample, [np.asarray(image), *wanted, torch.tensor(difficult, dtype=torch.int64)])


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_voc(voc, workers):
    data = stoker.datasets.VOCDetection(voc, image_set="val", transform=T.ToTensor())
    images, boxes, labels, difficult = next(iter(stoker.DataLoader(data, 4, num_workers=workers)))
    assert tuple(images.shape) == (4, 3, 40, 50)
    assert [len(each) for each in boxes] == [len(each) for each in labels] == [0, 3, 6, 0]
    for k, sample in enumerate(stoker.datasets.VOCDetection(voc, image_set="val")):
        same([None, boxes[k], labels[k], difficult[k]], [None, *map(torch.as_tensor, sample[1:])])


def test_voc_files_with_faults(voc, tmp_path):
    base = tmp_path / "VOCdevkit" / "VOC2007"
    (base / "Annotations").mkdir(parents=True)
    (base / "ImageSets" / "Main").mkdir(parents=True)
    (base / "ImageSets" / "Main" / "test.txt").write_text("000001\n")
    save_image(base / "JPEGImages" / "000001.jpg", np.random.default_rng(0))

    def read(text):
        if text is not None:
            (base / "Annotations" / "000001.xml").write_text(text)
        return stoker.datasets.VOCDetection(tmp_path, "2007", "test")

    for text, message in (
        (None, r"file of a listed image is missing.*000001\.xml"),
        ("", r"000001\.xml"),
        ("<annotation>", r"000001\.xml"),
        (annotation("000001", [("unicorn", 0, (1, 2, 3, 4))]), "'unicorn' instead of one of the classes"),
        (annotation("000001", [("cow", 0, (1, 2, "1e300", 4))]), r"000001\.jpg.*too large for float32"),
    ):
        with pytest.raises(stoker.StokerError, match=message):
            read(text)
    _, boxes, labels, difficult = read(annotation("000001", [("cow", None, (9.5, 2, 3, 4))]))[0]
    assert boxes.tolist() == [[9.5, 2, 3, 4]] and labels.tolist() == [10] and difficult.tolist() == [0]
    (base / "JPEGImages" / "000001.jpg").unlink()
    with pytest.raises(stoker.StokerError, match=r"listed image is missing.*000001\.jpg"):
        read(None)
    with pytest.raises(OSError):
        stoker.datasets.VOCDetection(tmp_path, "2008", "test")


def test_boxes_follow_their_images_as_in_torchvision(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    about = {"images": [], "annotations": [], "categories": []}
    for k in range(12):
        height, width = map(int, rng.integers(30, 90, 2))
        Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(tmp_path / "images" / f"{k}.png")
        about["images"].append({"id": k, "file_name": f"{k}.png"})
        for n in range(k % 4):
            box = [*(rng.random(2) * [width - 12, height - 12]).tolist(), *(rng.random(2) * 12).tolist()]
            one = {"id": 10 * k + n, "image_id": k, "category_id": 10 * k + n, "bbox": box}
            about["annotations"].append({**one, "area": float(10 * k + n), "iscrowd": n % 2})
    (tmp_path / "a.json").write_text(json.dumps(about))

    def steps(module, sanitize):
        return [module.Resize((50, 70)), module.RandomHorizontalFlip(1.0), module.CenterCrop((30, 40)), sanitize]

    plain = stoker.datasets.CocoDetection(tmp_path / "images", tmp_path / "a.json")
    ours = T.Compose([*steps(T, T.SanitizeBoundingBoxes()), T.PILToTensor()])
    data = stoker.datasets.CocoDetection(tmp_path / "images", tmp_path / "a.json", ours)
    names = ("labels", "area", "iscrowd")
    sanitize = v2.SanitizeBoundingBoxes(labels_getter=lambda sample: tuple(sample[1][name] for name in names))
    theirs, removed = v2.Compose(steps(v2, sanitize)), 0
    for workers in (0, 2):
        for _, boxes, labels, area, crowd, numbers in stoker.DataLoader(data, 5, num_workers=workers, shuffle=True):
            for row, number in enumerate(numbers.tolist()):
                image, had, *values, _ = plain[number]
                canvas = image.shape[:2]
                target = {"boxes": tv_tensors.BoundingBoxes(torch.tensor(had), format="XYXY", canvas_size=canvas)}
                target |= {name: torch.tensor(value) for name, value in zip(names, values, strict=True)}
                _, want = theirs(Image.fromarray(image), target)
                assert torch.equal(boxes[row], want["boxes"].as_subclass(torch.Tensor))
                assert all(torch.equal(given[row], want[name]) for given, name in zip((labels, area, crowd), names, strict=True))
                removed += len(had) - len(boxes[row])
    assert removed > 5
