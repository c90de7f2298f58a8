#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sounds a second, for training: Stoker against soundfile and torchaudio in torch's DataLoader.

Usage: bench/audio.py [--files 200] [--seconds 4] [--workers 2] [--rounds 3]

All contestants read the same files, of 44.1 kHz and two channels, with the same number of threads or processes,
and end with the same spectrograms. `whole`: resample to 16 kHz, mix down, take one second, mel spectrogram.
`crop first`: the second is taken before anything else, so that soundfile too decodes only that. One round
of each contestant is thrown away; then they take turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import stoker
import torch
from stoker import audio as A

RATE, NEW_RATE, BATCH, MELS = 44100, 16000, 16, 64
FORMATS = {"wav": "PCM_16", "flac": "PCM_16", "ogg": "VORBIS"}

cuda, torch.version.cuda = torch.version.cuda, None  # torchaudio's check; it is used on the CPU only
import torchaudio

torch.version.cuda = cuda


class TorchSounds(torch.utils.data.Dataset):
    """What one writes by hand."""

    def __init__(self, paths: list[str], crop_first: bool) -> None:
        self.paths = paths
        self.crop_first = crop_first
        self.resample = torchaudio.transforms.Resample(RATE, NEW_RATE)
        self.mel = torchaudio.transforms.MelSpectrogram(NEW_RATE, n_mels=MELS)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path = self.paths[index]
        if self.crop_first:
            room = soundfile.info(path).frames - RATE
            start = int(torch.randint(room + 1, ()))
            data, _ = soundfile.read(path, RATE, start, dtype="float32", always_2d=True)
            return self.mel(self.resample(torch.from_numpy(data.T)).mean(0, keepdim=True)), 0
        data, _ = soundfile.read(path, dtype="float32", always_2d=True)
        sound = self.resample(torch.from_numpy(data.T)).mean(0, keepdim=True)
        start = int(torch.randint(sound.shape[1] - NEW_RATE + 1, ()))
        return self.mel(sound[:, start : start + NEW_RATE]), 0


def make_files(root: Path, kind: str, count: int, seconds: float) -> None:
    rng = np.random.default_rng(0)
    time_axis = np.arange(int(RATE * seconds)) / RATE
    (root / "only").mkdir(parents=True)
    for k in range(count):
        tones = sum(np.sin(2 * np.pi * f * time_axis) for f in rng.uniform(80, 4000, 5)) * 0.1
        sound = (
            np.stack([tones, np.roll(tones, 40)], 1) + rng.standard_normal((len(time_axis), 2)) * 0.01
        )
        soundfile.write(root / "only" / f"{k:05}.{kind}", sound, RATE, FORMATS[kind])


def rate_of(loader: Any, count: int) -> float:
    began = time.perf_counter()
    seen = sum(len(batch[0]) for batch in loader)
    assert seen == count
    return count / (time.perf_counter() - began)


def contestants(root: Path, crop_first: bool, workers: int) -> dict[str, Any]:
    steps: list[Any] = [
        A.Resample(NEW_RATE),
        A.Mono(),
        A.RandomCrop(NEW_RATE),
        A.MelSpectrogram(NEW_RATE, n_mels=MELS),
    ]
    if crop_first:
        steps = [
            A.RandomCrop(RATE),
            A.Resample(NEW_RATE),
            A.Mono(),
            A.MelSpectrogram(NEW_RATE, n_mels=MELS),
        ]
    data = stoker.datasets.AudioFolder(root, A.Compose(steps))
    by_hand = TorchSounds([path for path, _ in data.samples], crop_first)
    return {
        "soundfile + torchaudio": torch.utils.data.DataLoader(
            by_hand, BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0
        ),
        "stoker": stoker.DataLoader(data, BATCH, shuffle=True, num_workers=workers, seed=0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(
        f"{args.files} files of {args.seconds:g} s, {args.workers} workers, median of {args.rounds} rounds\n"
    )
    print("| files | pipeline | soundfile + torchaudio | stoker | ratio |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in FORMATS:
            root = Path(folder) / kind
            make_files(root, kind, args.files, args.seconds)
            for crop_first in (False, True):
                rivals = contestants(root, crop_first, args.workers)
                rates: dict[str, list[float]] = {name: [] for name in rivals}
                for turn in range(args.rounds + 1):
                    for name, loader in rivals.items():
                        rate = rate_of(loader, args.files)
                        if turn:
                            rates[name].append(rate)
                hand, ours = (statistics.median(rates[name]) for name in rates)
                how = "crop first" if crop_first else "whole"
                print(
                    f"| {kind} | {how} | {hand:.0f}/s | {ours:.0f}/s | {ours / hand:.1f} |", flush=True
                )


if __name__ == "__main__":
    main()
