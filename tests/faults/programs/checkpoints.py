# SPDX-License-Identifier: Apache-2.0
"""A large checkpoint every twelve steps, which the training waits for."""

import os
import tempfile

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=144, batch_size=8, num_workers=2, step_ms=20)


class Items(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return torch.full((3, 32, 32), float(index))


def main():
    loader = DataLoader(Items(), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    state = {f"layer {i}": torch.zeros(1 << 20) for i in range(60)}
    with tempfile.TemporaryDirectory(dir=os.environ.get("FAULTS_DATA")) as folder:
        for step, items in enumerate(loader, 1):
            trainer.step(items)
            if step % 12 == 0 and not args.fixed:
                torch.save(state, os.path.join(folder, "checkpoint.pt"))
    trainer.finish()


if __name__ == "__main__":
    main()
