# SPDX-License-Identifier: Apache-2.0
"""What is remembered while a dataset is looked at, and forgotten behind that."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("stoker")
from stoker._base.remember import remembered, remembering


class Counted:
    """Counts the calls of a function that is remembered."""

    def __init__(self):
        self.calls = 0
        self.once = remembered(self._called)

    def _called(self, thing):
        self.calls += 1
        if thing is None:
            raise ValueError
        return [thing]


def test_the_same_object_gets_the_same_result_until_the_outermost_block_ends():
    counted, thing = Counted(), object()
    with remembering():
        first = counted.once(thing)
        with remembering():
            assert counted.once(thing) is first
        assert counted.once(thing) is first and counted.calls == 1
        assert counted.once([1]) == [[1]] and counted.once([1]) == [[1]] and counted.calls == 3  # equal, not the same
    assert counted.once(thing) is not first and counted.calls == 4


def test_nothing_is_remembered_outside_of_a_block_nor_of_errors():
    counted = Counted()
    assert counted.once(1) is not counted.once(1)
    with remembering():
        for _ in range(2):
            with pytest.raises(ValueError):
                counted.once(None)
    assert counted.calls == 4
    with pytest.raises(KeyError), remembering():
        raise KeyError
    assert counted.once(1) is not counted.once(1)


def test_other_threads_remember_nothing():
    counted, thing, seen = Counted(), object(), []
    with remembering():
        first = counted.once(thing)
        thread = threading.Thread(target=lambda: seen.append(counted.once(thing)))
        thread.start()
        thread.join()
        assert seen[0] is not first and counted.once(thing) is first


def test_objects_that_are_gone_are_not_taken_for_new_ones():
    counted = Counted()
    with remembering():
        assert [counted.once([k])[0][0] for k in range(100)] == list(range(100))
