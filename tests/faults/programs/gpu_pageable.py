# SPDX-License-Identifier: Apache-2.0
"""GPU: batches of 77 MB in pageable memory, copied while training waits; --fixed pins them and copies beside it."""

import torch
from common import Trainer, options, traced
from torch.utils.data import DataLoader, Dataset

args = options(steps=200, num_workers=4)


class Batches(Dataset):
    """Batches in shared memory, so that bringing one costs the workers nothing."""

    def __init__(self):
        self.batches = [torch.randn(128, 3 * 224 * 224).share_memory_() for _ in range(8)]

    def __len__(self):
        return args.steps

    def __getitem__(self, index):
        return self.batches[index % len(self.batches)]


def main():
    loader = DataLoader(Batches(), batch_size=None, num_workers=args.num_workers, pin_memory=args.fixed)
    model = torch.nn.Sequential(
        torch.nn.Linear(3 * 224 * 224, 512), *(torch.nn.Linear(512, 512) for _ in range(8))
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    load = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)  # the rest of a larger model
    trainer = Trainer(args)
    for images in loader:
        images = images.to("cuda", non_blocking=args.fixed)
        with traced(model):
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(images).square().mean()
            for _ in range(6):
                load @ load
            loss.backward()
            optimizer.step()
        trainer.count()
    trainer.finish()


if __name__ == "__main__":
    main()
