# SPDX-License-Identifier: Apache-2.0
"""The models that are trained: bf16 autocast, channels_last, SGD with momentum, cross entropy."""
from __future__ import annotations

import torch

MODELS = {"resnet18": "ResNet-18", "resnet50": "ResNet-50", "vit_s16": "ViT-S/16"}


class Absent(Exception):
    """Why a model cannot be had, in a sentence."""


def build(name):
    if name == "rehearsal":  # for a look at the program itself where there is no GPU
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 16, 16), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                                   torch.nn.Linear(4, 1000))
    if name == "vit_s16":
        try:
            import timm
        except ImportError as why:
            raise Absent("timm is not installed") from why
        return timm.create_model("vit_small_patch16_224", num_classes=1000)
    import torchvision
    return getattr(torchvision.models, name)(num_classes=1000)


def trainer(name, device):
    """A function that does one step of training."""
    model = build(name).to(device=device, memory_format=torch.channels_last).train()
    lossy = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    kind = torch.device(device).type

    def step(images, labels):
        with torch.autocast(kind, torch.bfloat16):
            loss = lossy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step
