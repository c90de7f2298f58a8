# SPDX-License-Identifier: Apache-2.0
"""FFCV: its own file, into which the images are re-encoded at quality 95."""
from pathlib import Path

from harness import MEAN, SIZE, STD, main

# Without their dependencies, which would fetch another torch.
PACKAGES = ["ffcv", "numba", "llvmlite", "opencv-python-headless", "pytorch-pfn-extras", "terminaltables", "fastargs",
            "tqdm", "psutil", "assertpy", "pandas", "python-dateutil", "pytz", "six", "scikit-learn", "scipy", "joblib",
            "threadpoolctl", "imgcat"]
NO_DEPENDENCIES = True
DEBIAN = ["libopencv-dev", "libturbojpeg0-dev", "pkg-config"]
ROUNDS = 2  # it compiles its pipeline for a minute at each start
NOTE = "re-encoded into its own file"


def beton(folder):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    from torchvision.datasets import ImageFolder

    path = Path(str(Path(folder).resolve()) + ".beton")
    if not path.exists():
        part = path.with_suffix(".part")
        writer = DatasetWriter(str(part), {
            "image": RGBImageField(write_mode="jpg", jpeg_quality=95), "label": IntField()}, num_workers=1)
        writer.from_indexed_dataset(ImageFolder(folder, loader=_rgb))
        part.rename(path)
    return str(path)


def _rgb(path):
    from PIL import Image
    return Image.open(path).convert("RGB")


def batches(folder, workers, batch):
    import numpy
    from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage

    mean, std = numpy.array(MEAN) * 255, numpy.array(STD) * 255
    each = Loader(beton(folder), batch_size=batch, num_workers=workers, order=OrderOption.QUASI_RANDOM, drop_last=True,
                  pipelines={"image": [RandomResizedCropRGBImageDecoder((SIZE, SIZE)), RandomHorizontalFlip(),
                                       NormalizeImage(mean, std, numpy.float32), ToTensor(), ToTorchImage()],
                             "label": [IntDecoder(), ToTensor()]})
    while True:
        for images, _ in each:
            yield len(images)


if __name__ == "__main__":
    main(batches)
