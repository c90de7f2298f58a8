# SPDX-License-Identifier: Apache-2.0
"""GPU: a deep model on eight samples at a time, hundreds of kernels of a few microseconds; --fixed is a CUDA graph."""

import torch
from common import Trainer, options, traced
from torch.utils.data import DataLoader, TensorDataset

args = options(steps=250, batch_size=8)


def main():
    rows = torch.randn(args.steps * args.batch_size, 64)
    loader = DataLoader(TensorDataset(rows), batch_size=args.batch_size, num_workers=args.num_workers,
                        pin_memory=True)
    model = torch.nn.Sequential(*(layer for _ in range(150) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())))
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    if args.fixed:
        model = torch.cuda.make_graphed_callables(model, (torch.randn(args.batch_size, 64, device="cuda"),))
    trainer = Trainer(args)
    for (inputs,) in loader:
        inputs = inputs.to("cuda", non_blocking=True)
        with traced(model):
            optimizer.zero_grad(set_to_none=False)
            model(inputs).square().mean().backward()
            optimizer.step()
        trainer.count()
    trainer.finish()


if __name__ == "__main__":
    main()
