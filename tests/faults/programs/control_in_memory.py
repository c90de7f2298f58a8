# SPDX-License-Identifier: Apache-2.0
"""Healthy: images kept in memory, two workers that stay, an accelerator that is the limit."""

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=75, epochs=3, batch_size=16, num_workers=2, step_ms=25, persistent=True)


class Images(Dataset):
    def __init__(self):
        self.images = torch.arange(256, dtype=torch.float32)[:, None, None, None].expand(256, 3, 32, 32).contiguous()

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return self.images[index % len(self.images)]


def main():
    loader = DataLoader(Images(), batch_size=args.batch_size, shuffle=True, num_workers=args.num_workers,
                        prefetch_factor=args.prefetch_factor, persistent_workers=args.persistent)
    trainer = Trainer(args)
    for _ in range(args.epochs):
        for images in loader:
            trainer.step(images)
    trainer.finish()


if __name__ == "__main__":
    main()
