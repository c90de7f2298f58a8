# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI with every operator on the CPU."""
from harness import MEAN, SIZE, STD, main

PACKAGES = ["nvidia-dali-cuda130"]
NOTE = "pixels differ from Pillow's"


def batches(folder, workers, batch):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=batch, num_threads=workers, device_id=None, prefetch_queue_depth=2)
    def pipeline():
        data, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="files")
        images = fn.decoders.image_random_crop(data, device="cpu", output_type=types.RGB,
                                               random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3])
        images = fn.resize(images, size=[SIZE, SIZE], interp_type=types.INTERP_TRIANGULAR)
        images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), dtype=types.FLOAT, output_layout="CHW",
                                          mean=[255 * m for m in MEAN], std=[255 * s for s in STD])
        return images, labels

    pipe = pipeline()
    pipe.build()
    while True:
        images, _ = pipe.run()
        yield images.as_tensor().shape()[0]


if __name__ == "__main__":
    main(batches)
