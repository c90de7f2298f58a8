# SPDX-License-Identifier: Apache-2.0
"""Several processes under torchrun: each rank gets its share of the samples, and a run that stopped resumes at the next batch.

    torchrun --standalone --nproc-per-node 2 examples/torchrun/train.py
    torchrun --standalone --nproc-per-node 8 examples/torchrun/train.py --data imagenet/train --size 224 --batch-size 256

With --checkpoint FILE, rank 0 saves there when the run ends or stops, and the next run continues from there: it ends with
the same weights, bit for bit, as a run that never stopped.
"""
import argparse
import os
import zlib
from pathlib import Path

import stoker
import torch
import torch.distributed as dist
from stoker import transforms as T
from stoker.synth import make_shapes


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder with one sub-folder for each class (default: shapes, made in ./shapes)")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=8, help="per process")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--stop-after", type=int, metavar="STEPS", help="stop early, to demonstrate resuming")
    return parser.parse_args()


def say(text):
    if dist.get_rank() == 0:
        print(text, flush=True)


def make_data(args):
    if args.data is None:
        args.data = "shapes"
        if dist.get_rank() == 0:
            make_shapes(args.data)
        dist.barrier()
    return stoker.datasets.ImageFolder(args.data, T.Compose([
        T.RandomResizedCrop(args.size), T.RandomHorizontalFlip(), T.ToTensor()]))


def show_shares(loader):
    """Says how many samples each rank has in this epoch, and that no two ranks have the same."""
    shares = [None] * dist.get_world_size()
    dist.all_gather_object(shares, list(loader.sampler))
    for rank, share in enumerate(shares):
        say(f"rank {rank}: {len(share)} samples")
    say(f"together {len(set().union(*shares))} different samples of {len(loader.dataset)}")


def train(args, device):
    data = make_data(args)
    # order="torch" is the order of torch's DistributedSampler, which loader.sampler then shows.
    loader = stoker.DataLoader(data, batch_size=args.batch_size, shuffle=True, drop_last=True, shard=True, order="torch",
                               seed=args.seed, device=device if device.type == "cuda" else None)
    torch.manual_seed(args.seed)
    model = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(192, len(data.classes)))
    wrapped = torch.nn.parallel.DistributedDataParallel(model.to(device))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    epoch = step = 0
    if args.checkpoint and args.checkpoint.exists():
        parts = torch.load(args.checkpoint, map_location=device)
        model.load_state_dict(parts["model"])
        optimizer.load_state_dict(parts["optimizer"])
        loader.load_state_dict(parts["loader"])
        epoch, step = parts["epoch"], parts["step"]
        say(f"resuming at step {step}, in epoch {epoch + 1}")
    else:
        show_shares(loader)

    def save():
        if args.checkpoint and dist.get_rank() == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict(),
                        "epoch": epoch, "step": step}, args.checkpoint)

    while epoch < args.epochs:
        total, batches = torch.zeros((), device=device), 0
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(wrapped(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, batches, step = total + loss.detach(), batches + 1, step + 1
            if step == args.stop_after:
                save()
                say(f"stopped after step {step}")
                return
        epoch += 1
        dist.all_reduce(total)
        say(f"epoch {epoch}: loss {total.item() / max(batches, 1) / dist.get_world_size():.3f}")
    save()
    weights = torch.cat([p.detach().cpu().flatten() for p in model.parameters()])
    say(f"done: {step} steps, weights {zlib.crc32(weights.numpy().tobytes()):08x}")


def main():
    args = parse()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        train(args, device)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
