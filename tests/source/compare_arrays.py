# SPDX-License-Identifier: Apache-2.0
"""HDF5, LMDB, zip and numpy files of random shapes, against what h5py, lmdb, zipfile and numpy read. Speaks TAP.

The seed is fixed; STOKER_CASES asks for more cases than the few of each kind.
"""

import os
import random
import tempfile
import zipfile
from pathlib import Path

import tap

try:
    import numpy as np
except ImportError as why:
    tap.skip_all(why)

CASES = int(os.environ.get("STOKER_CASES", "12"))
TYPES = ["u1", "<u2", ">u4", "<u8", "i1", ">i2", "<i4", ">i8", "<f2", "<f4", ">f8", "?"]
chance = random.Random(11)


def numbers(shape, dtype):
    count = int(np.prod(shape, dtype=np.int64))
    bits = np.frombuffer(chance.randbytes(count * np.dtype(dtype).itemsize), "u1")
    if np.dtype(dtype).kind == "b":
        bits = bits & 1
    elif np.dtype(dtype).kind == "f":  # numbers only, and such that shuffle and deflate have something to do
        return (np.cumsum(bits[:count].astype("f8") - 127) / 16).astype(dtype).reshape(shape)
    return bits.view(dtype).reshape(shape)


def native(row):
    """A sample's field as the dump program gives it."""
    row = np.asarray(row)
    if row.ndim == 0 and row.dtype.kind == "u" and int(row) >= 2**63:  # whole numbers are int64
        return None
    if row.ndim == 0:
        return float(row) if row.dtype.kind == "f" else int(row)
    return np.ascontiguousarray(row.astype(row.dtype.newbyteorder("="))).tobytes()


def told(samples):
    """A sample with a number beyond int64 is refused."""
    return ["refused" if isinstance(s, tap.Refused) or None in s else s for s in samples]


def shape():
    return tuple(chance.randint(1, 9) for _ in range(chance.randint(1, 4)))


def hdf5(root):
    try:
        import h5py
    except ImportError as why:
        tap.note(f"no HDF5: {why}")
        return
    packings = [{}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True}, {"shuffle": True},
                {"compression": "lzf"}, {"compression": "lzf", "shuffle": True}, {"fletcher32": True},
                {"compression": "gzip", "shuffle": True, "fletcher32": True}, {"scaleoffset": 0}]
    for case in range(CASES * 2):
        path, count, arrays = root / f"{case}.h5", chance.randint(1, 9), {}
        options = {"libver": chance.choice([("earliest", "v110"), ("v108", "v108"), ("v110", "v110")])}
        if chance.random() < 0.3:
            options["userblock_size"] = 1024
        with h5py.File(path, "w", **options) as file:
            for k in range(chance.randint(1, 5)):
                data = numbers((count, *shape()[: chance.randint(0, 3)]), chance.choice(TYPES))
                packing = chance.choice(packings)
                if "scaleoffset" in packing and data.dtype.kind not in "iu":
                    packing = {}
                chunked = packing or chance.random() < 0.5
                chunks = tuple(chance.randint(1, n + 2) for n in data.shape) if chunked else None
                most = tuple(None if chance.random() < 0.5 else n + 2 for n in data.shape) if chunks else None
                if most and packing.get("compression") == "lzf" and most[0] and most.count(None) == 1:
                    most = (None,) * len(most)  # that index is left to the library, and Debian's has no LZF
                made = file.create_dataset(f"d{k}", data.shape, data.dtype, chunks=chunks, maxshape=most,
                                           fillvalue=data.dtype.type(1), **packing)
                written = chance.randint(0, count)
                made[:written] = data[:written]
            arrays = {name: file[name][...] for name in file}
        got = tap.Opened(f"hdf5:{path}")
        want = [tuple(native(a[i]) for a in arrays.values()) for i in range(count)]
        tap.same(told(got.samples), told(want), f"hdf5 {case}")
        path.unlink()


def npz(root):
    for case in range(CASES):
        path, count = root / f"{case}.npz", chance.randint(0, 9)
        arrays = {f"a{k}": numbers((count, *shape()[: chance.randint(0, 3)]), chance.choice(TYPES))
                  for k in range(chance.randint(1, 5))}
        (np.savez if case % 2 else np.savez_compressed)(path, **arrays)
        got = tap.Opened(path)
        want = [tuple(native(a[i]) for a in arrays.values()) for i in range(count)]
        tap.same(told(got.samples), told(want), f"npz {case}")


def lmdb(root):
    try:
        import lmdb
    except ImportError as why:
        tap.note(f"no LMDB: {why}")
        return
    for case in range(CASES):
        path = root / f"{case}.lmdb"
        with lmdb.open(str(path), map_size=64 << 20, writemap=case % 2 == 1) as env:
            for _ in range(chance.randint(1, 3)):
                with env.begin(write=True) as txn:
                    for _ in range(chance.choice([3, 50, 2000])):
                        size = chance.choice([0, 5, 100, 2000, 2100, 4080, 4096, 20000]) if chance.random() < 0.2 else 9
                        txn.put(chance.randbytes(chance.randint(1, 40)), chance.randbytes(size))
                with env.begin(write=True) as txn:
                    for key, _ in list(txn.cursor())[:: chance.choice([2, 3, 50])]:
                        txn.delete(key)
            with env.begin() as txn:
                want = [(bytes(value), bytes(key)) for key, value in txn.cursor()]
        got = tap.Opened(path, "value,key=bytes")
        tap.same(got.samples, want, f"lmdb {case}: {len(want)} entries")


def zips(root):
    for case in range(CASES):
        path, names = root / f"{case}.zip", set()
        while len(names) < 20:
            names.add("/".join(chance.choice(["a", "b", "ä", "a b", "B"]) for _ in range(chance.randint(1, 3))) +
                      f"/{chance.randint(0, 99)}.{chance.choice(['jpg', 'PNG', 'txt'])}")
        with zipfile.ZipFile(path, "w") as archive:
            for name in sorted(names, key=lambda _: chance.random()):
                data = bytes(chance.choices(b"abcd", k=chance.choice([0, 1, 100, 70000])))
                archive.writestr(name, data, chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
        with zipfile.ZipFile(path) as archive:
            images = [n for n in archive.namelist() if not n.endswith("txt")]
            common = os.path.commonpath([os.path.dirname(n) for n in images])
            root_size = len(common) + 1 if common else 0
            flat = all("/" not in n[root_size:] for n in images)
            images = [n for n in images if flat or "/" in n[root_size:]]
            classes = sorted({n[root_size:].split("/")[0] for n in images})
            images.sort(key=lambda n: (n[root_size:].split("/")[0] if not flat else "", *os.path.split(n)))
            want = [(archive.read(n), 0 if flat else classes.index(n[root_size:].split("/")[0]), n.encode())
                    for n in images]
        got = tap.Opened(path, "image,label,name")
        tap.same(got.samples, want, f"zip {case}")


with tempfile.TemporaryDirectory(prefix="stoker-arrays-") as folder:
    for part in hdf5, npz, lmdb, zips:
        part(Path(folder))
tap.finish()
