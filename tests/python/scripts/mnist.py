# SPDX-License-Identifier: Apache-2.0
"""Trains on MNIST in the manner of pytorch/examples' mnist: keyword arguments in dicts, torch.manual_seed."""
import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--test-batch-size", type=int, default=50)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--workers", type=int, default=0)

record = {"losses": [], "labels": [], "tested": []}


def train(model, loader, optimizer):
    model.train()
    labels = []
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(F.log_softmax(model(data), dim=1), target)
        loss.backward()
        optimizer.step()
        record["losses"].append(loss.item())
        labels += target.tolist()
    record["labels"].append([len(loader), len(loader.dataset), labels])


def test(model, loader):
    model.eval()
    with torch.no_grad():
        for data, target in loader:
            output = F.log_softmax(model(data), dim=1)
            record["tested"].append([F.nll_loss(output, target, reduction="sum").item(), target.tolist()])


def main():
    args = parser.parse_args()
    torch.manual_seed(1)
    train_kwargs = {"batch_size": args.batch_size}
    test_kwargs = {"batch_size": args.test_batch_size}
    loading = {"num_workers": args.workers, "pin_memory": False}
    train_kwargs.update(loading, shuffle=True)
    test_kwargs.update(loading, shuffle=False)
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    dataset1 = datasets.MNIST(args.data, train=True, transform=transform)
    dataset2 = datasets.MNIST(args.data, train=False, transform=transform)
    train_loader = DataLoader(dataset1, **train_kwargs)
    test_loader = DataLoader(dataset2, **test_kwargs)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    test(model, test_loader)
    for _ in range(args.epochs):
        train(model, train_loader, optimizer)
    test(model, test_loader)
    record["kinds"] = [type(train_loader).__module__, type(test_loader).__module__]


if __name__ == "__main__":
    main()
