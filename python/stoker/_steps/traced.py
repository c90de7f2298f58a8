# SPDX-License-Identifier: Apache-2.0
"""What a user's own code does, found by calling it with stand-ins: for its arguments, for each name that it uses, and for
each number that it draws.

Its functions are made anew with other globals, so they reach nothing but stand-ins. A number that is drawn from a range is
a `Drawn`: it can be calculated with, and compared once. A comparison has two outcomes with known probabilities, and the code
is called once for each; likewise for each of several equally likely values. Whatever a stand-in lacks proves nothing, and
so do code that keeps anything beyond the call, exceptions that are caught, and a draw that is used twice.
"""

from __future__ import annotations

import dis
import enum
import functools
import inspect
import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

_RUNS_MOST = 256
_OUTCOMES_MOST = 16  # of one draw
_FORKS_MOST = 64  # in one run: a loop may have no end
_FLAGS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_OUTSIDE = ("STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "DEREF", "IMPORT", "BUILD_CLASS", "MAKE_FUNCTION")
_OF_COMPREHENSIONS = ("DEREF", "MAKE_FUNCTION")  # which share variables with the code around them
_LOOKED_UP = ("__getattribute__", "__getattr__")


class Unproved(Exception):
    """Raised where it cannot be known what the code does."""


class Stand:
    """Stands for a value. It does not say whether it is true or equal to something."""

    def _stoker_refuse(self, *args: Any) -> Any:
        raise TypeError

    __bool__ = __eq__ = __ne__ = __hash__ = __str__ = __repr__ = __format__ = _stoker_refuse


# ---- what is drawn ----


class Run:
    """One call of the code, in which forks have these outcomes; later ones have their first outcome."""

    def __init__(self, outcomes: Sequence[int] = ()) -> None:
        self.forks: list[Sequence[float]] = []  # the probabilities of each
        self.functions: dict[FunctionType, FunctionType] = {}
        self._outcomes = outcomes

    def fork(self, weights: Sequence[float]) -> int:
        """Return the number of an outcome that has one of these probabilities."""
        possible = [number for number, weight in enumerate(weights) if weight > 0]
        at = len(self.forks)
        if not possible or len(weights) > _OUTCOMES_MOST or at >= _FORKS_MOST:
            raise Unproved
        if len(possible) == 1:
            return possible[0]
        self.forks.append(weights)
        return self._outcomes[at] if at < len(self._outcomes) else possible[0]

    def one_of(self, values: Any) -> Any:
        """Return one of several equally likely values."""
        if not isinstance(values, (tuple, range)):
            raise Unproved
        return values[self.fork([1 / len(values)] * len(values))]

    def drawn(self, low: Any, high: Any, is_tensor: bool = False) -> Any:
        """Return a number from a range."""
        low, high = finite(low), finite(high)
        return low if low == high and not is_tensor else Drawn(_Draw(self), low, high - low, is_tensor)


class _Draw:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._is_used = False

    def use(self) -> Run:
        """What is known of a draw after it was compared changes its distribution, and two uses are not independent."""
        if self._is_used:
            raise Unproved
        self._is_used = True
        return self._run


def finite(value: Any) -> float:
    """Return a number of the code, which is none that is drawn."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise Unproved
    return float(value)


class Drawn(Stand):
    """A number that is equally likely to be anywhere between two; perhaps as a tensor of one."""

    def __init__(self, draw: _Draw, low: float, span: float, is_tensor: bool) -> None:
        self._stoker = draw, low, span, is_tensor

    def __add__(self, by: Any) -> Drawn:
        return _calculated(self, 1, by)

    def __sub__(self, by: Any) -> Drawn:
        return _calculated(self, 1, -finite(by))

    def __rsub__(self, by: Any) -> Drawn:
        return _calculated(self, -1, by)

    def __mul__(self, by: Any) -> Drawn:
        return _calculated(self, by, 0)

    def __truediv__(self, by: Any) -> Drawn:
        return _calculated(self, 1 / finite(by), 0)

    def __neg__(self) -> Drawn:
        return _calculated(self, -1, 0)

    def __lt__(self, limit: Any) -> bool:
        return _is_below(self, limit)

    def __gt__(self, limit: Any) -> bool:
        return not _is_below(self, limit)

    def item(self) -> Drawn:
        draw, low, span, is_tensor = self._stoker
        if not is_tensor:
            raise Unproved
        return Drawn(draw, low, span, False)

    __radd__, __rmul__ = __add__, __mul__
    __le__, __ge__ = __lt__, __gt__  # that it is equal has no probability
    # They would change a tensor that another variable may name.
    __iadd__ = __isub__ = __imul__ = __itruediv__ = Stand._stoker_refuse


def _calculated(drawn: Drawn, factor: Any, added: Any) -> Drawn:
    draw, low, span, is_tensor = drawn._stoker
    factor, added = finite(factor), finite(added)
    return Drawn(draw, finite(low * factor + added), finite(span * factor), is_tensor)


def _is_below(drawn: Drawn, limit: Any) -> bool:
    draw, low, span, _ = drawn._stoker
    limit = finite(limit)
    share = float(low < limit) if span == 0 else (limit - low) / span
    share = min(max(share, 0.0), 1.0)
    share = 1 - share if span < 0 else share
    return draw.use().fork([share, 1 - share]) == 0


def as_float(value: Any) -> Any:
    """What float() makes of a number."""
    if isinstance(value, Drawn):
        return value.item() if value._stoker[3] else value
    return finite(value)


def range_of(value: Any) -> tuple[float, float]:
    """Return between which numbers an argument lies, once and for all."""
    if not isinstance(value, Drawn):
        return finite(value), finite(value)
    draw, low, span, is_tensor = value._stoker
    if is_tensor:
        raise Unproved
    draw.use()
    return min(low, low + span), max(low, low + span)


class Fork(NamedTuple):
    """What follows, each with its probability."""

    ways: list[tuple[float, Any]]


def explored(call: Callable[[Run], Any]) -> Any:
    """Return what a call returns: a value, or a `Fork` of such."""
    left = _RUNS_MOST

    def at(outcomes: list[int]) -> Any:
        nonlocal left
        left -= 1
        run = Run(outcomes)
        out = call(run)
        if len(run.forks) < len(outcomes) or left < 0:
            raise Unproved
        if len(run.forks) == len(outcomes):
            return out
        weights = run.forks[len(outcomes)]
        return Fork([(weight, at([*outcomes, number])) for number, weight in enumerate(weights) if weight > 0])

    return at([])


# ---- functions and objects ----


class Kind(Stand):
    """Stands for a class, for isinstance()."""

    def __init__(self, has: Callable[[Any], bool]) -> None:
        self._stoker = has


def _is_instance(thing: Any, kind: Any) -> bool:
    if type(kind) is not Kind or not kind._stoker(thing):
        raise Unproved
    return True


Known = Callable[[Any, Run], Any]  # returns what stands for a thing of a library; None if it is not known

_BUILTINS = {
    "abs": abs,
    "bool": bool,
    "enumerate": enumerate,
    "float": as_float,
    "int": int,
    "isinstance": _is_instance,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "range": range,
    "round": round,
    "tuple": tuple,
    "zip": zip,
}


class Tracer:
    """Makes stand-ins for one run. `known` has those of libraries."""

    def __init__(self, run: Run, known: Known) -> None:
        self._run = run
        self._known = known

    def stand_for(self, value: Any) -> Any:
        """Return what stands for a value that the code can reach."""
        if value is None or type(value) in (bool, int, float, str) or isinstance(value, (enum.Enum, enum.EnumMeta)):
            return value
        if isinstance(value, float):  # NumPy's
            return float(value)
        if type(value) in (tuple, list):
            return tuple(map(self.stand_for, value))  # nobody can change it
        found = self._known(value, self._run)
        if found is not None:
            return found
        if type(value) is FunctionType:
            return self.function(value)
        raise Unproved

    def function(self, given: FunctionType) -> FunctionType:
        """Return a function with the same code that reaches stand-ins only."""
        if given in self._run.functions:
            return self._run.functions[given]
        if not _is_plain(given.__code__) or given.__kwdefaults__ or given.__closure__:
            raise Unproved
        reached: dict[str, Any] = {"__builtins__": _BUILTINS}
        defaults = tuple(map(self.stand_for, given.__defaults__ or ()))
        made = FunctionType(given.__code__, reached, "own", defaults)
        self._run.functions[given] = made
        for name in _names_of(given.__code__):
            if name in given.__globals__:
                try:
                    reached[name] = self.stand_for(given.__globals__[name])
                except Unproved:
                    reached[name] = Stand()
        return made

    def method(self, thing: Any, name: str) -> Callable[..., Any]:
        """Return what calls a method of an object."""
        function = self.function(entry_of(type(thing), name))
        this = _Self(thing, self)
        return lambda *args, **named: function(this, *args, **named)

    def attribute(self, thing: Any, name: str) -> Any:
        """Return what stands for an attribute of an object."""
        entry = entry_of(type(thing), name)
        own = vars(thing)
        inner = own.get("_modules")  # of torch.nn.Module
        for place in (own, inner if isinstance(inner, dict) else {}):
            if name in place:
                if hasattr(type(entry), "__set__"):
                    raise Unproved
                return self.stand_for(place[name])
        if type(entry) is FunctionType:
            return self.method(thing, name)
        if type(entry) is staticmethod:
            return self.stand_for(entry.__func__)
        if entry is None or hasattr(type(entry), "__get__"):
            raise Unproved
        return self.stand_for(entry)


class _Self(Stand):
    """Stands for the object whose method runs. It cannot be changed, or handed on to a library."""

    def __init__(self, thing: Any, tracer: Tracer) -> None:
        self._stoker = thing, tracer

    def __getattr__(self, name: str) -> Any:
        thing, tracer = self._stoker
        return tracer.attribute(thing, name)


def entry_of(kind: type, name: str) -> Any:
    """Return what a class or the first of its bases that has it defines under a name; None if none does."""
    return next((vars(one)[name] for one in kind.__mro__ if name in vars(one)), None)


def looks_up_plainly(kind: type, libraries: tuple[type, ...]) -> bool:
    """Return whether attributes of the class's objects are found as usual. What libraries define is known."""
    own = [one for one in kind.__mro__ if one is not object and one not in libraries]
    return not any(name in vars(one) for one in own for name in _LOOKED_UP)


@functools.lru_cache(maxsize=1024)
def _is_plain(code: CodeType, is_inner: bool = False) -> bool:
    """Return whether code keeps nothing beyond the call, catches nothing, and has no way around the stand-ins. Functions in it
    may only be the ones that Python makes of list comprehensions: these are called where they are made."""
    inner = _inner(code)
    if any(one.co_name != "<listcomp>" or not _is_plain(one, is_inner=True) for one in inner):
        return False
    if code.co_flags & _FLAGS or code.co_exceptiontable or code.co_freevars and not is_inner:
        return False
    if any(name.startswith(("__", "_stoker")) for name in code.co_names):
        return False
    outside = [word for word in _OUTSIDE if not (inner or is_inner) or word not in _OF_COMPREHENSIONS]
    used = {one.opname for one in dis.get_instructions(code)}
    return not any(word in name for name in used for word in outside)


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _names_of(code: CodeType) -> Iterator[str]:
    """Yield the names of globals that code may look up, among others."""
    yield from code.co_names
    for one in _inner(code):
        yield from _names_of(one)
