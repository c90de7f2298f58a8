# SPDX-License-Identifier: Apache-2.0
"""An ordinary training script, whose run docs/img/verdict.svg shows: torch's DataLoader as people first write it."""
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms as T
from torchvision.datasets import ImageFolder

from stoker.synth import make_folder

train = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor()])
data = ImageFolder(make_folder("images", 1000, classes=4), train)
loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=1)
model = nn.Sequential(nn.Conv2d(3, 16, 7, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.01)

for epoch in range(3):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
