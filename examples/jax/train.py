# SPDX-License-Identifier: Apache-2.0
"""Stoker with JAX: batches become JAX arrays through DLPack, on the CPU or directly on the GPU.

    python examples/jax/train.py                               # on drawn shapes
    python examples/jax/train.py FOLDER [--device cuda]        # one sub-folder for each class
"""
import argparse

import jax
import jax.numpy as jnp
import stoker
from stoker import transforms as T
from stoker.synth import make_shapes


def loss_of(weights, images, labels):
    pooled = images.reshape(images.shape[0], 3, 8, 8, 8, 8).mean((3, 5)).reshape(images.shape[0], -1)
    scores = jax.nn.log_softmax(pooled @ weights)
    return -jnp.take_along_axis(scores, labels[:, None], 1).mean()


@jax.jit
def step(weights, images, labels):
    loss, gradient = jax.value_and_grad(loss_of)(weights, images, labels)
    return weights - 0.1 * gradient, loss


def main(folder, device):
    if device is not None and jax.default_backend() != "gpu":
        print("this JAX has no GPU")
        return
    jax.config.update("jax_enable_x64", True)  # labels are int64
    data = stoker.datasets.ImageFolder(folder, T.Compose([T.RandomResizedCrop(64), T.ToTensor()]))
    loader = stoker.DataLoader(data, batch_size=8, shuffle=True, drop_last=True, seed=1, device=device,
                               output="dlpack")
    weights = jnp.zeros((3 * 8 * 8, len(data.classes)), jnp.float32)
    for epoch in range(1, 4):
        total = 0.0
        for images, labels in loader:
            weights, loss = step(weights, jax.dlpack.from_dlpack(images), jax.dlpack.from_dlpack(labels))
            total += float(loss)
        print(f"epoch {epoch}: loss {total / len(loader):.3f} on {jax.default_backend()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--device")
    args = parser.parse_args()
    main(args.folder or make_shapes("shapes"), args.device)
