# SPDX-License-Identifier: Apache-2.0
"""COCO, VOC and YOLO files, random and damaged, against what pycocotools, torchvision and Python read. Speaks TAP.

    compare_annotations.py ANNOTATIONS [time [FILE]]   the program of annotations.c; `time`: only how long a file takes

The seed is fixed; STOKER_CASES asks for more cases of each kind.
"""

import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "source"))
import tap  # noqa: E402

CASES = int(os.environ.get("STOKER_CASES", tap.share_of(60)))
BOX, LABEL, CROWD, DIFFICULT, TRUNCATED = 1, 2, 4, 8, 16
XYXY, XYWH, CXCYWH = range(3)
chance = random.Random(7)
kept = tempfile.TemporaryDirectory(prefix="stoker-annotations-")
folder = Path(kept.name)


def ask(lines):
    done = subprocess.run([*tap.EMULATOR, sys.argv[1]], input="\n".join(lines).encode(), capture_output=True, check=True,
                          env=tap.ENVIRONMENT)
    answers = [json.loads(line) for line in done.stdout.decode(errors="replace").splitlines()]
    assert len(answers) == len(lines), done.stderr
    for answer in answers:
        if "error" in answer:
            answer["error"] = tap.text(answer["error"])
        for image in answer.get("images", []):
            image["name"] = tap.text(image["name"])
    return answers


def refused(what, kind, contents, want, rest=""):
    """Each of the contents must end in an error that names the file and says what `want` lists for it."""
    lines = []
    for number, text in enumerate(contents):
        path = folder / f"{what}-{number}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        lines.append(f"{kind} {path} {rest}")
    for number, (answer, part) in enumerate(zip(ask(lines), want, strict=True)):
        error = answer.get("error", "")
        if not tap.ok(error.startswith(str(folder / f"{what}-{number}")) and part in error, f"{what}: {part}"):
            tap.note(f"{contents[number]!r}\n{answer}"[:1500])
    return lines


# ---- COCO ---------------------------------------------------------------------------------------

def number():
    return chance.choice([chance.randint(-5, 60), round(chance.uniform(-5, 60), 2), chance.uniform(0, 60)])


def polygon():
    return [max(-4, min(70, number())) for _ in range(2 * chance.randint(3, 9))]


def segmentation(coco, np, height, width):
    kind = chance.randrange(5)
    if kind < 2:
        return [polygon() for _ in range(chance.randint(1, 3))]
    if kind == 2:
        return []
    pixels = np.asfortranarray((np.random.default_rng(chance.randrange(1000)).random((height, width)) < 0.4).astype("u1"))
    rle = coco.encode(pixels)
    if kind == 3:
        return {"size": rle["size"], "counts": rle["counts"].decode()}
    flat, counts, value = pixels.ravel("F"), [0], 0
    for pixel in flat:
        if pixel != value:
            counts.append(0)
            value = pixel
        counts[-1] += 1
    return {"counts": counts, "size": [height, width]}


def dataset(coco, np):
    ids = chance.sample(range(-20, 400), chance.randint(1, 8))
    if chance.random() < 0.3:
        ids[0] = chance.choice([2**63 - 1, -2**63, 0])
    categories = chance.sample(range(1, 91), chance.randint(1, 6))
    images = [{"license": 3, "file_name": chance.choice([f"{k:012}.jpg", f"sub/ä\"\\{k}\u20ac.png", f"\U0001f600{k}"]),
               "height": chance.randint(1, 40), "width": chance.randint(1, 40), "id": k} for k in ids]
    annotations = []
    for k in range(chance.randint(0, 30)):
        image = chance.choice(images)
        about = {"id": 7 * k + 1, "image_id": image["id"], "category_id": chance.choice(categories), "iscrowd": k % 5 == 4,
                 "bbox": [number() for _ in range(4)], "area": chance.uniform(0, 900),
                 "attributes": {"a": [None, {"b": "]"}]},
                 "segmentation": segmentation(coco, np, image["height"], image["width"]),
                 "keypoints": [number() for _ in range(3 * chance.randint(0, 4))]}
        members = list(about.items())
        chance.shuffle(members)
        annotations.append(dict(members))
    top = [("info", {"year": 2017}), ("images", images), ("annotations", annotations),
           ("categories", [{"supercategory": "x", "id": k, "name": f"class {k}"} for k in categories])]
    chance.shuffle(top)
    return dict(top)


def object_of(annotation, mask, labels):
    flags = BOX | LABEL | CROWD * annotation["iscrowd"]
    return {"label": labels[annotation["category_id"]], "id": annotation["id"], "box": annotation["bbox"],
            "area": annotation["area"], "flags": flags, "keypoints": annotation["keypoints"], "mask": mask}


def coco_files():
    try:
        import numpy as np
        import pycocotools.mask as coco
        from pycocotools.coco import COCO
        from torchvision.datasets import CocoDetection
    except ImportError as why:
        tap.skip("COCO files", why)
        return
    paths, tables = [], []
    for case in range(CASES):
        data, path = dataset(coco, np), folder / f"coco-{case}.json"
        path.write_text(json.dumps(data, indent=chance.choice([None, None, 1]), ensure_ascii=chance.random() < 0.5,
                                   separators=chance.choice([None, (",", ":")])))
        with contextlib.redirect_stdout(io.StringIO()):
            theirs = CocoDetection(str(folder), str(path))
            known = theirs.coco
        labels = {k: k for k in known.cats}
        if case % 2:
            labels = {k: n for n, k in enumerate(sorted(known.cats))}
        images = []
        for k in theirs.ids:
            about, objects = known.imgs[k], []
            labelled = np.zeros((about["height"], about["width"]), "u1")
            for annotation in theirs._load_target(k):
                mask = None
                if annotation["segmentation"]:
                    pixels = known.annToMask(annotation)
                    mask = "".join(map(str, pixels.ravel()))
                    labelled[pixels == 1] = labels[annotation["category_id"]]
                objects.append(object_of(annotation, mask, labels))
            images.append({"name": about["file_name"], "id": k, "width": about["width"], "height": about["height"],
                           "objects": objects, "map": labelled.tobytes().hex()})
        classes = [[k, known.cats[k]["name"].encode().hex()] for k in sorted(known.cats)]
        paths.append(f"coco {path} {case % 2}")
        tables.append({"images": images, "format": XYWH, "relative": 0, "orphans": 0, "repeated": 0, "classes": classes})
    wrong = [(p, a, t) for p, a, t in zip(paths, ask(paths), tables) if a != t]
    tap.ok(not wrong and COCO, f"COCO files, as torchvision and pycocotools: {len(paths)}")
    for path, answer, table in wrong[:1]:
        tap.note(f"{path}\n got {str(answer)[:1500]}\nwant {str(table)[:1500]}")


def coco_odd():
    """What real files have, too: members that are absent or null, other types of numbers, ids that repeat."""
    image = {"id": 5, "file_name": "a.jpg"}
    cases = {
        "nothing but images": {"images": [image]},
        "numbers as floats": {"images": [dict(image, id=5.0, width=3e1, height=2.0)]},
        "null": {"images": [dict(image, width=None)], "annotations": [
            {"image_id": 5, "bbox": None, "segmentation": None, "keypoints": None, "area": None, "iscrowd": None}]},
        "empty": {"images": [], "annotations": [], "categories": []},
        "orphans": {"images": [image], "annotations": [{"image_id": 6, "id": 1}, {"image_id": 5, "id": 2, "bbox": []}]},
        "repeated": {"images": [image, dict(image, file_name="b.jpg")],
                     "annotations": [{"image_id": 5, "id": 1}, {"image_id": 5, "id": 1}]},
    }
    lines = []
    for number, data in enumerate(cases.values()):
        (folder / f"odd-{number}").write_text(json.dumps(data))
        lines.append(f"coco {folder / f'odd-{number}'} 0")
    plain, floats, null, empty, orphans, repeated = ask(lines)
    tap.ok([i["name"] for i in plain["images"]] == ["a.jpg"] and not plain["images"][0]["objects"], "COCO: images alone")
    tap.ok([(i["id"], i["width"], i["height"]) for i in floats["images"]] == [(5, 30, 2)], "COCO: whole numbers as floats")
    bare = {"label": -1, "id": 0, "box": [0] * 4, "area": 0, "flags": 0, "keypoints": [], "mask": None}
    tap.same(null["images"][0]["objects"], [bare], "COCO: null is absent")
    tap.ok(empty["images"] == [], "COCO: no images")
    tap.ok(orphans["orphans"] == 1 and orphans["images"][0]["objects"] == [dict(bare, id=2)], "COCO: an orphan is left out")
    tap.ok(repeated["repeated"] == 1 and [i["name"] for i in repeated["images"]] == ["b.jpg"] and
           [o["id"] for o in repeated["images"][0]["objects"]] == [1, 1], "COCO: ids that repeat")
    keys = '\ufeff{"\\u0069mages": [{"id": 1, "id": 2, "file_name": "x", "file_name": "y\\u00e4\\ud83d\\ude00"}]}'
    (folder / "keys").write_text(keys, "utf-8")
    answer = ask([f"coco {folder / 'keys'} 0"])[0]
    tap.ok([(i["id"], i["name"]) for i in answer["images"]] == [(2, "yä\U0001f600")], "COCO: escapes, and keys that repeat")


def coco_damaged():
    image = '{"images": [{"id": 1, "file_name": "a"}], "annotations": '
    cases = {
        "": "the file is empty", "[]": "the file is not an object, at byte 0", "{": "the file ends",
        "{}": "no list of 'images'",
        '{"images": {}}': "the list of 'images' is not a list, at byte 11",
        '{"images": [{"id": 1}]}': "an image has no 'file_name', at byte 12",
        '{"images": [{"file_name": "a"}]}': "an image has no 'id', at byte 12",
        '{"images": [{"id": "x"}]}': "the 'id' of an image is not a whole number of 64 bits, at byte 19",
        '{"images": [{"id": 1.5}]}': "not a whole number", '{"images": [{"id": 9223372036854775808}]}': "not a whole number",
        '{"images": [{"id": -9223372036854775809}]}': "not a whole number", '{"images": [{"id": 01}]}': "not a whole number",
        '{"images": [{"id": 1, "file_name": 3}]}': "the 'file_name' of an image is not a string",
        '{"images": [{"id": 1, "file_name": "a\\u0000b"}]}': "NUL",
        '{"images": [{"id": 1, "width": -1}]}': "number of pixels",
        '{"images": [{"id": 1, "x": [1, 2}]}': "the JSON is damaged, at byte 32",
        '{"images": [{"id": 1 "x": 2}]}': "a comma or '}' is missing, at byte 21",
        '{"images": [{"id" 1}]}': "a colon is missing",
        '{"images": [{id: 1}]}': "the key of a member is not a string",
        '{"images": []} x': "follows the end of the JSON, at byte 15",
        '{"images": [], "x": ' + "[" * 600 + "]" * 600 + "}": "nested more than 500 deep",
        image + '[{"id": 1}]}': "an annotation has no 'image_id', at byte 58",
        image + '[{"image_id": 1, "bbox": [1, 2, 3]}]}': "has 3 numbers instead of 4, at byte 82",
        image + '[{"image_id": 1, "bbox": [1, 2, 3, 4, 5, 6]}]}': "has 6 numbers instead of 4",
        image + '[{"image_id": 1, "bbox": [1, 2, NaN, 3]}]}': "is not a finite number, at byte 89",
        image + '[{"image_id": 1, "bbox": [1, 2, 1e999, 3]}]}': "is not a finite number",
        image + '[{"image_id": 1, "bbox": "x"}]}': "the 'bbox' of an annotation is not a list",
        image + '[{"image_id": 1, "keypoints": [1, 2, 2, 4]}]}': "not x, y and visibility in turn",
        image + '[{"image_id": 1, "segmentation": [[1, 2, "x"]]}]}':
            "a coordinate of a polygon is not a finite number, at byte 98",
        image + '[{"image_id": 1, "segmentation": [[1, 2, 03]]}]}': "a coordinate of a polygon is not",
        image + '[{"image_id": 1, "segmentation": [[1, 2,]]}]}': "a coordinate of a polygon is not",
        image + '[{"image_id": 1, "segmentation": [[1 2]]}]}': "a comma or ']' is missing",
        image + '[{"image_id": 1, "segmentation": [1, 2]}]}': "a polygon is not a list",
        image + '[{"image_id": 1, "segmentation": 5}]}': "a segmentation is not a list",
        image + '[{"image_id": 1, "segmentation": {"size": [1, 2]}}]}': "a mask has no 'counts'",
        image + '[{"image_id": 1, "segmentation": {"counts": [1, 2]}}]}': "a mask has no 'size'",
        image + '[{"image_id": 1, "segmentation": {"size": [1, -2]}}]}': "not its height and width",
        image + '[{"image_id": 1, "segmentation": {"size": [1, 2, 3]}}]}': "not its height and width",
        image + '[{"image_id": 1, "segmentation": {"counts": [1, -2]}}]}': "a run length is not a number from 0",
        image + '[{"image_id": 1, "segmentation": {"counts": [4294967296]}}]}': "a run length is not a number from 0",
        image + '[{"image_id": 1, "segmentation": {"counts": true}}]}': "the 'counts' of a mask is not a list",
        image + '[{"image_id": 1, "category_id": 4, "id": 9}]}': "annotation 9 has the category 4",
        image + '[{"image_id": 1, "segmentation": [[1, 2, 3': "the file ends",
        b'{"images": [{"id": 1, "file_name": "\xff\xfe"}]}': "the 'file_name' of an image is not a string",
    }
    refused("coco", "coco", list(cases), list(cases.values()), "1")
    whole = json.dumps({"images": [{"id": 1, "file_name": "a", "width": 9}], "annotations": [
        {"image_id": 1, "id": 1, "bbox": [1, 2.5, 3, 4], "iscrowd": False, "segmentation": [[1, 2.25, 3e0, 4, 5, 6]]},
        {"image_id": 1, "segmentation": {"size": [2, 2], "counts": "04"}}], "categories": [{"id": 1, "name": "x"}]})
    parts = [whole[:k] for k in range(1, len(whole))]
    refused("cut", "coco", parts, ["at byte"] * len(parts), "0")


def coco_masks_damaged():
    data = {"images": [{"id": 1, "file_name": "a", "width": 4, "height": 3}], "annotations": [
        {"image_id": 1, "segmentation": s} for s in (
            {"size": [3, 3], "counts": [9]}, {"size": [3, 4], "counts": [11]}, {"size": [3, 4], "counts": "5\x7f"},
            {"size": [3, 4], "counts": ""}, [[1e9, 0, 0, 0, 0, 1]], [[]], [[], [0, 0, 4, 0, 4, 3, 0, 3]])]}
    (folder / "masks").write_text(json.dumps(data))
    masks = [o["mask"] for o in ask([f"coco {folder / 'masks'} 0"])[0]["images"][0]["objects"]]
    want = ["3 x 3 pixels, but the image 4 x 3", "add up to 11", "at its character 2", "add up to 0",
            "corner 1 of the polygon"]
    for mask, part in zip(masks, want):
        tap.ok(isinstance(mask, dict) and part in tap.text(mask["error"]), f"COCO, when it is drawn: {part}")
    tap.ok(masks[5:] == ["0" * 12, "1" * 12], "COCO: empty polygons")


# ---- VOC ----------------------------------------------------------------------------------------

def element(name, content, blank):
    return f"{blank}<{name}>{content}</{name}>"


def voc_file(names):
    blank = chance.choice(["", "\n\t", " "])
    objects = []
    for _ in range(chance.randint(0, 5)):
        members = [element("name", f" {chance.choice(names)}\n", blank), element("pose", "a &amp; b", blank),
                   element("truncated", chance.randint(0, 1), blank), element("difficult", chance.randint(0, 1), blank),
                   element("bndbox", "".join(element(s, chance.randint(-3, 500), blank) for s in chance.sample(
                       ["xmin", "ymin", "xmax", "ymax"], 4)), blank),
                   element("part", element("name", "head", "") + element("bndbox", element("xmin", 5, ""), ""), blank)]
        chance.shuffle(members)
        objects.append(element("object", "".join(members), blank))
    head = [element("folder", "VOC&#50;012", blank),
            element("filename", chance.choice(["a.jpg", "b &lt;&gt;&#xe4;.jpg"]), blank),
            element("size", element("width", 50, blank) + element("height", 37, blank) + element("depth", 3, blank), blank),
            f"{blank}<!-- <object> --><source kind='a>b'/>", *objects]
    start = chance.choice(["", "<?xml version='1.0' encoding='UTF-8'?>\n", "\ufeff<?xml version=\"1.0\"?><!-- x -->"])
    return start + element("annotation", "".join(head), "") + chance.choice(["", "\n", "<!-- end -->"])


def voc_object(found, names):
    box, text = found.find("bndbox"), lambda name: found.find(name).text.strip()
    sides = [int(box.find(side).text) for side in ("xmin", "ymin", "xmax", "ymax")]
    return {"label": names.index(text("name")), "id": 0, "box": sides, "area": 0,
            "flags": BOX | LABEL | DIFFICULT * int(text("difficult")) | TRUNCATED * int(text("truncated")),
            "keypoints": [], "mask": None}


def voc_files():
    names = ["__background__", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow",
             "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"]
    lines, tables = [], []
    for case in range(4 * CASES):
        path = folder / f"voc-{case}.xml"
        path.write_text(voc_file(names), "utf-8")
        root = ElementTree.parse(path).getroot()
        image = {"name": root.find("filename").text, "id": 0, "width": 50, "height": 37,
                 "objects": [voc_object(found, names) for found in root.findall("object")], "map": "00" * 50 * 37}
        lines.append(f"voc {path}")
        tables.append({"images": [image], "format": XYXY, "relative": 0, "orphans": 0, "repeated": 0, "classes": []})
    wrong = [(p, a, t) for p, a, t in zip(lines, ask(lines), tables) if a != t]
    tap.ok(not wrong, f"VOC files, as ElementTree reads them: {len(lines)}")
    for line, answer, table in wrong[:1]:
        tap.note(f"{line}\n{Path(line.split()[1]).read_text()}\n got {str(answer)[:1500]}\nwant {str(table)[:1500]}")


def voc_damaged():
    def whole(box="<xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax>", name="dog", extra=""):
        return f"<annotation>\n<object><name>{name}</name>\n<bndbox>{box}</bndbox>{extra}</object></annotation>"

    four = "<xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>{}</ymax>"
    cases = {
        "": "does not begin with <annotation>", "x": "text where there should be none", "<annotations/>": "does not begin",
        whole(name="dragon"): "line 2: <name> is 'dragon' instead of one of the classes",
        whole(four.format("four")): "line 3: <ymax> is 'four' instead of a number",
        whole(four.format("nan")): "<ymax> is 'nan'",
        whole(four.format("")): "<ymax> is ''", whole(four.format("<b>1</b>")): "<ymax> contains an element",
        whole("<xmin>1</xmin>"): "<bndbox> has no <ymin>", whole(extra="</object><object>"): "an <object> has no <name>",
        whole(extra="<difficult>yes</difficult>"): "<difficult> is 'yes'",
        whole(extra="&amp;"): "text where there should be none",
        whole(name="&dog;"): "<name> contains an unknown entity", whole(name="&#0;"): "unknown entity",
        whole(name="&#xd800;"): "unknown entity", whole(name="&#99999999999;"): "unknown entity",
        whole(name="&#;"): "unknown entity",
        whole(name="do&#103"): "unknown entity",
        whole(name="<![CDATA[dog]]>"): "document types and CDATA sections are not supported",
        "<!DOCTYPE a [<!ENTITY b 'b'>]>" + whole(): "document types",
        "<?xml version='1.0' encoding='UTF-16'?>" + whole(): "UTF-16",
        whole().replace("</bndbox>", "</box>"): "line 3: </box> where </bndbox> should be",
        whole() + "<a/>": "a second root",
        whole() + "</annotation>": "an element without a name", "<annotation" + "<" * 3: "a '<' within a tag",
        "<annotation a='x>": "the value of an attribute does not end", "<annotation><!-- ": "a comment does not end",
        "<annotation><? ": "a processing instruction does not end", "<annotation><a>": "the file ends within <a>",
        "<annotation><a></a": "a closing tag without '>'", "<" + "annotation><" + "a><" * 70: "nested more than 64 deep",
        "<annotation><size><width>-1</width></size></annotation>": "<width> is '-1' instead of a number of pixels",
        "<??>": "does not begin", "<annotation><filename>a\0b</filename></annotation>": "a NUL character",
    }
    refused("voc", "voc", list(cases), list(cases.values()))
    parts = [whole()[:k] for k in range(len(whole()))]
    refused("cut-voc", "voc", parts, ["line "] * len(parts))
    reversed_box = whole("<xmin>9</xmin><ymin>2.5</ymin><xmax>3</xmax><ymax> 4e0 </ymax>", extra="<!-- a -->")
    (folder / "reversed").write_text(reversed_box)
    answer = ask([f"voc {folder / 'reversed'}"])[0]
    tap.ok(answer["images"][0]["objects"][0]["box"] == [9, 2.5, 3, 4], "VOC: boxes are as written")


# ---- YOLO ---------------------------------------------------------------------------------------

def yolo(what, text, rest, want):
    (folder / "yolo").write_text(text)
    answer = ask([f"yolo {folder / 'yolo'} {rest}"])[0]
    got = [(o["label"], o["box"], o["keypoints"], o["mask"]) for i in answer.get("images", []) for o in i["objects"]]
    tap.same(got if "images" in answer else answer, want, f"YOLO: {what}")


def yolo_files():
    lines = [[chance.randint(0, 79), *(round(chance.uniform(0, 1), 6) for _ in range(4))] for _ in range(200)]
    boxes = "\n".join(" ".join(map(str, line)) for line in lines)
    yolo("boxes", boxes, "0 0 0 80 9 9", [(line[0], line[1:], [], None) for line in lines])
    yolo("nothing", "", "0 0 0 0 9 9", [])
    yolo("blank lines and ends of lines", "\n 3.0\t0.5 0.5 1 1 \r\n\n\r\n4 0 0 0 0", "0 0 0 0 9 9",
         [(3, [0.5, 0.5, 1, 1], [], None), (4, [0, 0, 0, 0], [], None)])
    yolo("a polygon and a box", "1 0.25 0.5 0.75 0.5 0.75 1 0.25 1\n2 0.5 0.5 0.5 0.25", "1 0 0 3 8 4",
         [(1, [0.5, 0.75, 0.5, 0.5], [], "0" * 16 + "00111100" * 2), (2, [0.5, 0.5, 0.5, 0.25], [], None)])
    yolo("keypoints", "0 .5 .5 .5 .5 0.1 0.2 0.3 0.4\n0 0 0 0 0 1 1 1 1", "0 2 0 0 100 100",
         [(0, [0.5] * 4, [0.1, 0.2, 2, 0.3, 0.4, 2], None), (0, [0] * 4, [1, 1, 2, 1, 1, 2], None)])
    yolo("keypoints with visibility", "0 .5 .5 .5 .5 0.1 0.2 0 0.3 0.4 2", "0 2 1 0 100 100",
         [(0, [0.5] * 4, [0.1, 0.2, 0, 0.3, 0.4, 2], None)])


def yolo_damaged():
    cases = {"dog 0 0 0 0": "line 1: the class is 'dog'", "1.5 0 0 0 0": "the class is '1.5'",
             "-1 0 0 0 0": "the class is '-1'",
             "\n\n5 0 0 0 0": "line 3: the class is 5, but there are only 5", "nan 0 0 0 0": "the class is 'nan'",
             "1e99 0 0 0 0": "the class is '1e99'", "1 0 0 x 0": "'x' is not a number",
             "1 0 0 0": "3 numbers follow the class",
             "1 0 0 0 0 0": "5 numbers follow the class instead of 4", "1": "0 numbers follow",
             "1 0 0 nan 0": "'nan' is not between",
             "1 12 0 0 0": "'12' is not between 0 and 1", "1 -0.5 0 0 0": "'-0.5' is not between",
             "1 0 0 0 inf": "'inf' is not"}
    refused("yolo", "yolo", list(cases), list(cases.values()), "0 0 0 5 9 9")
    refused("polygon", "yolo", ["1 0 0 1 1 0 1 1", "1 0 0 1", "1"],
            ["7 numbers follow", "3 numbers follow", "0 numbers follow"], "1 0 0 5 9 9")
    refused("pose", "yolo", ["1 0 0 1 1 0 1 3", "1 0 0 1 1"],
            ["'3' is not between 0 and 2", "4 numbers follow the class instead of 7"],
            "0 1 1 5 9 9")


# ---- time ---------------------------------------------------------------------------------------

def measure(path):
    """By CPU time, which other work on the machine changes little."""
    if path is None:
        path = folder / "large.json"
        images = [{"license": 1, "file_name": f"{k:012}.jpg", "coco_url": f"http://images/{k:012}.jpg", "height": 480,
                   "width": 640, "date_captured": "2013-11-14 17:02:52", "id": 5 * k} for k in range(20000)]
        annotations = [{"segmentation": [[round(chance.uniform(0, 640), 2) for _ in range(2 * chance.randint(8, 50))]],
                        "area": chance.uniform(0, 9000), "iscrowd": 0, "image_id": 5 * chance.randrange(20000),
                        "bbox": [round(chance.uniform(0, 300), 2) for _ in range(4)], "category_id": chance.randint(1, 90),
                        "id": k} for k in range(146000)]
        categories = [{"supercategory": "x", "id": k, "name": f"class {k}"} for k in range(1, 91)]
        path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    size = os.path.getsize(path) / 1e6
    for _ in range(3):
        ours = ask([f"time {path}"])[0]
        began = time.process_time()
        with open(path) as file:
            data = json.load(file)
        theirs = time.process_time() - began
        rates = [f"{size / seconds:.0f} MB/s" for seconds in (ours["seconds"], theirs)]
        print(f"{size:.0f} MB, {ours['objects']} objects: {rates[0]}, json.load {rates[1]}")
    from pycocotools.coco import COCO
    known = COCO()
    known.dataset = data
    with contextlib.redirect_stdout(io.StringIO()):
        known.createIndex()
    some = [a for k in sorted(known.imgs)[:ours["drawn"]] for a in known.imgToAnns[k]][:ours["drawn"]]
    began = time.process_time()
    for annotation in some:
        known.annToMask(annotation)
    each = [1e6 * seconds / ours["drawn"] for seconds in (ours["drawing"], time.process_time() - began)]
    print(f"{ours['drawn']} masks: {each[0]:.0f} us each, annToMask {each[1]:.0f} us")


if "time" in sys.argv:
    measure(Path(sys.argv[3]) if len(sys.argv) > 3 else None)
    sys.exit()
coco_files()
coco_odd()
coco_damaged()
coco_masks_damaged()
voc_files()
voc_damaged()
yolo_files()
yolo_damaged()
tap.finish()
