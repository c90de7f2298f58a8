# SPDX-License-Identifier: Apache-2.0
"""WebDataset: the same bytes in tar shards, torchvision's transforms on PIL images."""
import io
import tarfile
from pathlib import Path

from harness import image_paths, main
from torch_pil import pil_transform

PACKAGES = ["webdataset"]
NOTE = "reads tar shards; shuffles in a buffer"
SHARDS = 16  # at least as many as workers


def shards(folder):
    """Writes the images into tar files beside the folder, once."""
    root = Path(str(Path(folder).resolve()) + ".wds")
    names = [root / f"{n:03d}.tar" for n in range(SHARDS)]
    if not all(name.exists() for name in names):
        root.mkdir(exist_ok=True)
        images = image_paths(folder)
        for n, name in enumerate(names):
            part = name.with_suffix(".part")
            with tarfile.open(part, "w") as tar:
                for number, (path, label) in list(enumerate(images))[n::SHARDS]:
                    for suffix, data in (("jpg", Path(path).read_bytes()), ("cls", str(label).encode())):
                        member = tarfile.TarInfo(f"{number:08d}.{suffix}")
                        member.size = len(data)
                        tar.addfile(member, io.BytesIO(data))
            part.rename(name)
    return [str(name) for name in names]


def batches(folder, workers, batch):
    import webdataset as wds

    transform = pil_transform()
    data = (wds.WebDataset(shards(folder), shardshuffle=SHARDS).shuffle(1000).decode("pilrgb")
            .to_tuple("jpg", "cls").map_tuple(transform, lambda label: label).batched(batch, partial=False))
    each = wds.WebLoader(data, batch_size=None, num_workers=workers, persistent_workers=workers > 0)
    while True:
        for images, _ in each:
            yield len(images)


if __name__ == "__main__":
    main(batches)
