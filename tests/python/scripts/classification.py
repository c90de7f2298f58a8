# SPDX-License-Identifier: Apache-2.0
"""Trains a classifier in the manner of torchvision's references/classification: explicit samplers, presets,
transforms of whole batches in collate_fn, a cached dataset."""
import argparse
import os

import torch
import torchvision
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, default_collate
from torchvision.transforms import v2

parser = argparse.ArgumentParser()
parser.add_argument("--data-path", required=True)
parser.add_argument("--workers", default=2, type=int)
parser.add_argument("--mixup-alpha", default=0.2, type=float)

record = {"steps": [], "order": [], "evaluated": [], "shapes": []}


class TrainPreset:
    def __init__(self, size):
        self.transforms = v2.Compose([
            v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip(0.5), v2.PILToTensor(),
            v2.ToDtype(torch.float, scale=True), v2.Normalize((0.5, 0.5, 0.5), (0.2, 0.2, 0.2)), v2.ToPureTensor()])

    def __call__(self, img):
        return self.transforms(img)


class EvalPreset:
    def __init__(self, size):
        self.transforms = v2.Compose([
            v2.Resize(size + 4, antialias=True), v2.CenterCrop(size), v2.PILToTensor(),
            v2.ToDtype(torch.float, scale=True), v2.Normalize((0.5, 0.5, 0.5), (0.2, 0.2, 0.2)), v2.ToPureTensor()])

    def __call__(self, img):
        return self.transforms(img)


class Listed(torch.utils.data.Sampler):
    """Writes down what a sampler gives."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __len__(self):
        return len(self.sampler)

    def __iter__(self):
        for index in self.sampler:
            record["order"].append(index)
            yield index


def main():
    args = parser.parse_args()
    torch.manual_seed(2)
    dataset = torchvision.datasets.ImageFolder(os.path.join(args.data_path, "train"), TrainPreset(32))
    dataset_test = torchvision.datasets.ImageFolder(os.path.join(args.data_path, "val"), EvalPreset(32))
    mix = v2.RandomChoice([v2.MixUp(alpha=args.mixup_alpha, num_classes=3), v2.CutMix(num_classes=3)])

    def collate_fn(batch):
        return mix(*default_collate(batch))

    data_loader = DataLoader(
        dataset, batch_size=4, sampler=Listed(RandomSampler(dataset)), num_workers=args.workers, pin_memory=False,
        collate_fn=collate_fn)
    data_loader_test = DataLoader(
        dataset_test, batch_size=3, sampler=SequentialSampler(dataset_test), num_workers=args.workers, pin_memory=False)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

    model.eval()
    processed = 0
    with torch.inference_mode():
        for image, target in data_loader_test:
            record["evaluated"].append(criterion(model(image), target).item())
            processed += image.shape[0]
    record["processed"] = [processed, len(data_loader_test.dataset)]
    assert isinstance(data_loader_test.sampler, SequentialSampler)

    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(2):
        for step, (image, target) in enumerate(data_loader):
            loss = criterion(model(image), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            record["shapes"].append([list(image.shape), list(target.shape), target.sum().round().item()])
        record["steps"].append([step + 1, len(data_loader)])
    record["kinds"] = [type(data_loader).__module__, type(data_loader_test).__module__]


if __name__ == "__main__":
    main()
