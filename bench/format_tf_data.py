#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tf.data's rate for the TFRecord files of bench/formats.py, by an interpreter that has TensorFlow.

    format_tf_data.py FOLDER WORKERS SECONDS DECODE ONCE

Prints samples a second and microseconds of CPU time for each. DECODE is 1 where payloads are JPEGs; ONCE is how many
samples one pass has, or 0 for passes without end.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import tensorflow as tf  # noqa: E402
from format_files import BATCH, SHARDS  # noqa: E402
from format_rates import drain  # noqa: E402


def samples(folder, workers, decode):
    """As its documents advise: shards interleaved, a buffer of a thousand, batches, a step prepared ahead."""
    features = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def parse(record):
        one = tf.io.parse_single_example(record, features)
        return (tf.io.decode_jpeg(one["image/encoded"], channels=3) if decode else one["image/encoded"]), one["label"]

    data = tf.data.TFRecordDataset(sorted(map(str, folder.glob("*.tfrecord"))), num_parallel_reads=SHARDS)
    data = data.shuffle(1000).repeat().map(parse, num_parallel_calls=workers).batch(BATCH).prefetch(2)
    for batch in data.as_numpy_iterator():
        yield from (batch for _ in range(BATCH))


def main():
    folder, workers, seconds, decode, once = sys.argv[1:]
    tf.config.threading.set_inter_op_parallelism_threads(int(workers))
    rate = drain(samples(Path(folder), int(workers), decode == "1"), float(seconds), int(once) or None)
    print(rate.samples, rate.work)


if __name__ == "__main__":
    main()
