# SPDX-License-Identifier: Apache-2.0
"""Documents in gzip files, unpacked whole to train on the beginning of each."""

import gzip

import numpy as np
import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=130, batch_size=24, num_workers=2, step_ms=12)


def make(folder):
    rng = np.random.default_rng(0)
    words = np.array(["coal ", "steam ", "furnace ", "engine ", "stoker ", "water ", "fire ", "shovel\n"])
    for i in range(24):
        text = "".join(rng.choice(words, 150_000)).encode()
        (folder / f"{i:02}.txt.gz").write_bytes(gzip.compress(text))
        (folder / f"{i:02}.txt").write_bytes(text)


class Documents(Dataset):
    def __init__(self):
        folder = data_folder("compressed_text", make)
        self.paths = sorted(folder.glob("*.txt" if args.fixed else "*.txt.gz"))

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        read = open if args.fixed else gzip.open
        with read(self.paths[index % len(self.paths)], "rb") as document:
            text = document.read()
        return torch.frombuffer(bytearray(text[:8192]), dtype=torch.uint8), index


def main():
    loader = DataLoader(Documents(), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    for text, index in loader:
        trainer.step([index, text])
    trainer.finish()


if __name__ == "__main__":
    main()
