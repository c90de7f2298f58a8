# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI with every operator on the CPU, one thread."""

import sys

from ops_harness import BATCH, MEAN, STD, files_of, main
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment

PACKAGES = ["nvidia-dali-cuda130"]
NOTE = "batches of 16; pixels differ from Pillow's"
FLOAT = {"mean": [255 * m for m in MEAN], "std": [255 * s for s in STD], "dtype": types.FLOAT, "output_layout": "CHW"}


def between(low, high):
    return fn.random.uniform(range=[low, high])


def rotated(images):
    return fn.rotate(images, angle=between(-30, 30), keep_size=True, fill_value=0)


def mapped(images):
    middle = [128.0, 128.0]
    matrix = fn.transforms.combine(
        fn.transforms.scale(scale=fn.random.uniform(range=[0.8, 1.2], shape=[2]), center=middle),
        fn.transforms.rotation(angle=between(-15, 15), center=middle),
        fn.transforms.translation(offset=fn.random.uniform(range=[-25, 25], shape=[2])),
    )
    return fn.warp_affine(images, matrix=matrix, fill_value=0)


def jittered(images):
    strength = {"brightness": between(0.6, 1.4), "contrast": between(0.6, 1.4), "saturation": between(0.6, 1.4)}
    return fn.color_twist(images, hue=between(-36, 36), **strength)


def resized_crop(images):
    window = {"random_area": [0.08, 1.0], "random_aspect_ratio": [3 / 4, 4 / 3]}
    return fn.random_resized_crop(images, size=[224, 224], interp_type=types.INTERP_TRIANGULAR, **window)


def erased(images):
    corner = fn.random.uniform(range=[0.0, 0.7], shape=[2])
    return fn.erase(images, anchor=corner, shape=[0.3, 0.3], axis_names="HW", normalized=True, fill_value=0)


OPS = {
    "horizontal flip": lambda images: fn.flip(images, horizontal=1),
    "vertical flip": lambda images: fn.flip(images, horizontal=0, vertical=1),
    "crop 224": lambda images: fn.crop(images, crop=[224, 224], crop_pos_x=between(0, 1), crop_pos_y=between(0, 1)),
    "resize to 224": lambda images: fn.resize(images, size=[224, 224], interp_type=types.INTERP_TRIANGULAR),
    "resized crop 224": resized_crop,
    "rotation": rotated,
    "affine": mapped,
    "jitter": jittered,
    "brightness": lambda images: fn.brightness(images, brightness=between(0.6, 1.4)),
    "contrast": lambda images: fn.contrast(images, contrast=between(0.6, 1.4)),
    "saturation": lambda images: fn.saturation(images, saturation=between(0.6, 1.4)),
    "hue": lambda images: fn.hue(images, hue=between(-36, 36)),
    "Gaussian blur 5": lambda images: fn.gaussian_blur(images, window_size=5, sigma=between(0.1, 2.0)),
    "Gaussian blur 23": lambda images: fn.gaussian_blur(images, window_size=23, sigma=between(0.1, 2.0)),
    "AutoAugment": lambda images: auto_augment.auto_augment(images, shape=[256, 256]),
    "RandAugment": lambda images: rand_augment.rand_augment(images, n=2, m=9, shape=[256, 256]),
    "TrivialAugment": lambda images: trivial_augment.trivial_augment_wide(images, shape=[256, 256]),
    "normalize": lambda images: fn.crop_mirror_normalize(images, **FLOAT),
    "erasing": lambda images: fn.crop_mirror_normalize(erased(images), **FLOAT),
}


def repeated(make, count):
    pipe = pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, prefetch_queue_depth=1, enable_conditionals=True)(make)()
    pipe.build()

    def run():
        for _ in range(0, count, BATCH):
            pipe.run()
        return -(-count // BATCH) * BATCH

    return run


def op(name, images):
    if name not in OPS:
        return None
    batches = [[images[(at + k) % len(images)] for k in range(BATCH)] for at in range(0, len(images), BATCH)]
    at = iter(range(sys.maxsize))

    def make():
        return OPS[name](fn.external_source(source=lambda: batches[next(at) % len(batches)], layout="HWC"))

    return repeated(make, len(images))


def finished(images):
    return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), **FLOAT)


AUGMENTS = {
    "crop and flip": lambda images: images,
    "AutoAugment": lambda images: auto_augment.auto_augment(images, shape=[224, 224]),
    "RandAugment": lambda images: rand_augment.rand_augment(images, n=2, m=9, shape=[224, 224]),
    "TrivialAugment": lambda images: trivial_augment.trivial_augment_wide(images, shape=[224, 224]),
}


def recipe(name, folder):
    if name not in AUGMENTS:
        return None
    paths = files_of(folder)

    def make():
        data, _ = fn.readers.file(files=paths, random_shuffle=True)
        window = {"random_area": [0.08, 1.0], "random_aspect_ratio": [3 / 4, 4 / 3]}
        images = fn.decoders.image_random_crop(data, device="cpu", output_type=types.RGB, **window)
        return finished(AUGMENTS[name](fn.resize(images, size=[224, 224], interp_type=types.INTERP_TRIANGULAR)))

    return repeated(make, len(paths))


if __name__ == "__main__":
    main(sys.modules[__name__])
