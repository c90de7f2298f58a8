# SPDX-License-Identifier: Apache-2.0
"""Trains on documents of two kilobytes, each a file of its own."""

import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=100, batch_size=24, num_workers=6, step_ms=18)
FILES, BYTES = 2600, 2000


def make(folder):
    with open(folder / "all.txt", "wb") as together:
        for i in range(FILES):
            text = (f"document {i} " * 200).encode()[:BYTES]
            (folder / f"{i}.txt").write_bytes(text)
            together.write(text)


class Documents(Dataset):
    def __init__(self):
        self.folder = data_folder("small_text", make)

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        number = index % FILES
        if args.fixed:
            with open(self.folder / "all.txt", "rb") as together:
                together.seek(number * BYTES)
                text = together.read(BYTES)
        else:
            with open(self.folder / f"{number}.txt", "rb") as document:
                text = document.read()
        return torch.frombuffer(bytearray(text), dtype=torch.uint8), index


def main():
    loader = DataLoader(Documents(), batch_size=args.batch_size, shuffle=not args.fixed,
                        num_workers=args.num_workers)
    trainer = Trainer(args)
    for text, index in loader:
        trainer.step([index, text])
    trainer.finish()


if __name__ == "__main__":
    main()
