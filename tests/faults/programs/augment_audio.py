# SPDX-License-Identifier: Apache-2.0
"""Reverberation and noise for whole recordings, of which half a second is used."""

import numpy as np
import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=160, batch_size=8, num_workers=2, step_ms=10)
RATE = 16000


class Reverb:
    def __init__(self):
        self.room = (np.exp(-np.arange(8000) / 900) * np.cos(np.arange(8000))).astype(np.float32)

    def __call__(self, clip):
        size = len(clip) + len(self.room)
        return np.fft.irfft(np.fft.rfft(clip, size) * np.fft.rfft(self.room, size), size)[: len(clip)]


class Noise:
    def __call__(self, clip):
        return clip + 0.01 * np.random.standard_normal(len(clip))


class Crop:
    def __call__(self, clip):
        return clip[: RATE // 2]


class Recordings(Dataset):
    def __init__(self):
        self.clips = np.random.default_rng(0).standard_normal((12, 6 * RATE)).astype(np.float32)
        self.transforms = [Crop(), Reverb(), Noise()] if args.fixed else [Reverb(), Noise(), Crop()]

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        clip = self.clips[index % len(self.clips)]
        for transform in self.transforms:
            clip = transform(clip)
        return torch.from_numpy(clip.astype(np.float32)), index


def main():
    loader = DataLoader(Recordings(), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    for clips, index in loader:
        trainer.step([index, clips])
    trainer.finish()


if __name__ == "__main__":
    main()
