# SPDX-License-Identifier: Apache-2.0
"""What `stoker run` puts into Python processes sees loaders, workers and steps, and does not change the program."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections import Counter

import pytest
from watching import (
    ARCHIVE,
    COLLATE,
    DECODE,
    DECOMPRESS,
    DESCENT,
    DISCARDED,
    EPOCH,
    FETCH,
    FIRST,
    ITER,
    NETWORK,
    NEXT,
    OPENED,
    PUT,
    READ,
    REDUCED,
    SHARED,
    SLOWEST,
    STEP,
    TRAINING,
    TRANSFORM,
    Run,
    environment,
    run_in,
)

TRAIN = f"""
import hashlib, random, sqlite3, sys, zlib
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
{DESCENT}

class Data(Dataset):
    def __init__(self):
        self.unpack = zlib.decompress       # pickled by its name for workers that are not forked
        self.names = ["name"] * 500
        self.file = None
        self.rng = np.random.default_rng(1)  # the same in all workers

    def __len__(self):
        return 44

    def __getitem__(self, index):
        with open(__file__, "rb") as file:
            size = len(file.read())
        self.unpack(zlib.compress(b"1" * 4000))
        zlib.decompress(zlib.compress(b"1" * 4000))
        sqlite3.connect(":memory:").close()
        return torch.rand(3) + random.random() + np.random.rand() + self.rng.random(), index, size

class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for number in range(22 if info else 44):
            yield torch.rand(3), number, 0

if __name__ == "__main__":
    workers, method, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    if sys.argv[4] == "torchdata":
        from torchdata.stateful_dataloader import StatefulDataLoader as DataLoader
    torch.manual_seed(3); random.seed(4); np.random.seed(5)
    few = DataLoader(Data(), 20)
    print([batch[0].sum().item() for batch in few])
    loader = DataLoader(
        Stream() if kind == "iterable" else Data(),
        batch_size=8, shuffle=None if kind == "iterable" else True,
        num_workers=workers, persistent_workers=kind == "persistent",
        multiprocessing_context=method if workers else None)
    model = torch.nn.Linear(3, 1)
    optimizer = (Descent if workers else torch.optim.SGD)(model.parameters(), lr=0.01)
    for epoch in range(int(sys.argv[5])):
        for values, index, size in loader:
            optimizer.zero_grad()
            loss = model(values.float()).sum()
            loss.backward()
            optimizer.step()
            print(index.tolist(), size.tolist(), values.tolist(), loss.item())
    with torch.no_grad():
        next(iter(few))
    state = (random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes())
    print(hashlib.sha256(repr(state).encode()).hexdigest())
    sys.exit(7)
"""


@pytest.mark.parametrize(
    ("workers", "method", "kind", "library", "epochs"),
    [
        (0, "-", "map", "torch", 2),
        (2, "fork", "map", "torch", 2),
        (1, "spawn", "persistent", "torch", 2),  # each worker of these two imports torch
        (2, "forkserver", "map", "torch", 1),
        (2, "fork", "iterable", "torch", 2),
        (2, "fork", "iterable", "torchdata", 2),
    ],
)
def test_the_program_is_the_same_and_every_batch_is_seen(tmp_path, prepared, workers, method, kind, library, epochs):
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    plain = run_in(None, script, workers, method, kind, library, epochs)
    run = Run(prepared, run_in(prepared, script, workers, method, kind, library, epochs))
    assert run.out.stdout == plain.stdout
    assert run.out.returncode == plain.returncode == 7, run.out.stderr
    assert run.out.stderr == plain.stderr
    batches = 6
    trainer = run.trainer
    assert not any("watch.error" in each.said for each in run.process)
    assert [event.batch for event in trainer.of(NEXT, 1)] == list(range(batches)) * epochs
    flags = [event.b & 0xFF for event in trainer.of(NEXT, 1)]
    assert [bool(flag & FIRST) for flag in flags] == ([True] + [False] * (batches - 1)) * epochs
    assert all(flag & TRAINING for flag in flags) and not trainer.of(NEXT)[-1].b & TRAINING
    assert len(trainer.of(EPOCH, 1)) == epochs
    assert len(trainer.of(STEP)) == epochs * batches
    started = [event.a for event in trainer.of(ITER, 1)]
    assert started == ([workers, 0] if kind == "persistent" else [workers] * epochs)
    assert len(run.workers) == sum(started)
    made = run.made(FETCH, 1)
    assert sorted(event.batch for event in made) == sorted(list(range(batches)) * epochs)
    assert sum(event.a for event in made) == 44 * epochs and all(event.dur > 0 for event in made)
    assert len(run.made(COLLATE, 1)) == epochs * batches
    assert len(run.made(PUT, 1)) == (epochs * batches if workers else 0)
    shared = run.made(SHARED, 1)  # of the values; torch.tensor() makes those of numbers
    assert [event.a for event in shared] == ([1] * epochs * batches if workers else [])
    for each in run.workers:
        assert each.said["parent"] == str(trainer.pid) and each.said["worker.loader"] == "1"
        assert each.said["worker.id"] in ("0", "1")
    if kind == "iterable":
        firsts = [each.said["worker.samples"].split() for each in run.workers]
        assert {len(samples) for samples in firsts} == {16}
        assert len({digest for samples in firsts for digest in samples}) == 16 * len(firsts)
    else:
        assert {each.said["worker.random"].split()[1] for each in run.workers} == ({"dataset.rng"} if workers else set())
        assert len({each.said["worker.random"] for each in run.workers}) == bool(workers)
        assert sum(event.a for event in run.made(ARCHIVE, 1)) == 44 * epochs
        assert sum(event.a for event in run.made(OPENED, 1)) == 44 * epochs
        for stage in (READ, DECOMPRESS):
            assert {event.batch for event in run.made(stage, 1)} == set(range(batches))
        slowest = run.made(SLOWEST, 1)
        assert len(slowest) == epochs * batches and all(event.a < 44 for event in slowest)
    for event in made:
        parts = [e for e in run.made(READ, 1) + run.made(COLLATE, 1) if e.start == event.start]
        assert sum(part.dur for part in parts) <= event.dur
    texts = [each.said["loader.1.operators"].split("|") for each in (run.workers or [trainer]) if "loader.1.operators" in each.said]
    costs = [(*map(int, cost[:3]), cost[3]) for text in texts for cost in (entry.split(" ", 3) for entry in text[1:])]
    assert {name for *_, name in costs} == ({"collate"} if kind == "iterable" else {"collate", "open .py", "read .py", "zlib.decompress"})
    assert sum(ns for _, _, ns, _ in costs) <= sum(int(text[0].split()[1]) for text in texts)
    if not workers:
        assert texts[0][0].startswith(f"{44 * epochs} ") and (2, 44 * epochs, "zlib.decompress") in [(a, b, d) for a, b, _, d in costs]
    said = trainer.said
    assert said["loader.1.workers"] == str(workers) and said["loader.1.batch_size"] == "8"
    assert said["loader.1.file"] == str(script)
    assert said["loader.1.source"].startswith("loader = DataLoader(\\n") and said["loader.1.source"].endswith("None)")
    assert (said["loader.0.batches"], said["loader.0.objects"]) == ("3", "500")
    assert said["loader.1.iterable"] == str(int(kind == "iterable"))
    assert (said["loader.1.batch_bytes"], said["loader.1.tensors"]) == (str(8 * (12 + 8 + 8)), "3")
    assert said["loader.1.class"] == ("torch.DataLoader" if library == "torch" else "torchdata.StatefulDataLoader")
    if workers:
        assert said["loader.1.start_method"] == method


def test_a_resumed_epoch(watch):
    """torchdata makes the first batches again inside of iter(), where no training waits for them."""
    run = watch(
        """
        import torch
        from torchdata.stateful_dataloader import StatefulDataLoader
        def loader():
            return StatefulDataLoader(list(range(40)), batch_size=4, num_workers=1, multiprocessing_context="fork")
        first = loader()
        for number, batch in enumerate(first):
            if number == 5:
                state = first.state_dict()
                break
        second = loader()
        second.load_state_dict(state)
        print([batch.tolist()[0] for batch in second])
        """
    )
    assert run.out.returncode == 0, run.out.stderr
    assert run.out.stdout == "[24, 28, 32, 36]\n"
    assert "watch.error" not in run.trainer.said
    for loader, batches in ((0, [0, 1, 2, 3, 4, 5]), (1, [6, 7, 8, 9])):
        calls = run.trainer.of(NEXT, loader)
        assert [event.batch for event in calls] == batches
        assert [event.batch for event in calls if event.b & FIRST] == batches[:1]


def test_stages_and_handles(watch, even_tree):
    run = watch(
        """
        import gzip, http.server, io, sys, threading, time, urllib.request
        from torchvision.io import read_image
        import numpy as np, torch, torchvision
        from PIL import Image
        from torchvision import transforms as T
        from torch.utils.data import DataLoader, Dataset

        class Slow:
            def __call__(self, image):
                time.sleep(0.002)
                return image

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                time.sleep(0.003)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"x" * 1000)
            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        packed = gzip.compress(bytes(300000))
        buffer = io.BytesIO()
        np.savez_compressed(buffer, a=np.zeros(50000))

        class Mine(Dataset):
            def __init__(self):
                self.handle = open(__file__, "rb")
                self.transform = Slow()
            def __len__(self):
                return 4
            def __getitem__(self, index):
                urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read()
                assert len(gzip.GzipFile(fileobj=io.BytesIO(packed)).read()) == 300000
                np.load(io.BytesIO(buffer.getvalue()))["a"]
                read_image(sys.argv[2])
                with open(__file__) as text:
                    text.readlines()
                return self.transform(index)

        folder = torchvision.datasets.ImageFolder(sys.argv[1], T.Compose([T.Resize(32), T.ToTensor()]))
        for batch in DataLoader(folder, 5, collate_fn=lambda rows: rows): pass
        for batch in DataLoader(Mine(), 2): pass
        print(open is io.open, type(open(__file__, "rb")).__name__, urllib.request.urlopen.__module__)
        """,
        even_tree,
        next(iter(sorted(even_tree.rglob("*.jpg")))),
    )
    assert run.out.returncode == 0, run.out.stderr
    assert run.out.stdout == "True BufferedReader urllib.request\n"
    trainer = run.trainer
    for kind in (READ, DECODE, TRANSFORM, COLLATE, OPENED):
        assert {event.batch for event in trainer.of(kind)} == {0, 1, 2, 3}, kind
    assert sum(event.a for event in trainer.of(OPENED)) == 20
    kib = sum(os.stat(path).st_size for path in even_tree.rglob("*.*")) >> 10
    # On a busy machine some samples stand for their neighbours.
    assert 0.6 * kib < sum(event.b for event in trainer.of(OPENED)) < 1.5 * kib
    for kind in (READ, NETWORK, DECOMPRESS, DECODE, TRANSFORM):
        assert {event.batch for event in trainer.of(kind, 1)} == {0, 1}, kind
    network, transform = trainer.of(NETWORK, 1), trainer.of(TRANSFORM, 1)
    assert sum(event.dur for event in network) > 3_000_000
    assert sum(event.dur for event in transform) > 2_000_000
    assert sum(event.b for event in transform) * 1000 < sum(event.dur for event in transform)
    assert trainer.said["loader.0.transform"] == "Compose(Resize, ToTensor)"
    assert "an open file at dataset.handle" in trainer.said["loader.1.handles"]
    assert "loader.0.handles" not in trainer.said


def test_a_slow_sample_takes_no_time_from_other_stages(watch):
    """One sample of four is measured, and it is the one with the slow decompression."""
    run = watch(
        """
        import sys, time, torch, zlib
        from torch.utils.data import DataLoader, Dataset
        packed = zlib.compress(bytes(100_000_000))
        class Slow:
            def __call__(self, index):
                time.sleep(0.003)
                return index
        class Data(Dataset):
            def __init__(self):
                self.transform = Slow()
            def __len__(self):
                return 4
            def __getitem__(self, index):
                if index == 0:
                    zlib.decompress(packed)
                return self.transform(index)
        sys.modules["_stoker_watch"]._every = 64
        for batch in DataLoader(Data(), 4): pass
        """
    )
    assert run.out.returncode == 0, run.out.stderr
    (fetch,), (transform,), (slow,) = (run.trainer.of(kind) for kind in (FETCH, TRANSFORM, DECOMPRESS))
    assert transform.dur >= 3_000_000 and slow.dur > transform.dur and transform.dur + slow.dur <= fetch.dur
    assert transform.a == 4


def test_work_on_data_that_are_cropped_away(watch):
    """Steps in a list are transforms too; before a crop they work on more than the sample has."""
    run = watch(
        """
        import time
        import numpy as np, torch
        from PIL import Image
        from torchvision import transforms as T
        from torch.utils.data import DataLoader, Dataset

        class Slow:
            def __call__(self, data):
                time.sleep(0.003)
                return data

        class Crop:
            def __call__(self, data):
                return data[:1000]

        class Sounds(Dataset):
            def __init__(self, *transforms):
                self.transforms = transforms
            def __len__(self):
                return 8
            def __getitem__(self, index):
                sound = np.zeros(10000, np.float32)
                for transform in self.transforms:
                    sound = transform(sound)
                return torch.from_numpy(sound)

        class Images(Dataset):
            def __init__(self, *steps):
                self.transform = T.Compose(steps)
            def __len__(self):
                return 8
            def __getitem__(self, index):
                return self.transform(Image.new("RGB", (100, 100)))

        class Spectrum:
            def __call__(self, data):
                return data.reshape(100, 100).mean(0)

        sets = (Sounds(Slow(), Crop()), Sounds(Crop(), Slow()), Sounds(Slow(), Slow(), Spectrum()),
                Images(Slow(), T.CenterCrop(20), T.ToTensor()), Images(T.CenterCrop(20), Slow(), T.ToTensor()))
        loaders = [DataLoader(data, 4) for data in sets]
        for loader in loaders:
            for batch in loader: pass
        transform = sets[-1].transform
        print(batch.shape, type(transform), [type(step).__name__ for step in transform.transforms])
        """
    )
    assert run.out.returncode == 0, run.out.stderr
    assert run.out.stdout.startswith("torch.Size([4, 3, 20, 20]) <class 'torchvision.transforms.transforms.Compose'>")
    assert run.out.stdout.endswith("['CenterCrop', 'Slow', 'ToTensor']\n")
    trainer = run.trainer
    assert "watch.error" not in trainer.said
    assert trainer.said["loader.0.transform"] == "tuple(Slow, Crop)"
    assert trainer.of(TRANSFORM, 2) and not trainer.of(DISCARDED, 2)  # means, for which everything was needed
    assert not trainer.of(REDUCED, 2)
    for loader, kept in ((0, 0.1), (1, 1), (3, 0.04), (4, 1)):
        transform, lost = trainer.of(TRANSFORM, loader), trainer.of(DISCARDED, loader)
        assert [event.batch for event in transform] == [event.batch for event in lost] == [0, 1]
        assert all(event.dur > 12_000_000 for event in transform)
        assert all(event.a == TRANSFORM for event in lost)
        share = sum(event.dur for event in lost) / sum(event.dur for event in transform)
        assert share <= 1.001 - kept
        assert share >= 0.1 * (1 - kept)  # the other steps take long on a busy machine
        smaller = trainer.of(REDUCED, loader)  # by the crop, which takes no time
        assert [event.batch for event in smaller] == [0, 1]
        assert 0 < sum(event.dur for event in smaller) < sum(event.dur for event in transform)


def test_stokers_loader(watch, even_tree):
    run = watch(
        """
        import sys, time, torch, stoker
        from stoker import transforms as T

        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 40
            def __getitem__(self, index):
                time.sleep(0.001)
                return torch.rand(3, 64, 64), index

        if __name__ == "__main__":
            images = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.CenterCrop(32), T.ToTensor()]))
            for batch in stoker.DataLoader(images, batch_size=5, num_workers=2): pass
            for batch in stoker.DataLoader(Data(), batch_size=8, num_workers=2): pass
            for batch in stoker.DataLoader(Data(), batch_size=8, num_workers=1, multiprocessing_context="spawn"): pass
            for batch in stoker.DataLoader(Data(), batch_size=8): pass
        """,
        even_tree,
    )
    assert run.out.returncode == 0, run.out.stderr
    trainer = run.trainer
    assert "watch.error" not in trainer.said
    assert [trainer.said[f"loader.{n}.native"] for n in range(4)] == ["1", "0", "0", "0"]
    assert [event.batch for event in trainer.of(NEXT)] == [0, 1, 2, 3]
    for kind in (FETCH, READ, DECODE, TRANSFORM):
        assert len(trainer.of(kind)) == 4
    assert int(trainer.said["loader.0.batch_bytes"]) > 5 * 3 * 32 * 32
    for loader in (1, 2, 3):
        assert [event.batch for event in trainer.of(NEXT, loader)] == list(range(5))
        made = run.made(FETCH, loader)
        assert sorted(event.batch for event in made) == list(range(5))
        assert all(event.a == 8 and event.dur > 8_000_000 for event in made)
        assert len(run.made(COLLATE, loader)) == len(run.made(SLOWEST, loader)) == 5
        assert len(run.made(PUT, loader)) == (0 if loader == 3 else 5)
    assert Counter(each.said["worker.loader"] for each in run.workers) == {"1": 2, "2": 1}


def test_ranks(tmp_path, prepared):
    script = tmp_path / "ranks.py"
    script.write_text(
        textwrap.dedent(
            """
            import torch, torch.distributed as dist
            from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
            dist.init_process_group("gloo")
            data = TensorDataset(torch.rand(64, 3))
            for batch in DataLoader(data, 4, sampler=DistributedSampler(data)): pass
            dist.barrier()    # a rank that leaves at once fails the other one, which may still be connecting
            dist.destroy_process_group()
            """
        )
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", str(script)]
    out = subprocess.run(command, env=environment(prepared), capture_output=True, text=True, timeout=600, check=False)
    run = Run(prepared, out)
    assert out.returncode == 0, out.stderr
    assert sorted((each.said["rank"], each.said["local_rank"]) for each in run.trainers) == [("0", "0"), ("1", "1")]
    for each in run.trainers:
        assert each.said["world_size"] == "2" and len(each.of(NEXT)) == 8 and each.said["loader.0.shuffle"] == "1"


def test_frameworks(watch):
    run = watch(
        """
        import logging, sys, tempfile, warnings
        sys.modules["torchaudio"] = None    # it may refuse this torch, and transformers would import it
        import torch
        from torch.utils.data import DataLoader, Dataset
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)
        class Data(Dataset):
            def __len__(self):
                return 24
            def __getitem__(self, index):
                return {"x": torch.ones(3), "labels": torch.ones(1)}
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(3, 1)
            def forward(self, x, labels=None):
                out = self.layer(x)
                return {"loss": (out - labels).square().mean(), "logits": out}
        import lightning
        class Lit(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = Net()
            def training_step(self, batch, number):
                return self.net(**batch)["loss"]
            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)
        here = tempfile.mkdtemp()
        lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                          enable_progress_bar=False, enable_model_summary=False, default_root_dir=here).fit(
            Lit(), DataLoader(Data(), 4, num_workers=1))
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=True)
        net = Net()
        net, optimizer, loader = accelerator.prepare(
            net, torch.optim.SGD(net.parameters(), lr=0.1), DataLoader(Data(), batch_size=3, num_workers=1))
        for batch in loader:
            accelerator.backward(net(**batch)["loss"]); optimizer.step()
        from transformers import Trainer, TrainingArguments
        arguments = TrainingArguments(here, num_train_epochs=1, per_device_train_batch_size=2, report_to=[],
                                      use_cpu=True, disable_tqdm=True, save_strategy="no", dataloader_num_workers=1)
        Trainer(Net(), arguments, train_dataset=Data()).train()
        """,
    )
    assert run.out.returncode == 0, run.out.stderr[-3000:]
    trainer = run.trainer
    assert "watch.error" not in trainer.said
    by_size = {trainer.said[f"loader.{n}.batch_size"]: n for n in range(8) if f"loader.{n}.batch_size" in trainer.said}
    for size, batches in (("4", 6), ("3", 8), ("2", 12)):
        number = by_size[size]
        assert len(trainer.of(NEXT, number)) >= batches
        assert len(run.made(FETCH, number)) >= batches
        assert trainer.said[f"loader.{number}.file"].endswith("program.py")
    assert "DataLoader(Data(), 4" in trainer.said[f"loader.{by_size['4']}.source"]
    assert "DataLoader(Data(), batch_size=3" in trainer.said[f"loader.{by_size['3']}.source"]
    assert len(trainer.of(STEP)) == 26
