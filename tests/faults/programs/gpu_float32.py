# SPDX-License-Identifier: Apache-2.0
"""GPU: large matrices in float32, without tensor cores; --fixed runs them in bfloat16."""

import torch
from common import Trainer, options, traced
from torch.utils.data import DataLoader, Dataset

args = options(steps=60, num_workers=2)


class Batches(Dataset):
    def __init__(self):
        self.batches = [torch.randn(4096, 512).share_memory_() for _ in range(4)]

    def __len__(self):
        return args.steps

    def __getitem__(self, index):
        return self.batches[index % len(self.batches)]


def main():
    loader = DataLoader(Batches(), batch_size=None, num_workers=args.num_workers, pin_memory=True)
    layers = [torch.nn.Linear(4096 if i else 512, 4096) for i in range(12)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    trainer = Trainer(args)
    for inputs in loader:
        inputs = inputs.to("cuda", non_blocking=True)
        with traced(model):
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16, enabled=args.fixed):
                loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
        trainer.count()
    trainer.finish()


if __name__ == "__main__":
    main()
