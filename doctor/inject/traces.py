# SPDX-License-Identifier: Apache-2.0
# Tracebacks of the program do not show the frames of the watch. Part of watch.py.


def _without_ours(trace):
    kept = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != __file__:
            kept.append(trace)
        trace = trace.tb_next
    out = None
    for entry in reversed(kept):
        out = type(entry)(out, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return out


def _shorten(error) -> None:
    """The tracebacks of an exception and of those that it came from."""
    seen, errors = set(), [error]
    while errors:
        one = errors.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = _without_ours(one.__traceback__) or one.__traceback__
            errors += [one.__cause__, one.__context__]


def _uncaught(kind, value, trace):
    try:
        _shorten(value)
    except Exception:
        pass
    sys.__excepthook__(kind, value, trace if value is None else value.__traceback__)


def _formatted(original):
    """TracebackException.__init__, which torch's workers use, too: the text of an exception goes to the parent."""

    def __init__(self, kind, value, trace, *args, **kwargs):
        original(self, kind, value, _without_ours(trace) or trace, *args, **kwargs)

    return functools.update_wrapper(__init__, original)


@_guarded
def _hide_frames():
    import traceback

    _replace(traceback, "TracebackException.__init__", _formatted)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _uncaught
