# SPDX-License-Identifier: Apache-2.0
"""Stoker under Lightning: its loader is given as any other, and is part of Lightning's checkpoints.

    python examples/lightning_snippet.py FOLDER        # one sub-folder a class
"""
import sys
import warnings

import lightning
import stoker
import torch
from stoker import transforms as T


class Model(lightning.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.LazyLinear(classes))

    def training_step(self, batch, _):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.net(images), labels)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def main(folder):
    device = "cuda" if torch.cuda.is_available() else None
    data = stoker.datasets.ImageFolder(folder, T.Compose([T.RandomResizedCrop(64), T.ToTensor()]))
    loader = stoker.DataLoader(data, batch_size=8, shuffle=True, seed=1, device=device)
    model = Model(len(data.classes))
    model.net(torch.zeros(1, 3, 64, 64))  # gives the lazy layer its size
    trainer = lightning.Trainer(max_epochs=2, accelerator="gpu" if device else "cpu", devices=1, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                                log_every_n_steps=1)
    trainer.fit(model, loader)
    print(f"{trainer.global_step} steps, loss {trainer.callback_metrics['loss'].item():.3f}")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", module="lightning")  # it advises more worker processes
    main(sys.argv[1])
