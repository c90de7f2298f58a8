# SPDX-License-Identifier: Apache-2.0
"""Images with the masks and annotations that belong to them, against the lists of torchvision's datasets. Speaks TAP."""

import contextlib
import io
import json
import os
import random
import tempfile
from pathlib import Path

import tap

chance = random.Random(9)
kept = tempfile.TemporaryDirectory(prefix="stoker-pairs-")
base = Path(kept.name)


def ask(*words):
    answer = json.loads(tap.run(*words)[0])
    pairs = [(tap.text(image), tap.text(target), label, group) for image, target, label, group in answer["pairs"]]
    return {"error": tap.text(answer["error"]), "pairs": pairs, "classes": [tap.text(c) for c in answer["classes"]]}


def paths(answer):
    return [(image, target) for image, target, _, _ in answer["pairs"]]


def touch(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def refused(what, part, *words):
    error = ask(*words)["error"]
    if not tap.ok(part in error, what):
        tap.note(f"{error!r} lacks {part!r}")


# ---- names but for the extension ----------------------------------------------------------------

def stems():
    root = base / "stems"
    names = ["a", "b.c", "sub/a", "sub/deep/z", "A", "ä", "b-1", "b", ".hidden", "sub.d/a"]
    touch(root / "images", *(f"{name}.{chance.choice(['jpg', 'JPG', 'png'])}" for name in names))
    touch(root / "masks", *(f"{name}.png" for name in names), "more.png", "a.txt", "sub/README")
    touch(root / "labels", *(f"{name}.txt" for name in names[::2]))
    touch(root / "marked", *(f"{name}_mask.gif" for name in names))
    images = sorted(p.relative_to(root / "images") for p in (root / "images").rglob("*") if p.is_file())
    images = sorted(map(str, images))
    stem = {image: os.path.splitext(image)[0] for image in images}
    for what, folder, suffix, ending in [("masks", "masks", "", ".png"), ("masks with a suffix", "marked", "_mask", ".gif")]:
        want = [(f"{root}/images/{i}", f"{root}/{folder}/{stem[i]}{suffix}{ending}") for i in images]
        tap.same(paths(ask("stems", root / "images", root / folder, suffix, 0, ending)), want, what)
    want = [(f"{root}/images/{i}", f"{root}/labels/{stem[i]}.txt" if stem[i] in names[::2] else "") for i in images]
    tap.same(paths(ask("stems", f"{root}/images/", f"{root}/labels/", "", 1, ".txt")), want, "labels that may be missing")
    missing = [image for image in images if stem[image] not in names[::2]]
    refused("missing ones are counted, and the first are named", f"{root}/labels/: 5 images have no file here: "
            f"{', '.join(missing[:3])} and 2 more. Names must be the same but for the extension",
            "stems", root / "images", root / "labels", "", 0, ".txt")
    touch(root / "masks", "sub/a.tif")
    refused("two masks for one image", "several files belong to the image sub/a.", "stems", root / "images", root / "masks",
            "", 0, ".png", ".tif")
    refused("no folder", "nowhere", "stems", root / "images", root / "nowhere", "", 0, ".png")
    (root / "empty").mkdir()
    refused("no images", "found no images in it", "stems", root / "empty", root / "masks", "", 0, ".png")
    os.unlink(next((root / "marked").glob("A_*")))
    refused("one is missing", "/marked/: 1 image has no file here: A.", "stems", root / "images", root / "marked", "_mask",
            0, ".gif")


# ---- torchvision's ------------------------------------------------------------------------------

def voc(datasets):
    root = base / "voc" / "VOCdevkit" / "VOC2012"
    names = [f"20{k:02}_{k * 7 % 13:06}" for k in range(20)]
    chance.shuffle(names)
    touch(root, *(f"JPEGImages/{name}.jpg" for name in names), *(f"SegmentationClass/{name}.png" for name in names[:9]),
          *(f"Annotations/{name}.xml" for name in names))
    for folder, listed in (("Segmentation", names[:9]), ("Main", names[5:])):
        (root / "ImageSets" / folder).mkdir(parents=True)
        (root / "ImageSets" / folder / "train.txt").write_text("\r\n".join(f"{name}  " for name in listed))
    for task, kind in (("segmentation", datasets.VOCSegmentation), ("detection", datasets.VOCDetection)):
        theirs = kind(str(base / "voc"), image_set="train")
        tap.same(paths(ask("voc", root, "train", task)), list(zip(theirs.images, theirs.targets)), f"VOC {task}")
    os.unlink(root / "JPEGImages" / f"{names[0]}.jpg")
    refused("VOC: an image is missing", f"1 listed image is missing: {root}/JPEGImages/{names[0]}.jpg", "voc", root, "train",
            "segmentation")
    touch(root, f"JPEGImages/{names[0]}.jpg")
    for name in names[1:7]:
        os.unlink(root / "SegmentationClass" / f"{name}.png")
    refused("VOC: masks are missing", "6 files of listed images are missing: ", "voc", root, "train", "segmentation")
    refused("VOC: no such list", "ImageSets/Segmentation/val.txt", "voc", root, "val", "segmentation")
    (root / "ImageSets/Segmentation/odd.txt").write_bytes(b"a\0b\n")
    refused("VOC: no list", "a NUL character", "voc", root, "odd", "segmentation")
    (root / "ImageSets/Segmentation/blank.txt").write_text(f"\n\n{names[0]}\n\n \n")
    tap.ok(len(ask("voc", root, "blank", "segmentation")["pairs"]) == 1, "VOC: blank lines are left out")


def pets(datasets):
    root = base / "pets" / "oxford-iiit-pet"
    breeds = ["Abyssinian", "american_bulldog", "saint_bernard", "shiba-inu_x", "Bengal", "o'neil_2b"]
    lines = [(f"{breed}_{k}", number + 1, 1 + number % 2) for number, breed in enumerate(breeds) for k in (1, 10, 100)]
    chance.shuffle(lines)
    touch(root, *(f"images/{name}.jpg" for name, _, _ in lines),
          *(f"annotations/trimaps/{name}.png" for name, _, _ in lines))
    for split, listed in (("trainval", lines[:12]), ("test", lines[3:])):
        text = "".join(f"{name} {breed} {kind} {k}\n" for k, (name, breed, kind) in enumerate(listed))
        (root / "annotations" / f"{split}.txt").write_text(text)
        theirs = datasets.OxfordIIITPet(str(base / "pets"), split)
        got = ask("pets", root, split)
        want = zip(map(str, theirs._images), map(str, theirs._segs), theirs._labels, theirs._bin_labels)
        tap.same(got["pairs"], list(want), f"pets: {split}")
        tap.same(got["classes"], theirs.classes, f"pets: the classes of {split}")
    for text, part in {"a_1 1 1": "line 1 has not four words", "a_1 1 1 1 1": "line 1 has not four words",
                       "a_1 1 1 1\na_2 x 1 1": "odd.txt: line 2: 'x' is not a whole number",
                       "a_1 1 9223372036854775808 1": "'9223372036854775808' is not a whole number",
                       "a_1 1 1 1\nb_1 1 1 1": "breed 1 is both 'A' and 'B'",
                       "a_1 1 1 1": "1 listed image is missing"}.items():
        (root / "annotations" / "odd.txt").write_text(text)
        refused(f"pets: {part}", part, "pets", root, "odd")


def cityscapes(datasets):
    root = base / "cityscapes"
    for split in ("train", "val"):
        for city in ("zurich", "aachen", "bad_place"):
            for k in chance.sample(range(100), 5):
                name = f"{city}_{k:06}_{k * 31:06}"
                touch(root, f"leftImg8bit/{split}/{city}/{name}_leftImg8bit.png")
                for mode in ("gtFine", "gtCoarse"):
                    touch(root, *(f"{mode}/{split}/{city}/{name}_{mode}_{kind}" for kind in (
                        "labelIds.png", "instanceIds.png", "color.png", "polygons.json")))
    for mode, kind, suffix in [("fine", "semantic", "gtFine_labelIds.png"),
                               ("coarse", "instance", "gtCoarse_instanceIds.png"),
                               ("fine", "polygon", "gtFine_polygons.json"), ("fine", "color", "gtFine_color.png")]:
        theirs = datasets.Cityscapes(str(root), "train", mode, kind)
        want = sorted(zip(theirs.images, (target for target, in theirs.targets)))
        got = paths(ask("cityscapes", root, "train", suffix.split("_")[0], suffix))
        tap.same(got, want, f"Cityscapes: {mode}, {kind}, sorted")
    touch(root, "leftImg8bit/val/zurich/.DS_Store", "leftImg8bit/val/README")
    tap.ok(len(ask("cityscapes", root, "val", "gtFine", "gtFine_color.png")["pairs"]) == 15, "Cityscapes: hidden files")
    touch(root, "leftImg8bit/val/zurich/odd.png")
    refused("Cityscapes: a mask is missing",
            f"1 file of an image is missing: {root}/gtFine/val/zurich/odd.png_gtFine_color.png",
            "cityscapes", root, "val", "gtFine", "gtFine_color.png")
    refused("Cityscapes: no such split", "leftImg8bit/test", "cityscapes", root, "test", "gtFine", "gtFine_color.png")


def coco(datasets):
    root, file = base / "coco", base / "coco.json"
    names = [f"{k:012}.jpg" for k in range(9)] + ["sub/a.jpg", "./b.jpg"]
    ids = chance.sample(range(1000), len(names))
    touch(root, *names)
    file.write_text(json.dumps({"images": [{"id": k, "file_name": n} for k, n in zip(ids, names)], "annotations": []}))
    with contextlib.redirect_stdout(io.StringIO()):
        theirs = datasets.CocoDetection(str(root), str(file))
    want = [(os.path.join(theirs.root, theirs.coco.imgs[k]["file_name"]), "") for k in theirs.ids]
    tap.same(paths(ask("coco", root, file)), want, "COCO")
    for name in names[:5]:
        os.unlink(root / name)
    refused("COCO: images are missing", "5 images of the annotations are missing: ", "coco", root, file)


stems()
try:
    import pycocotools  # noqa: F401
    from torchvision import datasets as torchvisions
except ImportError as why:
    tap.skip("torchvision's datasets", why)
else:
    for compare in voc, pets, cityscapes, coco:
        compare(torchvisions)
tap.finish()
