# SPDX-License-Identifier: Apache-2.0
"""Each example, by the command of its README, does what the README shows; and takes data of one's own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
import stoker
from conftest import picture
from PIL import Image
from ranks import in_fresh_python, on_ranks
from stoker.synth import make_scenes

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NEEDED = {"classification": "torchvision", "detection": "torchvision", "imagenet": "torchvision", "resume": "numpy",
          "segmentation": "torch", "audio": "torch", "torchrun": "torch", "trainer": "transformers"}  # fmt: skip
FOLDERS = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))


def block(name, language):
    """The first fenced block of a README in this language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (EXAMPLES / name / "README.md").read_text(), re.M | re.S)
    return next(text for called, text in found if called == language)


def run(commands, folder):
    """Runs the commands of a README where `examples` is what it is in a checkout, and returns what they print."""
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(EXAMPLES)
        # A torchaudio of another age than torch cannot be imported, and transformers would.
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text("import sys\nsys.modules['torchaudio'] = None\n")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TMPDIR": str(folder),
           "PYTHONPATH": str(folder / "site"), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}  # fmt: skip
    got = subprocess.run(["bash", "-ec", commands], cwd=folder, env=env, capture_output=True, text=True, timeout=600,
                         stdin=subprocess.DEVNULL, check=False)  # fmt: skip
    assert got.returncode == 0, got.stdout + got.stderr
    print(got.stdout)
    return got.stdout


def program(arguments, folder, said):
    """Runs an example in this process; what it prints goes to the file `said`."""
    os.chdir(folder)
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
    os.environ.update(JAX_PLATFORMS="cpu", TMPDIR=folder)
    sys.modules["torchaudio"] = None  # one of another age than torch cannot be imported, and transformers would
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


def run_forked(commands, folder):
    """The same as `run` for a single program, without importing torch once more: that takes longer than most examples."""
    (folder / "examples").symlink_to(EXAMPLES)
    python, *arguments = shlex.split(commands)
    assert python == "python"
    in_fresh_python(program, arguments, str(folder), str(folder / "said"))
    return (folder / "said").read_text()


def ranks(commands, folder, said):
    for arguments in commands:
        on_ranks(2, program, arguments, folder, said, group=False)


def run_ranks(commands, folder):
    """The same for programs under torchrun, one after the other, whose launcher imports torch in every process: each line
    begins with how it is started."""
    started = "torchrun --standalone --nproc-per-node 2 "
    lines = commands.splitlines()
    assert lines and all(line.startswith(started) for line in lines)
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(EXAMPLES)
    said = folder / "said"
    said.unlink(missing_ok=True)
    in_fresh_python(ranks, [shlex.split(line.removeprefix(started)) for line in lines], str(folder), str(said))
    return said.read_text()


def masked(text):
    """The text without what differs from machine to machine: numbers, and the checksum of weights."""
    return re.sub(r"\d+(\.\d+)?", "N", re.sub(r"weights [0-9a-f]{8}", "weights N", text))


def counts(text):
    return re.findall(r"\d+ (?:different samples of \d+|images|samples|sounds|boxes|steps|classes|processes)\b", text)


def numbers(pattern, text):
    return [float(number) for number in re.findall(pattern, text)]


def need(name):
    needed = NEEDED.get(name, name)
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")


def test_every_folder_has_a_program_and_a_readme():
    folders = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
    assert folders == FOLDERS and len(folders) == 14
    for name in folders:
        program = "load_folder.c" if name == "c" else "train.py"
        assert [path.name for path in sorted((EXAMPLES / name).glob("[!_]*"))] == sorted(["README.md", program])
        assert f"examples/{name}/{program}" in block(name, "sh")
        assert f"]({name}/README.md)" in (EXAMPLES / "README.md").read_text()


# The C program is built and run by scripts/test_install.sh, which installs the library.
@pytest.mark.parametrize("name", [name for name in FOLDERS if name not in ("c", "torchrun")])
def test_example_prints_what_its_readme_shows(name, tmp_path):
    need(name)
    # The one without a model runs as users run it: it imports little.
    said, shown = (run if name == "resume" else run_forked)(block(name, "sh"), tmp_path), block(name, "text")
    assert masked(said) == masked(shown)
    assert counts(said) == counts(shown) != [] or name == "jax"
    losses = numbers(r"loss (\S+?),?\s", said)
    if name == "resume":
        assert "the same: True" in said and not losses
    else:
        assert len(losses) >= 3 and losses[-1] < losses[0], said
    # A guess is right in a third of the cases.
    assert all(right > 60 for right in numbers(r"(\d+) % right", said)[-1:]), said
    assert all(share > 0.5 for share in numbers(r"IoU (\S+)", said)[-1:]), said
    assert all(found > 40 for found in numbers(r"found (\d+) %", said)), said


def test_torchrun_divides_the_samples_and_resumes_exactly(tmp_path):
    need("torchrun")
    whole, shown = run(block("torchrun", "sh"), tmp_path), block("torchrun", "text")
    assert masked(whole) == masked(shown) and counts(whole) == counts(shown)
    losses = numbers(r"loss (\S+)", whole)
    assert losses[-1] < losses[0]
    resumed = run_ranks(block("torchrun", ""), tmp_path)
    assert "stopped after step 8\n" in resumed and "resuming at step 8, in epoch 2\n" in resumed
    assert resumed.splitlines()[-1] == whole.splitlines()[-1]


def test_torchrun_resumes_at_the_end_of_an_epoch(tmp_path):
    need("torchrun")
    start = "torchrun --standalone --nproc-per-node 2 examples/torchrun/train.py --epochs 2"
    whole = run_ranks(start, tmp_path)
    resumed = run_ranks(f"{start} --checkpoint run.pt --stop-after 6\n{start} --checkpoint run.pt", tmp_path)
    assert "stopped after step 6\n" in resumed
    assert resumed.splitlines()[-1] == whole.splitlines()[-1]


def test_imagenet_under_torchrun(tmp_path):
    need("imagenet")
    said = run_ranks("torchrun --standalone --nproc-per-node 2 examples/imagenet/train.py --synthetic 12 --size 32 "
                     "--model squeezenet1_1 --batch-size 3 --epochs 1 --device cpu", tmp_path)  # fmt: skip
    assert "12 images of 3 classes, 2 processes, on cpu" in said and "done: 2 steps" in said


# ---- data of one's own ----


@pytest.fixture()
def train(monkeypatch, capsys, one_thread):
    """Runs an example in this process."""

    def train(name, *arguments):
        need(name)
        monkeypatch.setattr(sys, "argv", ["train.py", *map(str, arguments), "--device", "cpu"])
        runpy.run_path(str(EXAMPLES / name / "train.py"), run_name="__main__")
        return capsys.readouterr().out

    return train


def test_segmentation_of_pascal_voc_and_of_folders(tmp_path, train):
    voc = tmp_path / "VOCdevkit" / "VOC2012"
    for folder in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (voc / folder).mkdir(parents=True)
    for number in range(6):
        picture(number, 70, 50 + number).save(voc / "JPEGImages" / f"{number}.jpg")
        if number == 5:
            continue  # most of VOC's images have no mask
        mask = np.full((50 + number, 70), 255 if number == 0 else number, np.uint8)
        image = Image.fromarray(mask, "L")
        image.putpalette([0] * 768)
        image.save(voc / "SegmentationClass" / f"{number}.png")
    (voc / "ImageSets" / "Segmentation" / "train.txt").write_text("0\n1\n2\n3\n4\n")
    options = ["--epochs", 1, "--batch-size", 5, "--workers", 1]
    report = r"epoch 1: 5 images, loss \d\.\d+, mean IoU 0\.\d\d\n"
    assert re.fullmatch(report, train("segmentation", "--voc", tmp_path, *options))
    folders = ["--images", voc / "JPEGImages", "--masks", voc / "SegmentationClass", "--classes", 5]
    with pytest.raises(stoker.StokerError, match="image has no file here"):
        train("segmentation", *folders, *options)
    (voc / "JPEGImages" / "5.jpg").unlink()
    assert re.fullmatch(report, train("segmentation", *folders, *options))
    with pytest.raises(SystemExit, match="2"):
        train("segmentation", "--images", tmp_path)


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    """Images whose classes have gaps in their numbers, one without boxes, and a crowd."""
    root = make_scenes(tmp_path_factory.mktemp("coco") / "scenes", 8)
    found = json.loads((root / "instances.json").read_text())
    for one in [*found["categories"]]:
        one["id"] *= 20
    for one in found["annotations"]:
        one["category_id"] *= 20
    found["annotations"] = [one for one in found["annotations"] if one["image_id"] != 3]
    kept = len(found["annotations"])
    found["annotations"].append({**found["annotations"][0], "iscrowd": 1})
    (root / "own.json").write_text(json.dumps(found))
    return root, kept


def test_detection_of_boxes_like_cocos(coco, train):
    root, kept = coco
    said = train("detection", "--images", root / "images", "--boxes", root / "own.json", "--epochs", 1, "--workers", 1)
    assert re.fullmatch(rf"epoch 1: 8 images, loss \d+\.\d+\nfound \d+ % of {kept} boxes\n", said)
    with pytest.raises(SystemExit, match="2"):
        train("detection", "--images", root / "images")


def test_detection_with_a_model_of_torchvision(coco, train):
    root, kept = coco
    said = train("detection", "--images", root / "images", "--boxes", root / "own.json", "--epochs", 1, "--workers", 1,
                 "--model", "ssdlite320_mobilenet_v3_large")  # fmt: skip
    assert re.fullmatch(rf"epoch 1: 8 images, loss \d+\.\d+\nfound \d+ % of {kept} boxes\n", said)


def test_audio_of_a_folder(tmp_path, train):
    for number in range(6):
        path = tmp_path / "ab"[number % 2] / f"{number}.wav"
        path.parent.mkdir(exist_ok=True)
        with wave.open(str(path), "wb") as file:
            file.setparams((1 + number % 2, 2, 8000, 0, "NONE", ""))
            file.writeframes(np.arange(16000, dtype="<i2").tobytes())
    said = train("audio", "--data", tmp_path, "--epochs", 1, "--seconds", 0.5)
    assert re.fullmatch(r"epoch 1: 6 sounds, loss \d\.\d+, \d+ % right\n", said)
