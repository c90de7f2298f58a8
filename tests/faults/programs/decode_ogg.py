# SPDX-License-Identifier: Apache-2.0
"""Ogg/Vorbis recordings, decoded in every epoch."""

import numpy as np
import soundfile
import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=140, batch_size=2, num_workers=2, step_ms=12)
RATE, SECONDS = 44100, 12


def make(folder):
    time = np.arange(RATE * SECONDS) / RATE
    for i in range(12):
        tone = 0.3 * np.sin(2 * np.pi * (200 + 37 * i) * time * (1 + time / 20))
        noise = 0.1 * np.random.default_rng(i).standard_normal(len(time))
        for kind in ("ogg", "wav"):
            soundfile.write(folder / f"{i:02}.{kind}", np.stack([tone + noise, tone - noise], 1), RATE)


class Recordings(Dataset):
    def __init__(self):
        folder = data_folder("ogg", make)
        self.paths = sorted(folder.glob("*.wav" if args.fixed else "*.ogg"))

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        samples, _ = soundfile.read(self.paths[index % len(self.paths)], dtype="int16")
        return torch.from_numpy(samples[:16000].copy()), index


def main():
    loader = DataLoader(Recordings(), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    for samples, index in loader:
        trainer.step([index, samples])
    trainer.finish()


if __name__ == "__main__":
    main()
