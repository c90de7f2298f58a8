# SPDX-License-Identifier: Apache-2.0
"""Collate functions whose batches the engine can make: torch's default_collate, and those that transpose a list of samples,
such as `lambda batch: tuple(zip(*batch))`, which are recognized by their code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

_REFERENCES: dict[Any, Callable[[Any], Any]] = {
    tuple: lambda batch: tuple(zip(*batch)),
    list: lambda batch: list(zip(*batch)),
}
_PYTHONS = {"tuple": tuple, "list": list, "zip": zip}  # which nobody must have replaced
_OTHERS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def is_default_collate(collate_fn: Any) -> bool:
    """Return whether this is torch's default_collate, which the engine implements."""
    return collate_fn is None or (
        getattr(collate_fn, "__name__", "") == "default_collate"
        and getattr(collate_fn, "__module__", "").startswith("torch.utils.data")
    )


def transposes_into(collate_fn: Any) -> Callable[[Any], Any] | None:
    """Return tuple or list if the function returns that of zip(*batch) and does nothing else; otherwise None.

    >>> from stoker._plan.known_collates import transposes_into
    >>> transposes_into(lambda samples: tuple(zip(*samples))), transposes_into(lambda samples: samples)
    (<class 'tuple'>, None)
    """
    if type(collate_fn) is not FunctionType or collate_fn.__closure__ or collate_fn.__defaults__:
        return None
    code = collate_fn.__code__
    for kind, reference in _REFERENCES.items():
        known = reference.__code__  # type: ignore[attr-defined]
        if (
            code.co_code == known.co_code
            and code.co_names == known.co_names
            and code.co_argcount == code.co_nlocals == 1
            and not (code.co_posonlyargcount or code.co_kwonlyargcount or code.co_exceptiontable)
            and not code.co_flags & _OTHERS
            and not any(name in collate_fn.__globals__ for name in code.co_names)
            and all(collate_fn.__builtins__.get(name) is _PYTHONS[name] for name in code.co_names)
        ):
            return kind  # type: ignore[no-any-return]
    return None
