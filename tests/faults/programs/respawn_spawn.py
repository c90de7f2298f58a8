# SPDX-License-Identifier: Apache-2.0
"""Workers started anew in every epoch, by spawn: each imports torch and unpickles the dataset's long list of names."""

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=40, epochs=3, batch_size=8, num_workers=2, step_ms=20)


class Catalogue(Dataset):
    def __init__(self):
        self.names = [f"images/train/class-{i % 1000:04}/{i:08}.jpg" for i in range(300_000)]
        self.length = args.steps * args.batch_size

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return torch.tensor([index, len(self.names[index])])


def main():
    loader = DataLoader(Catalogue(), batch_size=args.batch_size, num_workers=args.num_workers,
                        multiprocessing_context="spawn", persistent_workers=args.persistent)
    trainer = Trainer(args)
    for _ in range(args.epochs):
        for items in loader:
            trainer.step(items)
    trainer.finish()


if __name__ == "__main__":
    main()
