# SPDX-License-Identifier: Apache-2.0
"""tf.data with TensorFlow's decode-and-crop."""
import os
import platform

from harness import MEAN, SIZE, STD, image_paths, main

PACKAGES = ["tensorflow-cpu" if platform.machine() == "x86_64" else "tensorflow"]
NOTE = "pixels differ from Pillow's"


def batches(folder, workers, batch):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(workers)
    tf.config.threading.set_intra_op_parallelism_threads(workers)
    names, labels = zip(*image_paths(folder))

    def load(name, label):
        data = tf.io.read_file(name)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(data), tf.zeros([1, 0, 4]), area_range=[0.08, 1.0],
            aspect_ratio_range=[3 / 4, 4 / 3], max_attempts=10, use_image_if_no_bounding_boxes=True)
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.image.decode_and_crop_jpeg(data, window, channels=3, dct_method="INTEGER_ACCURATE")
        image = tf.image.resize(image, [SIZE, SIZE], antialias=True)
        image = tf.image.random_flip_left_right(image)
        image = (image / 255 - MEAN) / STD
        return tf.transpose(image, [2, 0, 1]), label

    data = (tf.data.Dataset.from_tensor_slices((list(names), list(labels)))
            .shuffle(len(names)).repeat().map(load, num_parallel_calls=workers).batch(batch).prefetch(2))
    options = tf.data.Options()
    options.threading.private_threadpool_size = workers
    for images, _ in data.with_options(options):
        yield int(images.shape[0])


if __name__ == "__main__":
    main(batches)
