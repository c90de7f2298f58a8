# SPDX-License-Identifier: Apache-2.0
"""watch.py - what `stoker run` injects into the Python processes of a run, as their sitecustomize

This is the first of several parts that embed.py joins into one file; they share its namespace.

It waits for the program to import torch (or Stoker), then records events of loaders, workers, steps and copies in
RUN/events/PID (events.h), and describes them in RUN/process/PID (run.h). A process without a loader and an optimizer
writes nothing. It changes no results: it draws no random numbers, waits for nothing, keeps no batches and prints
nothing. A failure in here turns it off ("watch.error") and never reaches the program.

The making of batches is observed where Python calls it: files opened by open(), and the functions and methods in
_STAGES. Blind spots, which are not attributed to any stage: reads by C libraries that are not listed there, and by
mmap (LMDB, Arrow, memmap); transforms that are functions of the program; threads started by the dataset. Nothing is
measured inside torch.compile. CUDA copies and waits are observed at the methods of plain tensors, not in C++.
"""

import _thread
import builtins
import io
import os
import sys
import time

_LIBRARY = os.path.dirname(os.__file__)  # Python's own
_RUN = os.environ.get("STOKER_RUN", "")
_HEADER, _CHUNK = 4096, 2048  # header size in bytes; records whose disk space is reserved at a time
_TRAINER, _WORKER = 1 << 16, 1 << 14  # records in the ring buffer
NEXT, STALL, STEP, ITER, PIN, COPY, SYNC, SAVE, GC, EPOCH, LOG, SAMPLE, TRIED_TORCH, TRIED_STOKER = range(1, 15)
FETCH, READ, NETWORK, DECOMPRESS, DECODE, TRANSFORM, COLLATE, PUT, OPENED, SLOWEST, DISCARDED, SHARED = range(16, 28)
HELPERS, ARCHIVE, REDUCED = 28, 29, 30
_READY, _BEHIND, _FIRST, _TRAINING = 1, 2, 4, 8  # of NEXT
_PINNED, _NON_BLOCKING = 1, 2  # of COPY
_UNKNOWN = 0xFFFFFFFF
_LIBRARIES = {"torch", "stoker", "lightning", "pytorch_lightning", "lightning_fabric", "accelerate", "transformers"}
_LIBRARIES |= {"torchdata", "contextlib", "functools", "sitecustomize", "_stoker_watch"}
_SITES, _LOADERS = 64, 64  # most places that wait for the GPU, and most loaders, that are described
_COPIES, _SYNCS = 32, 16  # most copies measured in a step, and most waits for the GPU written one by one
_SHARE = 300  # measuring stages may take 1 / _SHARE of the time of a batch
_LONG = 200_000  # ns: if watching seems to take longer than this, another process had the CPU
_RECORD_LONG = 20_000  # ns: if recording a CUDA event takes longer than this, the queue of the GPU is full

# Functions and methods that are timed as stages of a batch, in modules that the program has imported.
_STAGES = {
    READ: "numpy:load,fromfile os:read,pread torch:load torchvision.io:read_file torchvision.io.image:read_file "
    "h5py._hl.dataset:Dataset.__getitem__,Dataset.read_direct tarfile:_FileInFile.read mmap:mmap.read",
    NETWORK: "urllib.request:urlopen http.client:HTTPResponse.read,HTTPResponse.readinto,HTTPConnection.getresponse "
    "socket:create_connection,socket.recv,socket.recv_into ssl:SSLSocket.recv,SSLSocket.recv_into "
    "requests.sessions:Session.request urllib3.response:HTTPResponse.read botocore.client:BaseClient._make_api_call "
    "fsspec.asyn:sync",
    DECOMPRESS: "zlib:decompress bz2:decompress,BZ2File.read,BZ2File.readinto gzip:decompress,GzipFile.read,"
    "GzipFile.read1,GzipFile.readinto lzma:decompress,LZMAFile.read zipfile:ZipExtFile.read,ZipExtFile.read1 "
    "zstandard:decompress lz4.frame:decompress lz4.block:decompress snappy:decompress blosc:decompress,unpack_array",
    DECODE: "PIL.Image:open PIL.ImageFile:ImageFile.load PIL.WebPImagePlugin:WebPImageFile.load "
    "PIL.AvifImagePlugin:AvifImageFile.load cv2:imread,imdecode torchvision.io:read_image,decode_image,decode_jpeg,"
    "decode_png,decode_gif,decode_webp,read_video torchvision.io.image:read_image,decode_image,decode_jpeg,decode_png,"
    "decode_gif,decode_webp torchaudio:load soundfile:read librosa:load imageio:imread imageio.v2:imread "
    "imageio.v3:imread skimage.io:imread turbojpeg:TurboJPEG.decode simplejpeg:decode_jpeg pydicom:dcmread",
    TRANSFORM: "torchvision.transforms.transforms:Compose.__call__ "
    "torchvision.transforms.v2._container:Compose.forward "
    "PIL.Image:Image.convert,Image.resize,Image.crop,Image.rotate,Image.transpose,Image.transform,Image.filter "
    "albumentations.core.composition:Compose.__call__ "
    "transformers.tokenization_utils_base:PreTrainedTokenizerBase.__call__",
}  # fmt: skip
# Opening these reads their whole directory, or starts a library: once per worker is enough.
_ARCHIVES = "zipfile:ZipFile.__init__ tarfile:TarFile.getmembers h5py._hl.files:File.__init__ sqlite3:connect"
_OPENS_BY_ITSELF = {"imread", "read_file", "fromfile"}  # C functions that take a path

_on = True  # False after a failure
_me = None  # this process, once it has something to report
_said: dict = {}  # what this process has reported about itself
_spent = 0  # ns that watching has cost this process
_torch = None  # the module, once it is imported
_clock, _cpu_clock = getattr(time, "monotonic_ns", None), getattr(time, "thread_time_ns", None)  # Python 3.7


class _Local(_thread._local):
    job = None  # the batch that this thread is making
    batch, loader = _UNKNOWN, 0  # the batch that next() returns, or that a worker makes
    starting = None  # the loader whose workers are being started
    pinning = stepping = pin_queue = costing = 0
    trains = 0  # 1: this thread takes batches


_local = _Local()


def _fail(error: BaseException) -> None:
    global _on
    _on = False
    try:
        trace, line = error.__traceback__, 0
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == __file__:
                line = trace.tb_lineno
            trace = trace.tb_next
        _say("watch.error", f"{type(error).__name__}: {error} (line {line})"[:500])
    except Exception:
        pass


def _say(key: str, value: object) -> None:
    """Writes a line to RUN/process/PID."""
    text = str(value).replace("\\", "\\\\").replace("\n", "\\n").replace("\r", " ")
    if _said.get(key) == text:
        return
    _said[key] = text
    folder = os.path.join(_RUN, "process")
    os.makedirs(folder, exist_ok=True)
    file = os.open(os.path.join(folder, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(file, f"{key} {text}\n".encode("utf-8", "replace"))
    finally:
        os.close(file)


def _guarded(function):
    """For everything called from wrappers: the program must never see its exceptions."""

    def guarded(*args):
        if not _on:
            return None
        try:
            return function(*args)
        except Exception as error:
            _fail(error)
            return None

    return guarded


def _import_all() -> None:
    """Imports modules that a program without torch should not pay for."""
    global copy, functools, gc, linecache, mmap, select, struct, weakref, deque, _RECORD, _HEAD, _TALLY
    import copy
    import functools
    import gc
    import linecache
    import mmap
    import select
    import struct
    import weakref
    from collections import deque

    _RECORD, _HEAD, _TALLY = struct.Struct("=QQIHHII"), struct.Struct("=8sIIQQQ"), struct.Struct("=QQ")


class _Process:
    """The two files of this process."""

    def __init__(self, role: str, capacity: int) -> None:
        self.pid, self.role, self.capacity = os.getpid(), role, capacity
        self.lock = _thread.RLock()
        self.written, self.reserved, self.looked = 0, 0, _clock()
        self.collections = deque(maxlen=256)  # of the garbage collector, not yet written
        self.collecting = 0  # start time
        self.taken = False  # a batch was taken
        self.path = os.path.join(_RUN, "events", str(self.pid))
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        size = _HEADER + 32 * capacity
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            os.ftruncate(file, size)
            self.map = mmap.mmap(file, size)
        finally:
            os.close(file)
        self._reserve()
        _HEAD.pack_into(self.map, 0, b"stkrev1", 32, self.pid, capacity, 0, 0)
        self._introduce()

    def _reserve(self) -> None:
        """Writing to a mapped page without disk space would kill the process: reserve the space first."""
        if self.reserved >= self.capacity:
            return
        file = os.open(self.path, os.O_RDWR)
        try:
            start = 0 if not self.reserved else _HEADER + 32 * self.reserved
            os.posix_fallocate(file, start, _HEADER + 32 * (self.reserved + _CHUNK) - start)
        finally:
            os.close(file)
        self.reserved += _CHUNK

    def write(self, kind, start, dur, batch=_UNKNOWN, loader=0, a=0, b=0) -> None:
        self.write_all(((kind, start, dur, a, b),), batch, loader)

    def write_all(self, events, batch, loader) -> None:
        """Each is (kind, start, duration, a, b)."""
        with self.lock:
            number, batch, loader = self.written, batch & _UNKNOWN, loader & 0xFFFF
            for kind, start, dur, a, b in events:
                if number >= self.reserved:
                    self._reserve()
                _RECORD.pack_into(
                    self.map, _HEADER + number % self.capacity * 32, start, dur if dur > 0 else 0, batch, kind, loader,
                    a if 0 <= a < _UNKNOWN else _UNKNOWN, b if 0 <= b < _UNKNOWN else _UNKNOWN,
                )  # fmt: skip
                number += 1
            self.written = number
            _TALLY.pack_into(self.map, 24, number, _spent)

    def _introduce(self) -> None:
        torch = sys.modules.get("torch")
        facts = {
            "pid": self.pid, "parent": os.getppid(), "role": self.role, "argv": " ".join(getattr(sys, "argv", [])),
            "cwd": os.getcwd(), "python": sys.version.split()[0], "torch": getattr(torch, "__version__", ""),
            "rank": os.environ.get("RANK", ""), "local_rank": os.environ.get("LOCAL_RANK", ""),
            "world_size": os.environ.get("WORLD_SIZE", ""),
        }  # fmt: skip
        if torch is not None and self.role == "trainer":
            facts["threads.torch"] = torch.get_num_threads()
        for key, value in facts.items():
            if value != "":
                _say(key, value)

    def flush(self) -> None:
        """Garbage collections are written here: the collector may run at any point."""
        while self.collections:
            self.write(GC, *self.collections.popleft())


def _process(role: str = "trainer", capacity: int = _TRAINER) -> _Process:
    global _me
    if _me is None:
        with _swap_lock:
            if _me is None:
                _calibrate()
                _me = _Process(role, capacity)
                gc.callbacks.append(_collected)
    return _me


def _collected(phase: str, about: dict) -> None:
    me = _me
    if me is None or not _on:
        return
    if phase == "start":
        me.collecting = _clock()
    elif me.collecting:
        took = _clock() - me.collecting
        if took > 200_000:
            me.collections.append((me.collecting, took, _UNKNOWN, 0, about.get("generation", 0)))


def _after_fork() -> None:
    """The child opens its own files when it has something to write. CUDA events of the parent are not released."""
    global _me, _spent, _local, _swap_lock, _swapped, _syncs, _more_syncs
    inherited, _local, _swap_lock = _local, _Local(), _thread.RLock()
    _local.starting, _me, _spent, _syncs, _more_syncs = inherited.starting, None, 0, 0, {}
    _said.clear()
    _wanted.clear()
    _operators.clear()
    _recipes.clear()
    if _swapped:
        _swapped = 0
        _put_functions(False, _swaps)
    _stalls.forget()
    if _collected in gc.callbacks:
        gc.callbacks.remove(_collected)
