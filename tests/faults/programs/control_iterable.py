# SPDX-License-Identifier: Apache-2.0
"""Healthy: a stream that two workers share, each with its part."""

import time

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

args = options(steps=200, batch_size=8, num_workers=2, step_ms=25)


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        part, parts = (worker.id, worker.num_workers) if worker else (0, 1)
        for index in range(part, args.steps * args.batch_size, parts):
            time.sleep(0.001)
            yield torch.full((3, 32, 32), float(index))


def main():
    loader = DataLoader(Stream(), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    for records in loader:
        trainer.step(records)
    trainer.finish()


if __name__ == "__main__":
    main()
