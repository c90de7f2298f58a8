# SPDX-License-Identifier: Apache-2.0
"""Recordings that torch limits and fades, in workers that ask for sixteen threads each."""

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=130, batch_size=4, num_workers=4, step_ms=15)


def use_all_cores(worker):
    torch.set_num_threads(1 if args.fixed else 16)


class Recordings(Dataset):
    def __init__(self):
        self.clips = torch.randn(16, 1 << 18)
        self.fade = torch.linspace(0, 1, 1 << 18)

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        clip = self.clips[index % len(self.clips)].clone()
        for _ in range(6):
            clip.mul_(self.fade).add_(0.01).clamp_(-1, 1).mul_(0.9)
        return clip[:16000].clone(), index


def main():
    loader = DataLoader(Recordings(), batch_size=args.batch_size, num_workers=args.num_workers,
                        worker_init_fn=use_all_cores)
    trainer = Trainer(args)
    for clips, index in loader:
        trainer.step([index, clips])
    trainer.finish()


if __name__ == "__main__":
    main()
