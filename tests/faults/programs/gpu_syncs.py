# SPDX-License-Identifier: Apache-2.0
"""GPU: means and norms are fetched in every step, and each time the GPU runs dry; --fixed leaves that out."""

import torch
from common import Trainer, options, traced
from torch.utils.data import DataLoader, Dataset

args = options(steps=300, num_workers=2)


class Batches(Dataset):
    def __init__(self):
        self.batches = [torch.randn(1024, 1024).share_memory_() for _ in range(4)]

    def __len__(self):
        return args.steps

    def __getitem__(self, index):
        return self.batches[index % len(self.batches)]


def main():
    loader = DataLoader(Batches(), batch_size=None, num_workers=args.num_workers, pin_memory=True)
    layers = torch.nn.ModuleList(torch.nn.Linear(1024, 1024) for _ in range(48)).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-6)
    trainer = Trainer(args)
    for inputs in loader:
        values = inputs.to("cuda", non_blocking=True)
        means, norms = [], []
        with traced(layers):
            optimizer.zero_grad()
            for layer in layers:
                values = torch.relu(layer(values))
                if not args.fixed:
                    means.append(values.mean().item())
            values.square().mean().backward()
            if not args.fixed:
                norms = [parameter.grad.norm().item() for parameter in layers.parameters()]
            optimizer.step()
        trainer.count()
        if trainer.done % 100 == 0 and norms:
            print(f"step {trainer.done}: {len(means)} means, {len(norms)} norms")
    trainer.finish()


if __name__ == "__main__":
    main()
