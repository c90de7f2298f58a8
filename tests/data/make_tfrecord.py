#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/tfrecord/ with TensorFlow: records as it frames, packs and serialises them.

Usage: make_tfrecord.py [FOLDER]

Beside each file NAME.tfrecord stands NAME.json with what TensorFlow itself reads back from it: for each record a
dictionary of features; bytes in hexadecimal. TensorFlow is large, so the files stand in the tree; the test
tests/source/compare_tfrecord.py makes them anew where TensorFlow is installed.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

PICTURE = b"\xff\xd8\xff\xe0 begins as a JPEG does"


def example(tf, i):
    def ints(*values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def floats(*values):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    def data(*values):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))

    return tf.train.Example(features=tf.train.Features(feature={
        "image/encoded": data(PICTURE + bytes(i)),
        "image/class/label": ints(i - 2),
        "image/class/text": data("Füchse %d".encode() % i),
        "box": floats(0.5, -1.25, i, 3e38),
        "score": floats(i / 3),
        "ids": ints(*range(-i, i * i * 1000, 997)),
        "raw": data(bytes(range(i, i + 12))),
        "big": ints(2**63 - 1, -2**63, 0, 127, 128),
        "many": data(b"a", b"bc", b""),
        "empty": tf.train.Feature(),
    })).SerializeToString()


def sequence(tf, i):
    def ints(*values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def floats(*values):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    steps = tf.train.FeatureLists(feature_list={
        "tokens": tf.train.FeatureList(feature=[ints(10 * i + k) for k in range(i + 1)]),
        "frames": tf.train.FeatureList(feature=[floats(k, k + 0.5, -k) for k in range(i)]),
    })
    context = tf.train.Features(feature={"label": ints(i)})
    return tf.train.SequenceExample(context=context, feature_lists=steps).SerializeToString()


def values(feature):
    kind = feature.WhichOneof("kind")
    if kind is None:
        return None
    found = list(getattr(feature, kind).value)
    return [v.hex() for v in found] if kind == "bytes_list" else found


def read_back(tf, path, packing):
    """What TensorFlow reads, parsed by its own messages."""
    read = []
    for record in tf.data.TFRecordDataset(str(path), compression_type=packing or None):
        parsed = tf.train.SequenceExample.FromString(record.numpy())
        features = {name: values(feature) for name, feature in parsed.context.feature.items()}
        for name, steps in parsed.feature_lists.feature_list.items():
            features[name] = [v for step in steps.feature for v in values(step) or []]
        read.append(dict(sorted(features.items())))
    return read


def main(folder):
    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    plans = [("examples", "", example, 7), ("gzip", "GZIP", example, 5), ("zlib", "ZLIB", example, 5),
             ("sequences", "", sequence, 5), ("none", "", example, 0)]
    for name, packing, make, count in plans:
        path = folder / f"{name}.tfrecord"
        with tf.io.TFRecordWriter(str(path), options=packing) as writer:
            for i in range(count):
                writer.write(make(tf, i))
        path.with_suffix(".json").write_text(json.dumps(read_back(tf, path, packing), indent=0) + "\n")
    print(f"{folder}: by TensorFlow {tf.__version__}")


if __name__ == "__main__":
    default = pathlib.Path(__file__).parent / "tfrecord"
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
