# SPDX-License-Identifier: Apache-2.0
"""Short epochs, before each of which every new worker reads the archive's index."""

import time

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=15, epochs=8, batch_size=8, num_workers=2, step_ms=20)


def open_archive(worker):
    time.sleep(0.300)


class Archive(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return torch.full((3, 32, 32), float(index))


def main():
    loader = DataLoader(Archive(), batch_size=args.batch_size, num_workers=args.num_workers,
                        worker_init_fn=open_archive, persistent_workers=args.persistent)
    trainer = Trainer(args)
    for _ in range(args.epochs):
        for items in loader:
            trainer.step(items)
    trainer.finish()


if __name__ == "__main__":
    main()
