# SPDX-License-Identifier: Apache-2.0
"""A perceptron on eight numbers a sample, brought by two worker processes."""

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, TensorDataset

args = options(steps=4000, batch_size=8, num_workers=2, step_ms=0)


def main():
    count = args.steps * args.batch_size
    dataset = TensorDataset(torch.arange(count, dtype=torch.float32)[:, None].repeat(1, 8), torch.zeros(count))
    loader = DataLoader(dataset, batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    for inputs, _ in loader:
        trainer.step(inputs)
    trainer.finish()


if __name__ == "__main__":
    main()
