# SPDX-License-Identifier: Apache-2.0
"""SPDL: threads over FFmpeg. It has no random resized crop, so whole frames are scaled."""
import random

from harness import MEAN, SIZE, STD, image_paths, main

PACKAGES = ["spdl"]
DEBIAN = ["ffmpeg"]
NOTE = "whole frame scaled to 224: no random crop"


def batches(folder, workers, batch):
    import numpy
    import spdl.io
    from spdl.pipeline import PipelineBuilder

    paths = [path for path, _ in image_paths(folder)]
    scale = (1 / 255 / numpy.array(STD)).astype(numpy.float32).reshape(1, 3, 1, 1)
    shift = (numpy.array(MEAN) / numpy.array(STD)).astype(numpy.float32).reshape(1, 3, 1, 1)
    filters = spdl.io.get_video_filter_desc(scale_width=SIZE, scale_height=SIZE, pix_fmt="rgb24")

    def source():
        while True:
            random.shuffle(paths)
            yield from paths

    def decode(path):
        return spdl.io.decode_packets(spdl.io.demux_image(path), filter_desc=filters)

    def collate(frames):
        pixels = spdl.io.to_numpy(spdl.io.convert_frames(frames))
        return pixels.transpose(0, 3, 1, 2) * scale - shift

    pipe = (PipelineBuilder().add_source(source()).pipe(decode, concurrency=workers).aggregate(batch)
            .pipe(collate).add_sink(2).build(num_threads=workers))
    with pipe.auto_stop():
        for images in pipe:
            yield len(images)


if __name__ == "__main__":
    main(batches)
