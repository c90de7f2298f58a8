# SPDX-License-Identifier: Apache-2.0
"""A replay buffer of many small objects, through which the garbage collector goes every ten steps."""

import gc

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=150, batch_size=8, num_workers=2, step_ms=20)


class Items(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return torch.full((3, 32, 32), float(index))


def main():
    loader = DataLoader(Items(), batch_size=args.batch_size, num_workers=args.num_workers)
    batches = iter(loader)  # the workers are forked before the buffer is filled
    replay = [[i, [i]] for i in range(1_200_000)]
    trainer = Trainer(args)
    for step, items in enumerate(batches, 1):
        trainer.step(items)
        if step == 1 and args.fixed:  # the first step still imports much of torch
            gc.freeze()
        if step % 10 == 0:
            gc.collect()
    trainer.finish()
    del replay


if __name__ == "__main__":
    main()
