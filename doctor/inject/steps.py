# SPDX-License-Identifier: Apache-2.0
# The training process: next(), the GPU, steps, pinning, checkpoints. Part of watch.py.


def _new_iterator(original):
    def iterator(self, *args, **kwargs):
        begun = _begin_iterator(self, args, kwargs)
        try:
            out = original(self, *args, **kwargs)
        finally:
            _local.starting = None
        if begun is not None:
            _end_iterator(begun, self if out is None else out)
        return out

    return functools.update_wrapper(iterator, original)


@_guarded
def _begin_iterator(self, args, kwargs):
    """For _get_iterator() of a loader, and _reset(loader) of an iterator with persistent workers."""
    if args and (len(args) > 1 and args[1] or kwargs.get("first_iter")) or _local.job is not None:
        return None
    _process()
    _look_for_stages(None)  # here, so that forked workers need not do it
    _look_for_costs()
    global _started_last
    _local.starting = known = _known(args[0] if args else self)
    if _TRY:
        _keep_recipe(args[0] if args else self, known)
    known.started, _started_last = 0, known.number
    return known, _clock()


@_guarded
def _end_iterator(begun, iterator):
    known, start = begun
    iterator._stoker_watch, iterator._stoker_first = known, _FIRST
    _process().write(ITER, start, _clock() - start, _UNKNOWN, known.number, known.started)
    queue = getattr(iterator, "_worker_result_queue", None)
    if queue is not None:
        _pin_queues[id(queue)] = known.number


# The functions from here to _end_next run in every step, perhaps a thousand times per second. They are as few as
# possible, and catch their exceptions themselves: a wrapper like _guarded costs as much as what they do.


def _next(original):
    def _next_data(self):
        call = _begin_next(self) if _on else None
        if call is None:
            return original(self)
        try:
            data = original(self)
        except BaseException as error:
            _end_next(call, self, None, error)
            raise
        _end_next(call, self, data, None)
        return data

    return functools.update_wrapper(_next_data, original)


def _take_from_queue(original):
    def _try_get_data(self, *args, **kwargs):
        if _on:
            _note_empty(self)
        return original(self, *args, **kwargs)

    return functools.update_wrapper(_try_get_data, original)


def _note_empty(iterator) -> None:
    """Notes whether next() must wait. qsize() does not tell: a queue between processes counts a batch from put() on,
    while the feeder thread of the worker may still wait for the GIL to pickle it. Only data in the pipe are ready."""
    try:
        pipe = iterator.__dict__.get("_stoker_pipe")
        if pipe is None:
            pipe = iterator._stoker_pipe = _empty_test(iterator._data_queue)
        if pipe():
            iterator._stoker_waited = True
    except Exception as error:
        _fail(error)


def _empty_test(queue):
    """A function that tells whether this queue is empty."""
    reader = getattr(queue, "_reader", None)
    if reader is None:
        return queue.empty
    pipe = select.poll()
    pipe.register(reader.fileno(), select.POLLIN)
    return lambda: not pipe.poll(0)


def _queue_of(iterator) -> tuple:
    """Batches set aside, batches in the queue, and whether the next batch is set aside (-1: unknown)."""
    tasks = getattr(iterator, "_task_info", None)
    if tasks is not None:  # torch's
        # An iterable dataset that ends in one worker leaves requests that nobody answers.
        aside = max(0, len(tasks) - iterator._tasks_outstanding)
        return aside, iterator._data_queue.qsize(), aside > 0 and len(tasks.get(iterator._rcvd_idx, ())) == 2
    exchange = getattr(iterator, "_exchange", None)
    if exchange is not None:  # Stoker's worker processes
        ready = [exchange.wait((task.slot,), 0) >= 0 for task in list(iterator._tasks.values())[:64]]
        return sum(ready), 0, any(ready[: 1 if iterator._in_order else None])
    return 0, 0, False


def _begin_next(iterator):
    entered = _clock()
    try:
        known, local = getattr(iterator, "_stoker_watch", None), _local
        if known is None or local.job is not None:
            return None
        try:
            queue = _queue_of(iterator)
        except NotImplementedError:
            queue = None
        batch, first = iterator._num_yielded, iterator._stoker_first
        local.batch, local.loader = batch, known.number
        iterator._stoker_waited = iterator._stoker_first = 0
        return _open_call(entered, known, queue, batch, first)
    except Exception as error:
        _fail(error)
        return None


def _open_call(entered, known, queue, batch, flags):
    global _spent
    torch, stall, _local.trains = _torch, None, 1
    if torch is None:
        flags |= _TRAINING
    elif torch.is_grad_enabled():
        flags |= _TRAINING
        if torch.cuda.is_initialized():
            stall = _stalls.begin(torch.cuda)
    cpu, start = _cpu_clock(), _clock()
    took = start - entered
    _spent += took if took < _LONG else _LONG
    return known, queue, batch, flags, stall, cpu, start


def _failure_text(error: Exception) -> str:
    """The error and its cause; of the traceback of a worker only the first and the last line."""
    parts = []
    while error is not None and len(parts) < 4:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        text = lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1]}"
        parts.append(f"{type(error).__name__}: {text[:200]}")
        error = error.__cause__ or error.__context__
    return "; ".join(parts)[:480]


def _end_next(call, iterator, data, failed) -> None:
    global _spent, _copies
    end = _clock()
    try:
        known, queue, batch, flags, stall, cpu, start = call
        cpu, me = min(_cpu_clock() - cpu, 1 << 33) // 1000, _me or _process()
        if failed is not None:
            _end_of_data(me, call, end, failed)
            return
        ready = _UNKNOWN
        if queue is not None:
            aside, queued, there = queue
            # torch gets the memory of a tensor from a thread of the worker, which may answer late while the worker
            # computes.
            at_once = end - start - 1000 * cpu < 2_000_000
            later = ready = aside + queued
            tasks = getattr(iterator, "_task_info", None)
            if tasks is not None:
                there = there or not iterator._stoker_waited
                ready = ready if there and at_once else aside  # the counted batches were not ready yet
                later = max(aside, len(tasks) - iterator._tasks_outstanding)
            flags |= (_READY if at_once else 0) if there else _BEHIND if later else 0
        elif end - start < 300_000:
            flags |= _READY  # unknown, but it took no time
        me.taken = True
        me.write(NEXT, start, end - start, batch, known.number, ready, flags | min(cpu, 0xFFFFFF) << 8)
        if stall is not None:
            _stalls.end(stall, known.number, batch, start)
        if not known.seen and data is not None:
            known.seen = True
            size, tensors, _ = _weigh(data)
            _say(f"loader.{known.number}.batch_bytes", size)
            _say(f"loader.{known.number}.tensors", tensors)
        if me.collections:
            me.flush()
        _copies = 0
        if _syncs:
            _flush_syncs(me)
        if end - me.looked > 3_000_000_000 or flags & _FIRST:
            me.looked = end
            _look_at_cuda(me)
        took = _clock() - end
        _spent += took if took < _LONG else _LONG
    except Exception as error:
        _fail(error)


def _end_of_data(me, call, end, failed) -> None:
    known, _, batch, _, stall, _, start = call
    if stall is not None:
        _stalls.free.append(stall)
    if isinstance(failed, StopIteration):
        me.write(EPOCH, start, end - start, batch, known.number)
    elif isinstance(failed, Exception):
        _say(f"loader.{known.number}.failure", _failure_text(failed))


def _record(event) -> None:
    """Where the queue of the GPU is full, this waits for room in it, as the next launch of the program would: that is
    no cost of watching. The callers count at most _LONG."""
    global _spent
    start = _clock()
    event.record()
    took = _clock() - start
    if took > _RECORD_LONG:
        _spent = max(0, _spent - min(took, _LONG) + _RECORD_LONG)


class _Stalls:
    """Idle time of the GPU in next(): one event at its start, one at its end; queried later, never waited for."""

    def __init__(self) -> None:
        self.free: list = []
        self.open = None
        self.inherited: list = []

    def forget(self) -> None:
        self.inherited.append((self.free, self.open))  # they belong to the parent, and cannot be destroyed here
        self.free, self.open = [], None

    def begin(self, cuda):
        """None while a graph is captured, which recording or querying an event would invalidate."""
        if cuda.is_current_stream_capturing():
            return None
        pair = self.free.pop() if self.free else None
        if pair is None:
            pair = (cuda.Event(enable_timing=True), cuda.Event(enable_timing=True), cuda.current_device())
        elif pair[2] != cuda.current_device():
            return None
        _record(pair[0])
        return pair

    def end(self, pair, loader, batch, start) -> None:
        if self.open is None:
            self.open = deque()
        _record(pair[1])
        self.open.append((pair, loader, batch, start))
        self.collect(4)

    def collect(self, most: int) -> None:
        for _ in range(min(most, len(self.open or ()))):
            pair, loader, batch, start = self.open[0]
            if not pair[1].query():
                break
            self.open.popleft()
            _me.write(STALL, start, int(pair[0].elapsed_time(pair[1]) * 1e6), batch, loader)
            self.free.append(pair)


_stalls = _Stalls()
_copies = 0  # measured in this step
_sync_sites: dict = {}  # (code, line, name) -> number
_sync_callers: dict = {}  # (id of the code, instruction) -> number, code; at most _SITES lines
_syncs, _more_syncs = 0, {}  # waits in this step; number of the place -> start, duration and number of those not written
_started_last = 0  # the loader of the latest iterator
_pin_queues: dict = {}  # id of the queue of a pinning thread -> loader


def _look_at_cuda(me: _Process) -> None:
    """Updates values that may have changed: every few seconds, and at the end."""
    torch, distributed = _torch, sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        _say("rank", distributed.get_rank())
        _say("world_size", distributed.get_world_size())
    if torch is None or not torch.cuda.is_initialized():
        return
    if not hasattr(me, "device"):
        me.device = torch.cuda.current_device()
        about = torch.cuda.get_device_properties(me.device)
        _say("cuda.name", about.name)
        _say("cuda.uuid", getattr(about, "uuid", ""))
        _say("cuda.memory_total", about.total_memory)
        _say("cuda.capability", f"{about.major}.{about.minor}")
        _say("amp", int(_autocast_seen))
    _say("cuda.memory_peak", torch.cuda.max_memory_allocated())
    _say("tf32", int(torch.get_float32_matmul_precision() != "highest"))


_autocast_seen = False


def _autocast(original):
    def __enter__(self, *args):
        global _autocast_seen
        if not _autocast_seen and getattr(self, "_enabled", True):
            _autocast_seen = True
            _say_amp()
        return original(self, *args)

    return functools.update_wrapper(__enter__, original)


@_guarded
def _say_amp():
    if _me is not None:
        _say("amp", 1)


def _moves(original, torch):
    """Tensor.to, .cuda and .cpu: copies to the GPU, and waits for it."""
    plain, compiling, name = (torch.Tensor, torch.nn.Parameter), torch.compiler.is_compiling, original.__name__

    def move(self, *args, **kwargs):
        if compiling() or _me is None or not torch.cuda.is_initialized() or type(self) not in plain:
            return original(self, *args, **kwargs)
        start = _clock()
        out = original(self, *args, **kwargs)
        if out is not self:
            _moved(self, out, start, _clock(), name, kwargs.get("non_blocking", False), args)
        return out

    return functools.update_wrapper(move, original)


@_guarded
def _moved(before, after, start, end, name, non_blocking, args):
    global _copies
    if after.is_cuda and not before.is_cuda and _copies < _COPIES:
        _copies += 1
        non_blocking = non_blocking or any(arg is True for arg in args[1:3])
        flags = (_PINNED if before.is_pinned() else 0) | (_NON_BLOCKING if non_blocking else 0)
        _me.write(COPY, start, end - start, _UNKNOWN, 0, before.element_size() * before.numel() >> 10, flags)
    elif before.is_cuda and not after.is_cuda and not non_blocking:
        _waited(start, end, name)
    _charge(_clock() - end)


def _waits(original, torch, of_tensor: bool = True):
    """Calls in which the host waits for the GPU."""
    plain, compiling, name = (torch.Tensor, torch.nn.Parameter), torch.compiler.is_compiling, original.__name__

    def wait(*args, **kwargs):
        if compiling() or _me is None or of_tensor and not (type(args[0]) in plain and args[0].is_cuda):
            return original(*args, **kwargs)
        start = _clock()
        try:
            return original(*args, **kwargs)
        finally:
            _waited(start, _clock(), name)

    return functools.update_wrapper(wait, original)


def _waited(start, end, name):
    """Some programs wait a hundred times per step: the first waits are written one by one, the others as a sum."""
    global _syncs, _spent
    if not _on:
        return
    try:
        caller = sys._getframe(2)
        code = caller.f_code
        known = _sync_callers.get((id(code), caller.f_lasti))
        number = known[0] if known is not None and known[1] is code else _site_of(caller, name)
        _syncs += 1
        if _syncs <= _SYNCS:
            _me.write(SYNC, start, end - start, _UNKNOWN, 0, number)
        else:
            more = _more_syncs.get(number)
            if more is None:
                _more_syncs[number] = [start, end - start, 1]
            else:
                more[1] += end - start
                more[2] += 1
        took = _clock() - end
        _spent += took if took < _LONG else _LONG
    except Exception as error:
        _fail(error)


def _site_of(caller, name) -> int:
    """The number of the place in the program. A caller in the program itself is found without a search next time."""
    frame = _outside(caller)
    if frame is None:
        return _UNKNOWN
    place = frame.f_code, frame.f_lineno, name
    number = _sync_sites.get(place)
    if number is None:
        if len(_sync_sites) >= _SITES:
            return _UNKNOWN
        number = _sync_sites[place] = len(_sync_sites)
        _say(f"sync.{number}.where", f"{frame.f_code.co_filename}:{frame.f_lineno} {name}")
    if frame is caller:
        _sync_callers[id(frame.f_code), frame.f_lasti] = number, frame.f_code
    return number


def _flush_syncs(me: _Process) -> None:
    global _syncs, _more_syncs
    more, _syncs, _more_syncs = _more_syncs, 0, {}
    for number, (start, dur, count) in more.items():
        me.write(SYNC, start, dur, _UNKNOWN, 0, number, count)


_optimizers: dict = {}


def _before_step(optimizer, args, kwargs):
    if not _torch.compiler.is_compiling():
        _local.stepping = _clock()


def _after_step(optimizer, args, kwargs):
    if not _torch.compiler.is_compiling() and _on:
        _stepped(optimizer)


def _stepped(optimizer) -> None:
    global _spent
    end = _clock()
    try:
        local = _local
        start = local.stepping
        if start and local.job is None and (_me is None or _me.role == "trainer"):
            if not local.trains and _me is not None and _me.taken:
                _say("feeder", 1)
            number = _optimizers.setdefault(id(optimizer), len(_optimizers))
            (_me or _process()).write(STEP, start, end - start, _UNKNOWN, 0, number)
        took = _clock() - end
        _spent += took if took < _LONG else _LONG
    except Exception as error:
        _fail(error)


def _pin_loop(original):
    def loop(in_queue, *args, **kwargs):
        _local.loader, _local.pin_queue = _started_last, id(in_queue)
        return original(_Sent(in_queue), *args, **kwargs)

    return functools.update_wrapper(loop, original)


def _pinning(original):
    """pin_memory calls itself for the parts of a batch: only the outermost call counts."""

    def pin_memory(data, *args, **kwargs):
        if _local.pinning:
            return original(data, *args, **kwargs)
        _local.pinning, start = 1, _clock()
        try:
            out = original(data, *args, **kwargs)
        finally:
            _local.pinning = 0
        _pinned(start, out)
        return out

    return functools.update_wrapper(pin_memory, original)


@_guarded
def _pinned(start, out):
    end = _clock()
    if _me is not None:
        loader = _pin_queues.get(_local.pin_queue, _local.loader)
        _me.write(PIN, start, end - start, _local.batch, loader, _weigh(out)[0] >> 10)
    _charge(_clock() - end)
