# SPDX-License-Identifier: Apache-2.0
"""Trains on two seconds of each recording, but reads all ten."""

import wave

import numpy as np
import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=90, batch_size=4, num_workers=3, step_ms=20)
RATE, SECONDS, CROP, CLIPS = 44100, 10, 2, 380


def write(path, samples):
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(samples.tobytes())


def make(folder):
    rng = np.random.default_rng(0)
    for i in range(CLIPS):
        samples = rng.integers(-9000, 9000, RATE * SECONDS, np.int16)
        write(folder / f"{i:04}-whole.wav", samples)
        write(folder / f"{i:04}-crop.wav", samples[: RATE * CROP])


class Recordings(Dataset):
    def __init__(self):
        kind = "crop" if args.fixed else "whole"
        self.paths = sorted(data_folder("disk_audio", make).glob(f"*-{kind}.wav"))

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        with wave.open(str(self.paths[index % CLIPS])) as clip:
            frames = clip.readframes(clip.getnframes())
        samples = np.frombuffer(frames, np.int16)[: RATE * CROP]
        return torch.from_numpy(samples.copy()), index


def main():
    loader = DataLoader(Recordings(), batch_size=args.batch_size, shuffle=True,
                        num_workers=args.num_workers)
    trainer = Trainer(args)
    for samples, index in loader:
        trainer.step([index, samples])
    trainer.finish()


if __name__ == "__main__":
    main()
