# SPDX-License-Identifier: Apache-2.0
"""Stoker under Accelerate: prepare() makes a Stoker loader from a Stoker loader, with the engine inside.

    python examples/accelerate/train.py             # on drawn shapes
    python examples/accelerate/train.py FOLDER      # one sub-folder for each class
    accelerate launch examples/accelerate/train.py FOLDER

Marked lines differ from the script with torch's DataLoader.
"""
import sys

import torch
from accelerate import Accelerator
from stoker import DataLoader  # was: from torch.utils.data import DataLoader
from stoker.synth import make_shapes
from torchvision import transforms as T
from torchvision.datasets import ImageFolder


def main(folder):
    torch.manual_seed(1)
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    with accelerator.main_process_first():
        folder = folder or make_shapes("shapes")
    data = ImageFolder(folder, T.Compose([T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.ToTensor()]))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    net = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, len(data.classes)))
    net, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.1), loader)
    steps = 0
    for epoch in range(1, 4):
        total = 0.0
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(net(images), labels)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
            steps += 1
        accelerator.print(f"epoch {epoch}: loss {total / len(loader):.3f}")
    accelerator.print(f"{steps} steps, processes: {accelerator.num_processes}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
