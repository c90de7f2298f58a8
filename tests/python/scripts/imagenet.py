# SPDX-License-Identifier: Apache-2.0
"""Trains a classifier on an image folder, in the manner of pytorch/examples' imagenet."""
import argparse
import os

import torch
import torchvision.datasets as datasets
import torchvision.transforms as transforms
from torch.utils.data import DataLoader, Subset

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("-j", "--workers", default=2, type=int)
parser.add_argument("--epochs", default=2, type=int)
parser.add_argument("-b", "--batch-size", default=4, type=int)
parser.add_argument("--seed", default=1, type=int)

record = {"steps": [], "labels": [], "losses": [], "evaluated": []}


def accuracy(output, target, topk=(1,)):
    _, found = output.topk(max(topk), 1)
    correct = found.t().eq(target.view(1, -1))
    return [correct[:k].any(0).float().mean().item() for k in topk]


def train(loader, model, criterion, optimizer):
    model.train()
    labels = []
    for i, (images, target) in enumerate(loader):
        images, target = images.to("cpu", non_blocking=True), target.to("cpu", non_blocking=True)
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        labels += target.tolist()
        record["losses"].append(loss.item())
    record["steps"].append([i + 1, len(loader)])
    record["labels"].append(labels)


@torch.no_grad()
def validate(loader, model, criterion):
    model.eval()
    seen, labels = [], []
    for images, target in loader:
        output = model(images)
        seen += [criterion(output, target).item(), *accuracy(output, target, topk=(1, 2))]
        labels += target.tolist()
    record["evaluated"].append([len(loader), len(loader.dataset), labels, seen])


def main():
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 5, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(16, 3),
    )
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    train_dataset = datasets.ImageFolder(os.path.join(args.data, "train"), transforms.Compose([
        transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize]))
    val_dataset = datasets.ImageFolder(os.path.join(args.data, "val"), transforms.Compose([
        transforms.Resize(36), transforms.CenterCrop(32), transforms.ToTensor(), normalize]))
    train_loader = DataLoader(
        train_dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=False,
        sampler=None)
    val_loader = DataLoader(
        val_dataset, batch_size=args.batch_size, shuffle=False, num_workers=args.workers, pin_memory=False)
    # What a distributed evaluation leaves over goes through a loader of its own there.
    rest = Subset(val_dataset, range(len(val_dataset) - 3, len(val_dataset)))
    rest_loader = DataLoader(rest, batch_size=args.batch_size, shuffle=False, num_workers=args.workers)
    validate(val_loader, model, criterion)
    validate(rest_loader, model, criterion)
    for _ in range(args.epochs):
        train(train_loader, model, criterion, optimizer)
    record["kinds"] = [type(train_loader).__module__, type(val_loader).__module__]


if __name__ == "__main__":
    main()
