# SPDX-License-Identifier: Apache-2.0
"""The examples, the demo and the program run as a user runs them."""
import functools
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import picture
from packing import PROGRAM, stoker

from stoker.synth import Painter, make_folder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("images") / "set", count=24, seed=5, classes=3)


def run(*command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600,
                          stdin=subprocess.DEVNULL, **more)


@pytest.fixture()
def example(monkeypatch, capsys, one_thread):
    """Runs an example in this process, since importing torch takes longer than the training."""

    def run_it(name, *arguments):
        monkeypatch.setattr(sys, "argv", ["train.py", *map(str, arguments)])
        try:
            runpy.run_path(str(ROOT / "examples" / name / "train.py"), run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                raise
        return capsys.readouterr().out

    return run_it


@pytest.fixture()
def train(example):
    pytest.importorskip("torchvision")
    return functools.partial(example, "imagenet")


def test_train_like_resumes_exactly(folder, example):
    said = example("resume", folder)
    assert "6 steps, 24 images" in said
    assert "resumed run is the same: True" in said


def test_training_resumes_with_the_same_weights(folder, tmp_path, train):
    common = [folder, "--model", "resnet18", "--size", 32, "--batch-size", 8, "--epochs", 2, "--device", "cpu", "--mix"]
    whole = train(*common)
    saved = ["--checkpoint", tmp_path / "checkpoint.pt"]
    first = train(*common, *saved, "--stop-after", 4)
    assert "step 4: loss" in first and "done" not in first
    second = train(*common, *saved)
    assert "resuming at step 4, in epoch 1" in second
    weights = [re.search(r"done: 6 steps.*weights (\w+)", got).group(1) for got in (whole, second)]
    assert weights[0] == weights[1]


def test_training_wants_images(train):
    with pytest.raises(SystemExit, match="2"):
        train()


def test_readme_python_runs(folder):
    """The first Python block of the README and of the loader's page, on a small folder."""
    blocks = [re.search(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S).group(1)
              for page in ("README.md", "docs/loader.md")]
    block = "\n".join(blocks)
    block = block.replace('"imagenet/train"', repr(str(folder))).replace("batch_size=256", "batch_size=8")
    got = run(sys.executable, "-c", block)
    assert got.returncode == 0, got.stderr


def test_documented_c_is_the_example():
    """The C block of docs/c.md is taken from the example that the tests build and run."""
    block = re.search(r"```c\n(.*?)```", (ROOT / "docs" / "c.md").read_text(), re.S).group(1)
    example = {line.strip() for line in (ROOT / "examples" / "c" / "load_folder.c").read_text().splitlines()}
    assert [line for line in block.splitlines() if line.strip() and line.strip() not in example] == []


def test_readme_plot_is_what_its_script_draws():
    script = ROOT / "docs" / "img" / "training.py"
    assert runpy.run_path(str(script))["draw"]() == script.with_suffix(".svg").read_text(), f"python {script}"


@pytest.fixture(scope="module")
def painter():
    return Painter(1)


def test_painter_is_a_function_of_seed_and_number(painter):
    first, second = painter, Painter(1)
    assert first.picture(7) == second.picture(7)
    assert first.picture(7) != first.picture(8)
    assert first.picture(7) != Painter(4).picture(7)


def test_painted_set_is_like_imagenet(painter):
    """Bytes and sizes near those of ImageNet's files, most of them 4:4:4, some 4:2:0."""
    import io

    from PIL import Image, JpegImagePlugin

    pictures = [painter.picture(n) for n in range(100)]
    images = [Image.open(io.BytesIO(p)) for p in pictures]
    mean_bytes = sum(map(len, pictures)) / len(pictures)
    mean_area = sum(i.width * i.height for i in images) / len(images)
    sampling = [JpegImagePlugin.get_sampling(i) for i in images]
    assert 90_000 < mean_bytes < 130_000
    assert 400 * 300 < mean_area < 600 * 450
    assert 0.65 < sampling.count(0) / len(sampling) < 0.88
    assert 0.1 < sampling.count(2) / len(sampling) < 0.3
    assert any(i.mode == "L" for i in images) and any(i.height > i.width for i in images)


def test_make_folder_keeps_what_is_there_and_spares_what_is_not_its_own(tmp_path):
    root = make_folder(tmp_path / "a", count=3, seed=1)
    before = {p: p.stat().st_mtime_ns for p in root.rglob("*.jpg")}
    assert len(before) == 3
    make_folder(root, count=3, seed=1)
    assert {p: p.stat().st_mtime_ns for p in root.rglob("*.jpg")} == before
    make_folder(root, count=2, seed=1)
    assert len(list(root.rglob("*.jpg"))) == 2
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "precious.jpg").write_bytes(b"x")
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "own", count=1)
    assert (tmp_path / "own" / "precious.jpg").read_bytes() == b"x"


def test_version():
    got = stoker("--version")
    assert got.returncode == 0 and re.fullmatch(r"stoker \d+\.\d+\.\d+\n", got.stdout)


@pytest.mark.parametrize("arguments", [["--help"], ["help"], ["help", "bench"], ["bench", "--help"], ["help", "demo"]])
def test_help(arguments):
    got = stoker(*arguments)
    assert got.returncode == 0 and "usage: stoker" in got.stdout and not got.stderr


@pytest.mark.parametrize("arguments, said", [
    (["bnech"], "Did you mean 'bench'?"),
    (["frobnicate"], "stoker help"),
    (["--verzion"], "no option"),
    (["bench"], "which dataset"),
    (["bench", "a", "b"], "unexpected argument 'b'"),
    (["bench", "a", "--worker", "2"], "Did you mean '--workers'?"),
    (["bench", "a", "--workers", "none"], "--workers must be a whole number from 1 to 1024, not 'none'"),
    (["bench", "a", "--workers=0"], "from 1 to 1024, not '0'"),
    (["bench", "a", "--seconds"], "--seconds requires a value: a number of seconds from 0.1 to 3600"),
    (["info", "a", "b"], "unexpected argument 'b'"),
])
def test_usage_errors_exit_2_with_one_sentence(arguments, said):
    got = stoker(*arguments)
    assert got.returncode == 2 and said in got.stderr and got.stderr.count("\n") == 1 and not got.stdout


def test_no_command_shows_help_and_exits_2():
    got = stoker()
    assert got.returncode == 2 and "usage: stoker" in got.stderr and not got.stdout


def test_info_lists_codecs_kernels_and_ops():
    got = stoker("info")
    assert got.returncode == 0, got.stderr
    words = ("CPUs", "jpeg", "kernels", "random_resized_crop", "normalize", "HDF5", "LMDB", "libcurl", "zstd")
    for word in (*words, "libdeflate", "libsndfile", "s3://"):
        assert word.lower() in got.stdout.lower(), word


def test_bench_measures_and_names_the_limit(folder):
    got = stoker("bench", folder, "--seconds", "1", "--workers", "2", "--batch", "8")
    assert got.returncode == 0, got.stderr
    for word in ("24 samples, 3 classes", "read", "decode", "pipeline", "2 workers", "The limit is"):
        assert word in got.stdout, got.stdout
    assert not got.stderr  # no terminal, no bar


def test_bench_counts_bad_files_and_goes_on(folder, tmp_path):
    import shutil
    shutil.copytree(folder, tmp_path / "set")
    victim = sorted((tmp_path / "set").rglob("*.jpg"))[0]
    victim.write_bytes(b"not an image")
    got = stoker("bench", tmp_path / "set", "--seconds", "1", "--batch", "24")  # each batch is the whole set
    assert got.returncode == 0, got.stderr
    assert "bad samples" in got.stdout and victim.name in got.stdout


@pytest.mark.parametrize("file", [False, True], ids=["folder", "file"])
@pytest.mark.parametrize("form", ["tar", "tfrecord", "lmdb", "hdf5", "npy"])
def test_bench_measures_what_pack_wrote(tmp_path, form, file):
    for i in range(6):
        (tmp_path / "tree" / f"c{i % 2}").mkdir(parents=True, exist_ok=True)
        picture(i, 48, 40).save(tmp_path / "tree" / f"c{i % 2}" / f"{i}.jpg")
    got = stoker("pack", tmp_path / "tree", tmp_path / "packed", "--format", form)
    assert got.returncode == 0, got.stderr
    endings = (".tar", ".tfrecord", ".mdb", ".h5", "image.npy")
    data = next(p for p in (tmp_path / "packed").iterdir() if p.name.endswith(endings)) if file else tmp_path / "packed"
    given = ("bench", data, "--seconds", "0.2", "--batch", "2")
    got = stoker(*given)
    assert got.returncode == 0 and not got.stderr, got.stderr
    assert "6 samples" in got.stdout and "not measured" not in got.stdout and "MB/s, one sample" in got.stdout
    measured = json.loads(stoker(*given, "--json").stdout)
    assert measured["read"]["files_per_second"] > 0 and measured["read"]["error"] is None
    assert measured["read"]["failed"] == measured["decode"]["failed"] == 0
    assert (measured["decode"]["images_per_second"] is None) == (form in ("hdf5", "npy"))  # those hold pixels
    assert measured["pipelines"][0]["samples_per_second"] > 0


@pytest.mark.parametrize("form", ["folder", "tar", "tfrecord"])
def test_bench_measures_sounds(tmp_path, form):
    soundfile = pytest.importorskip("soundfile")
    for i in range(6):
        (tmp_path / "tree" / f"c{i % 2}").mkdir(parents=True, exist_ok=True)
        soundfile.write(tmp_path / "tree" / f"c{i % 2}" / f"{i}.wav", np.sin(np.arange(4000 + i)), 16000)
    data = tmp_path / "tree"
    if form != "folder":
        assert stoker("pack", data, tmp_path / "packed", "--format", form).returncode == 0
        data = tmp_path / "packed"
    got = stoker("bench", data, "--seconds", "0.2", "--batch", "2")
    assert got.returncode == 0 and "not measured" not in got.stdout and "MB/s, one sample" in got.stdout, got
    # A field of a TFRecord does not say that its bytes are a sound.
    assert "whole sounds, one core" in got.stdout or form == "tfrecord"


@pytest.mark.parametrize("data, pipeline, said", [
    ("absent", None, "absent"),
    (None, "resize(size=256", "resize"),
    (None, "no_such_op", "no_such_op"),
])
def test_bench_fails_with_a_sentence(folder, data, pipeline, said):
    more = ["--pipeline", pipeline] if pipeline else []
    got = stoker("bench", data or folder, *more)
    assert got.returncode == 1 and said in got.stderr and got.stderr.startswith("stoker: ")


def test_full_disk_is_a_failure():
    with open("/dev/full", "w") as full:
        got = subprocess.run([str(PROGRAM), "--help"], stdout=full, stderr=subprocess.PIPE, timeout=600)
    assert got.returncode == 1


def test_demo_shows_both_loaders(folder):
    pytest.importorskip("torchvision")
    env = dict(os.environ, NO_COLOR="1")
    got = stoker("demo", "--data", folder, "--workers", "1", "--batch-size", "8", env=env)
    assert got.returncode == 0, got.stderr
    for word in ("torch DataLoader", "Stoker", "images/s", "first batch", "CPU s per 1,000", "memory", "decode"):
        assert word in got.stdout, got.stdout
    assert "\033" not in got.stdout and "\r" not in got.stdout


def test_demo_as_json(folder):
    got = stoker("demo", "--data", folder, "--workers", "1", "--batch-size", "8", "--json")
    assert got.returncode == 0, got.stderr
    shown = json.loads(got.stdout)
    assert shown["stoker"]["images"] == 24 and shown["stoker"]["images_per_second"] > 0
    assert set(shown["stage_shares"]) == {"read", "decode", "augment", "slot"} and "torch" in shown


def test_demo_without_images_is_one_sentence(tmp_path):
    got = stoker("demo", "--data", tmp_path)
    assert got.returncode == 1 and "holds no images" in got.stderr and "Traceback" not in got.stderr
    got = stoker("demo", "--data", tmp_path / "missing")
    assert got.returncode == 1 and got.stderr == f"stoker: demo: there is no folder {tmp_path / 'missing'}\n"
