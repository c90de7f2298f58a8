# SPDX-License-Identifier: Apache-2.0
# Worker processes: which batch they make, for which loader, and its transfer. Part of watch.py.


class _Sent:
    """The index queue of a worker: tells which batch is next."""

    def __init__(self, queue) -> None:
        self.queue = queue

    def get(self, *args, **kwargs):
        got = self.queue.get(*args, **kwargs)
        if type(got) is tuple and got and type(got[0]) is int:
            _local.batch = got[0]
        return got

    def __getattr__(self, name):
        return getattr(self.queue, name)


@_guarded
def _begin_worker(number: int, seed: int, loader):
    """`loader` is known if the process was forked; otherwise it is found by the seed that the parent recorded."""
    multiprocessing = sys.modules["multiprocessing"]
    parent = multiprocessing.parent_process()
    parent = os.getppid() if parent is None else parent.pid
    if loader is None:
        with io.FileIO(os.path.join(_RUN, "process", str(parent))) as file:
            for line in file.readall().decode("utf-8", "replace").splitlines():
                key, _, value = line.partition(" ")
                if key.endswith(".seed") and value == str(seed):
                    loader = int(key.split(".")[1])
    _local.loader = 0 if loader is None else loader
    me = _process("worker", _WORKER)
    _say("parent", parent)
    _say("worker.id", number)
    _say("worker.loader", _local.loader)
    return me


def _time_sharing(storage) -> None:
    """Times the allocation of shared memory for a batch, which only workers need. It is part of their collating."""
    original = getattr(getattr(storage, "_new_shared", None), "__func__", None)
    if original is None:
        return  # not a class method in this version

    def _new_shared(cls, *args, **kwargs):
        job = _local.job
        if job is None:
            return original(cls, *args, **kwargs)
        cpu, start = _cpu_clock(), _clock()
        try:
            return original(cls, *args, **kwargs)
        finally:
            ns, calls, used = job.shared or (0, 0, 0)
            job.shared = ns + _clock() - start, calls + 1, used + _cpu_clock() - cpu

    storage._new_shared = classmethod(_new_shared)


def _worker_loop(original):
    def loop(*args, **kwargs):
        try:
            started, args = _local.starting, list(args)
            if _begin_worker(args[10], args[8], started and started.number) is not None:
                args[2] = _Sent(args[2])
                if hasattr(args[3], "_send_bytes"):
                    _time_putting(args[3], _local.loader)
                _time_sharing(getattr(_torch, "UntypedStorage", None))
        except Exception as error:
            _fail(error)
        return original(*args, **kwargs)

    return functools.update_wrapper(loop, original)


def _is_end(sent) -> bool:
    """Not a batch, but the end of the data of a worker. torchdata sends (batch, worker, state)."""
    sent = sent[0] if type(sent) is tuple and sent else sent
    return type(sent).__name__ == "_IterableDatasetStopIteration"


def _time_putting(queue, loader: int) -> None:
    """A queue pickles and sends in its own thread: dumps starts a transfer, and the following send ends it."""
    queues = sys.modules["multiprocessing.queues"]
    send, pickler, under_way = queue._send_bytes, queues._ForkingPickler, []

    class Pickler(pickler):
        @classmethod
        def dumps(cls, obj, protocol=None):
            start, cpu = _clock(), _cpu_clock()
            out = pickler.dumps(obj, protocol)
            if type(obj) is tuple and len(obj) == 2 and type(obj[0]) is int and not _is_end(obj[1]):
                under_way[:] = start, cpu, obj[0]
            return out

    def send_bytes(*args):
        send(*args)
        if under_way:
            _put(*under_way, loader)
            under_way.clear()

    queues._ForkingPickler, queue._send_bytes = Pickler, send_bytes


@_guarded
def _put(start, cpu, batch, loader):
    now = _clock()
    _me.write(PUT, start, now - start, batch, loader, 0, (_cpu_clock() - cpu) // 1000)
    _charge(_clock() - now)


def _start_process(original):
    def start(self):
        _note_worker(self)
        return original(self)

    return functools.update_wrapper(start, original)


@_guarded
def _note_worker(process):
    """Called before a worker starts: a worker that is not forked finds its loader by the seed."""
    loader = _local.starting
    if loader is not None:
        loader.started += 1
        args = process._args
        seed = args[8] if len(args) > 10 else getattr(args[2], "base_seed", 0) if len(args) > 2 else 0
        if seed != loader.seed:
            loader.seed = seed
            _say(f"loader.{loader.number}.seed", seed)
