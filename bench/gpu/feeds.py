# SPDX-License-Identifier: Apache-2.0
"""Where a training loop gets its batches from: data that is on the GPU already, torch's ways, and Stoker's.

A feed is an iterator without end over (images, labels) on the device, normalised, channels_last. All read the
same files, in random order with replacement, so that no epoch ends while something is measured.
"""
from __future__ import annotations

import gc
import itertools
import time

import stoker
import torch
from stoker import transforms as T

MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]
SIZE = 224
DRAWS = 1_000_000  # samples in an epoch: more than any measurement takes


class Setting:
    """What all feeds of a run share."""

    def __init__(self, folder, device, batch, workers, size=SIZE, kept=None):
        self.folder, self.device, self.batch, self.workers, self.size = folder, device, batch, workers, size
        self.kept = kept  # a folder for Stoker's index, and for the list of files that are known to decode

    def resized(self, size, batch):
        return Setting(self.folder, self.device, batch, self.workers, size, self.kept)


class Feed:
    """``period``: batches that come in one go where workers make whole batches; a measurement is a multiple of it."""

    period = 1

    def __iter__(self):
        return self

    def about(self):
        """What the loader says of itself, for the record."""
        return {}

    def close(self):
        pass


def sampler(dataset):
    return torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=DRAWS)


def stoker_data(setting):
    return stoker.datasets.ImageFolder(setting.folder, index_dir=setting.kept, transform=T.Compose([
        T.RandomResizedCrop(setting.size), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]))


def wait_for_hardware(loader, seconds=20.0):
    """Until the JPEG hardware is open, in both of the loader's threads for it, or cannot be used."""
    until = time.perf_counter() + seconds
    device = loader.stats()["device"]
    while device["jpeg_hardware_open"] < 2 and not device["jpeg_hardware_note"] and time.perf_counter() < until:
        time.sleep(0.02)
        device = loader.stats()["device"]


def learn(loader, seconds=60.0):
    """Epochs until every file that the JPEG hardware can decode is known to decode: until one learns no more. Returns what
    happened, in words."""
    began, before, epochs, count = time.perf_counter(), -1, 0, len(loader.dataset)
    wait_for_hardware(loader)
    while (known := loader.stats()["device"]["files_known"]) not in (before, count):
        if loader.stats()["device"]["jpeg_hardware_note"] or time.perf_counter() - began > seconds:
            break
        before, epochs = known, epochs + 1
        for _ in loader:
            pass
    return (f"{known:,} of {count:,} files known to decode, after {epochs} epochs and "
            f"{time.perf_counter() - began:.1f} s")


def keep_known(setting):
    """Learns; the list is kept in ``setting.kept``, where every other loader finds it."""
    said = learn(stoker.DataLoader(stoker_data(setting), batch_size=setting.batch, num_workers=setting.workers,
                                   device=setting.device))
    gc.collect()  # the list is written at the latest when the loader ends
    return said


class Stoker(Feed):
    """``jpeg_hardware``: which files the GPU's JPEG hardware decodes. ``keep_known`` has made them known before."""

    def __init__(self, setting, jpeg_hardware="known", workers=None, prefetch=4, augment_on="auto", data=None, **more):
        data = stoker_data(setting) if data is None else data
        where = {"device": setting.device, "augment_on": augment_on, "jpeg_hardware": jpeg_hardware}
        options = {"batch_size": setting.batch, "drop_last": True, "prefetch_factor": prefetch, "pillow": 12,
                   "num_workers": setting.workers if workers is None else workers, "dtype": "bfloat16",
                   "memory_format": "channels_last", **(where if setting.device != "cpu" else {}), **more}
        self.loader = stoker.DataLoader(data, sampler=sampler(data), **options)
        if jpeg_hardware != "off" and setting.device != "cpu":
            wait_for_hardware(self.loader)
        self.batches = iter(self.loader)

    def __next__(self):
        try:
            return next(self.batches)
        except StopIteration:
            self.batches = iter(self.loader)
            return next(self.batches)

    def about(self):
        return self.loader.stats()

    def close(self):
        self.batches = self.loader = None  # the last reference ends the threads
        gc.collect()


class Resident(Feed):
    """The ceiling: a few real batches, made before and kept on the device, again and again."""

    def __init__(self, setting, batches=8, source=None):
        source = source or Stoker(setting, "off")
        kept = [tuple(part.clone(memory_format=torch.preserve_format) for part in next(source))
                for _ in range(batches)]
        source.close()
        self.kept = itertools.cycle(kept)

    def __next__(self):
        return next(self.kept)


class _Torch(Feed):
    def _open(self, setting, dataset, workers, **more):
        self.setting, self.period = setting, max(1, workers)
        cuda = setting.device != "cpu"
        busy = {"persistent_workers": True, "prefetch_factor": 4} if workers else {}
        self.loader = torch.utils.data.DataLoader(
            dataset, batch_size=setting.batch, sampler=sampler(dataset), drop_last=True, num_workers=workers,
            pin_memory=cuda, **busy, **more)
        self.batches = iter(self.loader)

    def close(self):
        # Without this torch waits 5 seconds for each worker that is blocked in its queue.
        for worker in getattr(self.batches, "_workers", []):
            worker.terminate()
        self.batches = self.loader = None
        gc.collect()


class TorchPil(_Torch):
    """torch's DataLoader with torchvision's transforms on PIL images: what most people run."""

    def __init__(self, setting, workers):
        from torchvision import transforms as T
        from torchvision.datasets import ImageFolder

        self._open(setting, ImageFolder(setting.folder, transform=T.Compose([
            T.RandomResizedCrop(setting.size), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])),
            workers)

    def __next__(self):
        images, labels = next(self.batches)
        device = self.setting.device
        return (images.to(device, non_blocking=True, memory_format=torch.channels_last),
                labels.to(device, non_blocking=True))


class _Bytes(torch.utils.data.Dataset):
    """Files as they are."""

    def __init__(self, folder):
        from torchvision.datasets import ImageFolder
        self.samples = ImageFolder(folder).samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as file:
            return file.read(), label


def _joined(samples):
    """One tensor for all files of a batch: a tensor each would cost a file descriptor each."""
    sizes = [len(data) for data, _ in samples]
    everything = torch.frombuffer(bytearray(b"".join(data for data, _ in samples)), dtype=torch.uint8)
    return everything, sizes, torch.tensor([label for _, label in samples])


class TorchvisionCuda(_Torch):
    """torchvision.io.decode_jpeg on the GPU (nvJPEG), then torchvision.transforms.v2 there."""

    def __init__(self, setting, workers):
        from torchvision.transforms import v2

        self._open(setting, _Bytes(setting.folder), workers, collate_fn=_joined)
        self.each = v2.Compose([v2.RandomResizedCrop(setting.size, antialias=True), v2.RandomHorizontalFlip()])
        self.all = v2.Compose([v2.ToDtype(torch.bfloat16, scale=True), v2.Normalize(MEAN, STD)])

    def __next__(self):
        from torchvision.io import ImageReadMode, decode_jpeg

        everything, sizes, labels = next(self.batches)
        device = self.setting.device
        files = list(everything.split(sizes))
        images = decode_jpeg(files, mode=ImageReadMode.RGB, device=device)
        stacked = torch.stack([self.each(image) for image in images])
        return (self.all(stacked).to(memory_format=torch.channels_last), labels.to(device, non_blocking=True))


CEILING = "resident data (the ceiling)"
STOKER, STOKER_ALL, STOKER_CPU = "Stoker", 'Stoker, jpeg_hardware="all"', 'Stoker, jpeg_hardware="off"'


def makers(setting, torch_workers):
    """name: how to open it. In the order in which they are measured."""
    found = {CEILING: lambda: Resident(setting)}
    for workers in torch_workers:
        found[f"torch DataLoader, {workers} workers"] = lambda n=workers: TorchPil(setting, n)
    if setting.device != "cpu":
        most = max(torch_workers, default=8)
        found[f"torchvision v2, CUDA decode, {most} workers"] = lambda: TorchvisionCuda(setting, most)
    found[STOKER] = lambda: Stoker(setting)
    if setting.device != "cpu":
        found[STOKER_ALL] = lambda: Stoker(setting, "all")
    found[STOKER_CPU] = lambda: Stoker(setting, "off")
    return found


def is_peer(name):
    return name.startswith("torch")
