# SPDX-License-Identifier: Apache-2.0
# A batch from its beginning to its end: what is measured of it, and what a dataset's fetcher does meanwhile. Part of watch.py.


@_guarded
def _begin_job(dataset):
    if _local.job is not None:
        return None
    me = _me or _process()
    _look_for_stages(dataset)
    entered = _clock()
    if _looks < _LOOKS and me.role == "worker":
        _look_at_generators(dataset)
    swaps = not _swapped if me.role == "worker" else _unused < 8 or not _local.batch & 15  # a worker keeps them
    if swaps:
        _swap(1)
    _local.job = job = _Job(_local.batch, _local.loader)
    job.swaps = swaps and me.role != "worker"
    _charge(job.start - entered)
    return job


def _charge(ns: int) -> None:
    global _spent
    _spent += ns if ns < _LONG else _LONG


def _sampled(job: _Job, index, start: int) -> int:
    """A sample is finished; returns the current time."""
    now = _clock()
    job.samples += 1
    if job.active:
        job.timed += 1
    if now - start > job.slow:
        job.slow, job.slow_index = now - start, index
    job.active = not (job.samples + job.batch) % _every
    return now


@_guarded
def _end_job(job, done: bool):
    global _every, _spent, _unused
    end, cpu, me = _clock(), _cpu_clock(), _me
    _local.job = None
    if job.swaps:
        _swap(-1)
    _unused = 0 if any(job.calls[:5]) or job.archives else _unused + 1
    if _states:
        _compare_generators()
    if not done:
        return
    batch, loader, start, dur = job.batch, job.loader, job.start, end - job.start
    index, wanted = job.slow_index, _wanted.get(loader)
    events = [(FETCH, start, dur, job.samples, (cpu - job.cpu) // 1000)]
    # Samples are extrapolated, but never to more than the total: if the measured ones were slow, all stages get less.
    collate = COLLATE - READ
    by_samples = job.samples / job.timed if job.timed else 1.0
    by_time = min(by_samples, max(1.0, (dur - job.ns[collate]) / (sum(job.ns[:collate]) or 1)))
    for place in range(6):
        calls = job.calls[place]
        if calls:
            scale, count = (1.0, calls) if place == collate else (by_time, round(by_samples * calls))
            used = job.cpus[place] * job.ns[place] // (job.measured[place] or 1)
            part = int(scale * job.ns[place])
            events.append((READ + place, start, part, count, max(0, int(scale * used) // 1000)))
            if wanted and (READ + place == DECODE or READ + place == TRANSFORM and not job.reduced):
                lost = int(_discarded(job, READ + place, wanted) * part)
                events.append((DISCARDED, start, lost, READ + place, 0))
                if READ + place == TRANSFORM and (TRANSFORM, -1) in job.sizes:
                    events.append((REDUCED, start, int(_reduced(job) * part), 0, 0))
    if job.all_cpu:  # threads of OpenMP, MKL and the like, which spin between two pieces of work
        helpers = time.process_time_ns() - job.all_cpu - (cpu - job.cpu)
        if helpers > dur >> 4:
            events.append((HELPERS, start, helpers, 0, 0))
    if job.shared:
        ns, calls, used = job.shared
        events.append((SHARED, start, ns, calls, used // 1000))
    if job.archives:
        ns, calls, used = job.archives
        events.append((ARCHIVE, start, int(by_time * ns), round(by_samples * calls), int(by_time * used) // 1000))
    if job.opened:
        events.append((OPENED, start, 0, round(by_samples * job.opened), int(by_samples * job.bytes) >> 10))
    _add_operators(job, dur, by_samples, by_time)
    if job.slow:
        known = isinstance(index, int) and 0 <= index < _UNKNOWN
        events.append((SLOWEST, start, job.slow, index if known else _UNKNOWN, 0))
    me.write_all(events, batch, loader)
    if me.collections:
        me.flush()
    cost = sum(job.calls) * _stage_cost
    if cost * _SHARE > dur and _every < 64:
        _every *= 2
    elif cost * _SHARE * 4 < dur and _every > 1:
        _every //= 2
    _spent += cost + 200 * job.samples
    _charge(_clock() - end)


def _calibrate() -> None:
    """Measures the cost of one stage call on this machine."""
    global _stage_cost
    nothing, _local.job = _stage(TRANSFORM, len), _Job(0, 0)  # the costliest kind
    start = _clock()
    for _ in range(64):
        nothing(())
    _stage_cost, _local.job = (_clock() - start) // 64, None


def _samples_of(dataset, indices, job: _Job) -> list:
    """[dataset[i] for i in indices], and what _sampled() does, without a call for each sample."""
    data, clock, every, batch = [], _clock, _every, job.batch
    samples = timed = slow = 0
    slow_index, active, now = _UNKNOWN, True, job.start
    for index in indices:
        data.append(dataset[index])
        samples += 1
        timed += active
        before, now = now, clock()
        if now - before > slow:
            slow, slow_index = now - before, index
        if every > 1:
            job.active = active = not (samples + batch) % every
    job.samples, job.timed, job.slow, job.slow_index = samples, timed, slow, slow_index
    return data


def _fetch_of_map(original):
    by_list = "__getitems__" in original.__code__.co_consts or "__getitems__" in original.__code__.co_names

    def fetch(self, possibly_batched_index):
        job = _begin_job(self.dataset)
        if job is None:
            return original(self, possibly_batched_index)
        done = False
        try:
            if not self.auto_collation:
                data = self.dataset[possibly_batched_index]
                _sampled(job, possibly_batched_index, job.start)
            elif by_list and hasattr(self.dataset, "__getitems__") and self.dataset.__getitems__:
                data = self.dataset.__getitems__(possibly_batched_index)
                job.samples = job.timed = len(possibly_batched_index)
            else:
                data = _samples_of(self.dataset, possibly_batched_index, job)
            job.active = True
            data = _collate(self.collate_fn, data)
            _note_wanted(job, data)
            done = True
            return data
        finally:
            _end_job(job, done)

    return functools.update_wrapper(fetch, original)


def _fetch_of_iterable(original):
    def fetch(self, possibly_batched_index):
        if self.ended:
            raise StopIteration
        job = _begin_job(self.dataset)
        if job is None:
            return original(self, possibly_batched_index)
        done = False
        try:
            if self.auto_collation:
                data, now = [], job.start
                for _ in possibly_batched_index:
                    try:
                        data.append(next(self.dataset_iter))
                    except StopIteration:
                        self.ended = True
                        break
                    now = _sampled(job, _UNKNOWN, now)
                    if _firsts is not None and len(_firsts) < _FIRST_SAMPLES and _me.role == "worker":
                        _note_first(data[-1])
                if len(data) == 0 or (self.drop_last and len(data) < len(possibly_batched_index)):
                    raise StopIteration
            else:
                data = next(self.dataset_iter)
                _sampled(job, _UNKNOWN, job.start)
            job.active = True
            data = _collate(self.collate_fn, data)
            _note_wanted(job, data)
            done = True
            return data
        finally:
            _end_job(job, done)

    return functools.update_wrapper(fetch, original)


def _whole(original, count):
    """Any other function that makes a batch; count(args) is its number of samples."""

    def fetch(self, *args):
        job = _begin_job(getattr(self, "_dataset", None))
        done = False
        try:
            data = original(self, *args)
            done = data is not None
            return data
        finally:
            if job is not None:
                if not job.samples:
                    job.samples = job.timed = count(args)
                if done:
                    _note_wanted(job, data)
                _end_job(job, done)

    return functools.update_wrapper(fetch, original)
