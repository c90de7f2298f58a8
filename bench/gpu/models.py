# SPDX-License-Identifier: Apache-2.0
"""The models that are trained: bf16 autocast, channels_last, SGD with momentum, cross entropy."""
from __future__ import annotations

import torch

MODELS = {"resnet18": "ResNet-18", "resnet50": "ResNet-50", "vit_s16": "ViT-S/16",
          "resnet50, heavy": "ResNet-50, RandAugment, RandomErasing, MixUp",
          "deeplabv3_resnet50, heavy": "DeepLabV3-ResNet-50, images and masks"}
MASK_CLASSES, IGNORED = 21, 255  # of masks


class Absent(Exception):
    """Why a model cannot be had, in a sentence."""


def build(name):
    if name == "rehearsal":  # for a look at the program itself where there is no GPU
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 16, 16), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                                   torch.nn.Linear(4, 1000))
    if name == "rehearsal_masks":
        return torch.nn.Conv2d(3, MASK_CLASSES, 1)
    if name == "vit_s16":
        try:
            import timm
        except ImportError as why:
            raise Absent("timm is not installed") from why
        return timm.create_model("vit_small_patch16_224", num_classes=1000)
    import torchvision
    if name == "deeplabv3_resnet50":
        return torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None,
                                                                  num_classes=MASK_CLASSES)
    return getattr(torchvision.models, name)(num_classes=1000)


def loss_of(scores, labels):
    """Labels are numbers of classes, shares of classes, or masks."""
    if labels.ndim == 3:
        scores = scores["out"] if isinstance(scores, dict) else scores
        return torch.nn.functional.cross_entropy(scores, labels.long(), ignore_index=IGNORED)
    return torch.nn.functional.cross_entropy(scores, labels)


def trainer(name, device):
    """A function that does one step of training."""
    model = build(name).to(device=device, memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    kind = torch.device(device).type

    def step(images, labels):
        with torch.autocast(kind, torch.bfloat16):
            loss = loss_of(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step
