# SPDX-License-Identifier: Apache-2.0
"""Stoker in a script like torchvision's references/classification: samplers, presets in v2, MixUp or CutMix.

    python examples/classification/train.py FOLDER        # one sub-folder for each class

Marked lines differ from the script with torch's DataLoader. MixUp and CutMix move from collate_fn, which is Python, to
batch_transforms, so that the engine makes whole batches.
"""
import sys

import torch
import torchvision
from stoker import DataLoader  # was: from torch.utils.data import DataLoader
from torch.utils.data import RandomSampler, default_collate
from torchvision.transforms import v2


def preset(size):
    return v2.Compose([
        v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip(0.5), v2.PILToTensor(),
        v2.ToDtype(torch.float, scale=True), v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        v2.ToPureTensor()])


def main(folder):
    torch.manual_seed(1)
    data = torchvision.datasets.ImageFolder(folder, preset(64))
    classes = len(data.classes)
    mix = v2.RandomChoice([v2.MixUp(alpha=0.2, num_classes=classes), v2.CutMix(alpha=1.0, num_classes=classes)])

    def collate(samples):
        return mix(*default_collate(samples))

    options = {"batch_transforms": mix}  # was: options = {"collate_fn": collate}
    loader = DataLoader(data, batch_size=8, sampler=RandomSampler(data), num_workers=2, **options)
    model = torchvision.models.squeezenet1_1(num_classes=classes)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    steps = 0
    for _ in range(2):
        for images, labels in loader:
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    print(f"{steps} steps, loss {loss.item():.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
