# SPDX-License-Identifier: Apache-2.0
"""More dataset classes as training code has them, for test_own_datasets_equal.py: archives, arrays, streams, captions,
samplers and collate functions. They are written without any thought of Stoker."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import tarfile
import zipfile
from collections import Counter

import numpy as np
import torch
import torchvision.transforms as T
import torchvision.transforms.functional as TF
from own_files import COUNT, photographs
from own_images import MEAN, STD
from PIL import Image
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, IterableDataset, Sampler, default_collate, get_worker_info
from torchvision.transforms import v2

# ---- archives and arrays ----


class LmdbImages(Dataset):
    def __init__(self, root):
        import lmdb

        self.path = str(root / "images.lmdb")
        if not (root / "images.lmdb").exists():
            with lmdb.open(self.path, map_size=1 << 26) as env, env.begin(write=True) as txn:
                for n, path in enumerate(photographs(root)):
                    txn.put(f"{n:08}".encode(), path.read_bytes())
        self.env = None
        self.transform = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor(),
                                    T.Normalize(MEAN, STD)])  # fmt: skip

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        if self.env is None:
            import lmdb

            self.env = lmdb.open(self.path, readonly=True, lock=False, readahead=False)
        with self.env.begin(write=False) as txn:
            buf = io.BytesIO(txn.get(f"{index:08}".encode()))
        return self.transform(Image.open(buf).convert("RGB")), index


class Hdf5Images(Dataset):
    def __init__(self, root):
        import h5py

        self.path = root / "images.h5"
        if not self.path.exists():
            with h5py.File(self.path, "w") as file:
                file["images"] = np.load(root / "arrays.npy")
                file["labels"] = np.arange(COUNT) % 5
        with h5py.File(self.path, "r") as file:
            self.length = len(file["labels"])
        self.file = None
        self.transform = v2.Compose([v2.ToImage(), v2.RandomCrop(28), v2.RandomHorizontalFlip(),
                                     v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])  # fmt: skip

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.file is None:
            import h5py

            self.file = h5py.File(self.path, "r", swmr=True)
        return self.transform(self.file["images"][index]), int(self.file["labels"][index])


class ZipImages(Dataset):
    def __init__(self, root):
        self.path = root / "images.zip"
        with zipfile.ZipFile(self.path) as archive:
            self.names = sorted(archive.namelist())
        self.handles = {}
        self.transform = T.Compose([T.Resize(40), T.CenterCrop(36), T.TrivialAugmentWide(), T.RandomCrop(32),
                                    T.ToTensor()])  # fmt: skip

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        info = get_worker_info()
        worker = -1 if info is None else info.id
        if worker not in self.handles:
            self.handles[worker] = zipfile.ZipFile(self.path)
        with self.handles[worker].open(self.names[index]) as file:
            image = Image.open(file).convert("RGB")
        return self.transform(image), self.names[index].split("/")[0]


class CsvLabels(Dataset):
    def __init__(self, root):
        self.root = root
        with open(root / "labels.csv", newline="") as file:
            self.rows = list(csv.DictReader(file))
        self.transform = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.AutoAugment(), T.ToTensor()])
        self.target_transform = T.Lambda(lambda y: torch.zeros(2).scatter_(0, torch.tensor(int(y)), value=1))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, idx):
        row = self.rows[idx]
        image = Image.open(self.root / row["path"])
        return self.transform(image), self.target_transform(row["label"]), float(row["score"])


class NpyArrays(Dataset):
    def __init__(self, root):
        self.data = np.load(root / "arrays.npy", mmap_mode="r")

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        x = np.array(self.data[index])
        if np.random.rand() < 0.5:
            x = x[:, ::-1]
        x = np.pad(x, ((4, 4), (4, 4), (0, 0)), mode="reflect")
        top, left = np.random.randint(0, 9, size=2)
        x = x[top : top + 32, left : left + 32].astype(np.float32) / 255
        x = x + np.random.normal(0, 0.01, x.shape).astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1))), index


class VideoFrames(Dataset):
    """Clips of frames, with one crop and one flip for a clip."""

    def __init__(self, root, length=4):
        self.frames = photographs(root)
        self.length = length

    def __len__(self):
        return len(self.frames) - self.length + 1

    def __getitem__(self, index):
        start = random.randint(0, len(self) - 1)
        clip = [Image.open(path).convert("RGB").resize((48, 40)) for path in self.frames[start : start + self.length]]
        i, j, h, w = T.RandomResizedCrop.get_params(clip[0], scale=(0.5, 1.0), ratio=(0.75, 1.33))
        flip = torch.rand(1).item() < 0.5
        clip = [TF.resized_crop(frame, i, j, h, w, [32, 32]) for frame in clip]
        clip = [TF.hflip(frame) if flip else frame for frame in clip]
        return torch.stack([TF.to_tensor(frame) for frame in clip], dim=1), start


class Audio(Dataset):
    def __init__(self, root, length=1024):
        self.paths = sorted((root / "sounds").glob("*.wav"))
        self.length = length

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        import soundfile

        wave, rate = soundfile.read(self.paths[index], dtype="float32")
        if len(wave) < self.length:
            wave = np.pad(wave, (0, self.length - len(wave)))
        start = random.randint(0, len(wave) - self.length)
        wave = wave[start : start + self.length] * np.random.uniform(0.8, 1.2)
        window = torch.hann_window(64)
        spectrum = torch.stft(torch.from_numpy(wave).float(), 64, window=window, return_complex=True).abs()
        masked = torch.randint(0, spectrum.shape[0] - 4, ()).item()
        spectrum[masked : masked + 4] = 0
        return spectrum, rate


# ---- streams ----


class Shards(IterableDataset):
    """Shards that the workers share, shuffled."""

    def __init__(self, root):
        self.shards = sorted(root.glob("shard-*.npz"))
        self.epoch = 0

    def __iter__(self):
        info = get_worker_info()
        shards = list(self.shards)
        random.Random(1234 + self.epoch).shuffle(shards)
        if info is not None:
            per_worker = math.ceil(len(shards) / info.num_workers)
            shards = shards[info.id * per_worker : (info.id + 1) * per_worker]
        for shard in shards:
            with np.load(shard) as data:
                x, y = data["x"], data["y"]
            for n in np.random.permutation(len(y)):
                yield torch.from_numpy(x[n]) + torch.randn(4), int(y[n])


def tar_samples(shards):
    for shard in shards:
        with tarfile.open(shard) as archive:
            sample = {}
            for member in archive:
                key, _, extension = member.name.rpartition(".")
                if sample and sample["__key__"] != key:
                    yield sample
                    sample = {}
                sample["__key__"] = key
                sample[extension] = archive.extractfile(member).read()
            if sample:
                yield sample


def shuffled(samples, size):
    buffer = []
    for sample in samples:
        if len(buffer) < size:
            buffer.append(sample)
            continue
        n = random.randrange(size)
        yield buffer[n]
        buffer[n] = sample
    random.shuffle(buffer)
    yield from buffer


class WebShards(IterableDataset):
    """Generators behind generators, as WebDataset has them."""

    def __init__(self, root):
        self.shards = sorted(root.glob("shard-*.tar"))
        self.transform = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()])

    def decoded(self, samples):
        for sample in samples:
            image = Image.open(io.BytesIO(sample["jpg"])).convert("RGB")
            yield self.transform(image), int(sample["cls"]), sample["__key__"]

    def __iter__(self):
        info = get_worker_info()
        shards = self.shards if info is None else self.shards[info.id :: info.num_workers]
        return self.decoded(shuffled(tar_samples(shards), 4))


# ---- others ----


class InMemory(Dataset):
    """Images that are kept after they were opened first."""

    def __init__(self, root):
        self.paths = photographs(root)
        self.cache = [None] * len(self.paths)
        self.transform = T.Compose([T.RandomCrop(32), T.RandomHorizontalFlip(), T.RandomAffine(10, (0.1, 0.1)),
                                    T.ToTensor(), T.RandomErasing(p=0.5)])  # fmt: skip

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if self.cache[index] is None:
            self.cache[index] = Image.open(self.paths[index]).convert("RGB")
        return self.transform(self.cache[index]), index


class Captions(Dataset):
    def __init__(self, root):
        self.paths = photographs(root)
        self.captions = json.loads((root / "captions.json").read_text())
        counter = Counter(word for texts in self.captions.values() for text in texts for word in text.split())
        self.vocab = {word: n for n, word in enumerate(["<pad>", "<bos>", "<eos>", "<unk>", *sorted(counter)])}
        self.transform = T.Compose([T.Resize(36), T.RandomCrop(32), T.RandomHorizontalFlip(), T.ToTensor()])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        tokens = [self.vocab.get(word, 3) for word in random.choice(self.captions[path.stem]).split()]
        tokens = [token if np.random.rand() > 0.1 else 3 for token in tokens]
        return self.transform(Image.open(path).convert("RGB")), torch.tensor([1, *tokens, 2])


def caption_collate(data):
    data.sort(key=lambda x: len(x[1]), reverse=True)
    images, captions = zip(*data, strict=True)
    lengths = [len(caption) for caption in captions]
    return torch.stack(images, 0), pad_sequence(captions, batch_first=True, padding_value=0), lengths


class Photos(Dataset):
    def __init__(self, root):
        self.paths = photographs(root)
        self.labels = [int(path.parent.name == "dog") for path in self.paths]
        self.transform = T.Compose([T.Resize([36, 36]), T.RandomCrop(32), T.ColorJitter(0.4, 0.4, 0.4), T.ToTensor(),
                                    T.Normalize(MEAN, STD)])  # fmt: skip

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class FewShot(Sampler):
    """Episodes: n classes, and k samples of each."""

    def __init__(self, labels, n_way=2, k_shot=3, episodes=4):
        self.n_way, self.k_shot, self.episodes = n_way, k_shot, episodes
        self.by_label = [torch.nonzero(torch.tensor(labels) == label).flatten() for label in sorted(set(labels))]

    def __len__(self):
        return self.episodes

    def __iter__(self):
        for _ in range(self.episodes):
            classes = torch.randperm(len(self.by_label))[: self.n_way]
            episode = [self.by_label[c][torch.randperm(len(self.by_label[c]))[: self.k_shot]] for c in classes]
            yield torch.stack(episode).t().reshape(-1).tolist()


class MixupCollate:
    def __init__(self, alpha=0.8, classes=2):
        self.alpha, self.classes = alpha, classes

    def __call__(self, batch):
        images, labels = default_collate(batch)
        lam = float(np.random.beta(self.alpha, self.alpha))
        index = torch.randperm(len(images))
        one_hot = torch.nn.functional.one_hot(labels, self.classes).float()
        return lam * images + (1 - lam) * images[index], lam * one_hot + (1 - lam) * one_hot[index]


def seed_worker(worker_id):
    """What torch's notes on reproducibility recommend."""
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)
