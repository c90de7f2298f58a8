#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random-access samples a second for each format, against the format's own Python readers in a torch DataLoader.

    bench/formats.py [--row NAME]... [--through loader|source] [--workers N] [--seconds S] [--samples N] [--rounds N]
                     [--size BYTES] [--cold] [--tensorflow PYTHON] [--quick] [--program P]

A row is a format: how its files are made, and who reads them. Each reader yields samples in an order of its choice
among what it can: at random where the format's library allows it, else front to back, and the table says so. In each
round all readers run one after the other; the ratio is Stoker's rate over the best of the others in the same round,
and what is printed are medians. Beside a rate stands the CPU time that a sample took, in all threads and processes
and with what hands it over: on a machine that others use too it is the steadier of the two.

Through the loader (the default) Stoker is stoker.DataLoader with as many threads as the others have processes, and
payloads are JPEGs that all decode to RGB: Stoker itself, the others by Pillow; arrays of pixels need no decoding.
Through the source it is the program source_bench as built (bytes found, checked and split; --program names it), and
the payloads are random bytes that nobody decodes.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import format_files as files
import format_readers as readers
from format_files import BATCH, Absent, Job
from format_rates import Rate, drain, forget

HERE = Path(__file__).resolve().parent


@dataclass
class Row:
    make: Callable[[Job], str]  # writes the files; the URI that Stoker opens
    fields: str  # for source_bench
    open: Callable[[str], Any]  # as a dataset of stoker.datasets, by the URI's path
    others: dict[str, Callable[[Job], Any]] = field(default_factory=dict)  # each an iterable of samples, endless
    by_tensorflow: bool = False


def by_class(kind, *fields):
    """Opens a dataset of stoker.datasets with these fields."""
    def opened(path):
        from stoker import datasets
        return getattr(datasets, kind)(path, fields=fields)

    return opened


def hdf5_row(chunk, **options):
    return Row(files.make_hdf5(chunk, **options), "images,labels", by_class("HDF5", "images", "labels"),
               {"h5py": readers.read_h5py})


def zip_row(packed):
    return Row(files.make_zip(packed), "image,label", by_class("Zip", "image", "label"),
               {"zipfile": readers.read_zipfile})


ROWS = {
    "tar": Row(files.make_tar, "bin,cls", by_class("WebDataset", "jpg", "cls"),
               {"webdataset (buffer of 1000)": readers.read_webdataset,
                "tarfile's offsets, seek and read": readers.read_tarfile}),
    "tfrecord": Row(files.make_tfrecord, "image/encoded=bytes,label=int",
                    by_class("TFRecord", "image/encoded=image", "label=int"),
                    {"tfrecord (buffer of 1000)": readers.read_tfrecord}, by_tensorflow=True),
    "hdf5": hdf5_row(1, compression="gzip"),
    "hdf5-16": hdf5_row(16, compression="gzip"),
    "hdf5-i4": hdf5_row(1, compression="gzip", shuffle=True),
    "hdf5-lzf": hdf5_row(1, compression="lzf"),
    "hdf5-flat": hdf5_row(0),
    "lmdb": Row(files.make_lmdb, "value,key", by_class("LMDB", "image", "key"), {"lmdb": readers.read_lmdb}),
    "zip": zip_row(False),
    "zip-packed": zip_row(True),
    "npy": Row(files.make_npy, "row", by_class("Npy", "row"), {"numpy (mmap_mode)": readers.read_numpy}),
}


# ---- who reads ----------------------------------------------------------------------------------------------------


def loader_samples(uri, row, job):
    """stoker.DataLoader's, one epoch after the other."""
    try:
        import stoker
    except ImportError as why:
        raise Absent(str(why)) from why
    loader = stoker.DataLoader(row.open(uri.partition(":")[2]), batch_size=BATCH, shuffle=True, drop_last=True, seed=0,
                               num_workers=job.workers)
    for batch in itertools.chain.from_iterable(itertools.repeat(loader)):
        yield from itertools.repeat(batch, BATCH)


def answer_of(command):
    try:
        answer = subprocess.run(command, capture_output=True, text=True)
    except OSError as why:
        raise Absent(str(why)) from why
    if answer.returncode:
        raise Absent((answer.stderr.strip() or f"{command[0]} ended with {answer.returncode}").splitlines()[-1])
    return answer.stdout.splitlines()[-1].split()


def stoker_rate(program, uri, row, job, once):
    if job.decode:
        return drain(loader_samples(uri, row, job), job.seconds, once)
    return Rate(float(answer_of([program, uri, row.fields, str(job.workers), str(job.seconds)])[0]), None)


def tf_data_rate(python, job, once):
    if not python:
        raise Absent("--tensorflow names no interpreter that has TensorFlow")
    rate, work = answer_of([python, str(HERE / "format_tf_data.py"), str(job.folder), str(job.workers),
                            str(job.seconds), str(int(job.decode)), str(once or 0)])
    return Rate(float(rate), float(work))


def all_readers(row, uri, job, given, once):
    out = {"stoker": lambda: stoker_rate(given.program, uri, row, job, once)}
    out |= {who: (lambda read=read: drain(read(job), job.seconds, once)) for who, read in row.others.items()}
    if row.by_tensorflow:
        out["tf.data (buffer of 1000)"] = lambda: tf_data_rate(given.tensorflow, job, once)
    return out


# ---- rounds and their medians -------------------------------------------------------------------------------------


def run_rounds(name, who_reads, rounds, cold, folder):
    """The rates of each reader, one for each round; who is not here is said once and left out."""
    rates = {who: [] for who in who_reads}
    for _ in range(rounds):
        for who in list(rates):
            if cold:
                forget(folder)
            try:
                rates[who].append(who_reads[who]())
            except Absent as why:
                print(f"{name:16} {who:34} SKIP: {why}", flush=True)
                del rates[who]
    return rates


def ratios(rates, better):
    """Stoker against the best of the others, round by round."""
    others = [runs for who, runs in rates.items() if who != "stoker"]
    if "stoker" not in rates or not others:
        return []
    return [better(own, list(theirs)) for own, *theirs in zip(rates["stoker"], *others, strict=True)]


def print_ratios(name, what, values):
    if values:
        spread = f"({min(values):.2f} to {max(values):.2f})"
        print(f"{name:16} {what:34} {statistics.median(values):10.2f}   {spread}", flush=True)


def report(name, rates):
    for who, runs in rates.items():
        works = [run.work for run in runs if run.work]
        shown = f"{statistics.median(works):8.0f} us of CPU each" if works else ""
        print(f"{name:16} {who:34} {statistics.median(run.samples for run in runs):10.0f} samples/s {shown}")
    print_ratios(name, "ratio of rates", ratios(rates, lambda own, rest: own.samples / max(r.samples for r in rest)))
    if all(run.work for runs in rates.values() for run in runs):
        print_ratios(name, "ratio of CPU time", ratios(rates, lambda own, rest: min(r.work for r in rest) / own.work))


def measure(name, row, job, given):
    uri = row.make(job)
    for cold in (False, True) if given.cold else (False,):
        once = job.samples // BATCH * BATCH if cold else None
        label = f"{name} (cold)" if cold else name
        report(label, run_rounds(label, all_readers(row, uri, job, given, once), given.rounds, cold, job.folder))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--row", action="append", choices=ROWS, help="only these formats")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--seconds", type=float, default=5, help="of each reader in each round, at most")
    options.add_argument("--samples", type=int, default=4000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--size", type=int, default=100_000, help="bytes of a payload")
    options.add_argument("--cold", action="store_true",
                         help="measure also one pass of each reader over files that are not in the page cache")
    options.add_argument("--tensorflow", metavar="PYTHON", help="an interpreter that has TensorFlow, for tf.data")
    options.add_argument("--through", choices=["loader", "source"], default="loader", help="what of Stoker is measured")
    options.add_argument("--quick", action="store_true", help="one round, a second for each reader, and 400 samples")
    options.add_argument("--program", default=str(HERE.parent / "build/bench/source_bench"))
    given = options.parse_args()
    if given.cold and given.through == "source":
        options.error("--cold is a matter of the loader: source_bench has no end of a pass")
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")  # nobody writes to it
    if given.quick:
        given.seconds, given.samples, given.rounds = 1, 400, 1
    for name in given.row or ROWS:
        with tempfile.TemporaryDirectory(prefix="stoker-formats-") as folder:
            job = Job(Path(folder), given.samples, given.size, given.workers, given.seconds, given.through == "loader")
            try:
                measure(name, ROWS[name], job, given)
            except Absent as why:
                print(f"{name:16} SKIP: {why}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
