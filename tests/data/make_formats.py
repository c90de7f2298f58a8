#!/usr/bin/env python3
"""Writes small files of each format, tests/data/<format>/, with the format's own library, and beside each what that
library reads from it (the file expect), for tests/source/test_formats.c.

Usage: make_formats.py [FORMAT ...]

Needs numpy, Pillow, h5py and lmdb. The same files come out each time, but for what the libraries themselves write.
"""

import sys
import warnings

from expected import DATA, collect_expectations
from make_arrays import npy, npz
from make_hdf5 import hdf5s
from make_lmdb import lmdbs
from make_manifest import manifests
from make_zip import zips

FORMATS = {"npy": npy, "npz": npz, "zip": zips, "lmdb": lmdbs, "hdf5": hdf5s, "manifest": manifests}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for wanted in sys.argv[1:] or FORMATS:
        FORMATS[wanted]()
        collect_expectations(DATA / wanted)
