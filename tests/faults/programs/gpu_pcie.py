# SPDX-License-Identifier: Apache-2.0
"""GPU: pinned float32 batches of 400 MB fill the link to the GPU; --fixed sends bytes and makes floats there."""

import torch
from common import Trainer, options, traced
from torch.utils.data import DataLoader, Dataset

args = options(steps=300)
SHAPE = (664, 3 * 224 * 224)


class Batches(Dataset):
    """Batches in pinned memory, as a cache keeps them."""

    def __init__(self):
        pixels = torch.randint(0, 256, SHAPE, dtype=torch.uint8)
        self.batches = [(pixels if args.fixed else pixels / 255).pin_memory() for _ in range(2)]

    def __len__(self):
        return args.steps

    def __getitem__(self, index):
        return self.batches[index % len(self.batches)]


def main():
    loader = DataLoader(Batches(), batch_size=None, num_workers=args.num_workers)
    model = torch.nn.Linear(SHAPE[1], 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    trainer = Trainer(args)
    for images in loader:
        images = images.to("cuda", non_blocking=True)
        with traced(model):
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(images.bfloat16() / 255 if args.fixed else images).square().mean()
            loss.backward()
            optimizer.step()
        trainer.count()
    trainer.finish()


if __name__ == "__main__":
    main()
