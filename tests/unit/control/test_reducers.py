"""Reducers: what each makes of writes, and that a write which does not fit changes nothing."""

from typing import Any

import pytest

from noetl.control.reducers import MISSING, REDUCERS, fold
from noetl.playbook.model import Reducer

WRITES: dict[str, tuple[Reducer, Any, list[Any], Any]] = {
    "sum": ("sum", 10, [1, 2.5], 13.5),
    "sum from nothing": ("sum", MISSING, [1, 2], 3),
    "min": ("min", 5, [7, 3, 4], 3),
    "min from nothing": ("min", MISSING, [7, 3], 3),
    "max": ("max", "b", ["a", "c"], "c"),
    "max from nothing": ("max", MISSING, [1, 3, 2], 3),
    "append": ("append", [0], [[1], 2], [0, [1], 2]),
    "append to nothing": ("append", MISSING, [1, 2], [1, 2]),
    "extend": ("extend", [0], [[1], [2, 3]], [0, 1, 2, 3]),
    "extend nothing": ("extend", MISSING, [[1], []], [1]),
    "merge": ("merge", {"a": 1}, [{"b": 2}, {"a": 3}], {"a": 3, "b": 2}),
    "merge into nothing": ("merge", MISSING, [{"a": 1}], {"a": 1}),
    "count": ("count", 2, ["x", None], 4),
    "count from nothing": ("count", MISSING, ["x"], 1),
    "first keeps what was there": ("first", 0, [1, 2], 0),
    "first": ("first", MISSING, [1, 2], 1),
    "last": ("last", 0, [1, 2], 2),
}


@pytest.mark.parametrize(("how", "before", "writes", "after"), WRITES.values(), ids=WRITES)
def test_reducer(how: Reducer, before: Any, writes: list[Any], after: Any) -> None:
    reduced = {} if before is MISSING else {"k": before}
    fold({"k": how}, reduced, [("k", value) for value in writes])
    assert reduced == {"k": after}


def test_every_reducer_is_in_the_table() -> None:
    assert {how for how, *_ in WRITES.values()} == set(REDUCERS)


BAD: dict[str, tuple[Reducer, Any, Any]] = {
    "text into a sum": ("sum", 1, "x"),
    "null into a minimum": ("min", 1, None),
    "text extends no list": ("extend", [0], "abc"),
    "a pair of pairs is not a mapping": ("merge", {"a": 1}, [["b", 2]]),
    "text merges into no mapping": ("merge", {"a": 1}, "b2"),
    "appending to text": ("append", "abc", 1),
}


@pytest.mark.parametrize(("how", "before", "value"), BAD.values(), ids=BAD)
def test_a_write_that_does_not_fit_is_refused_whole(how: Reducer, before: Any, value: Any) -> None:
    reduced = {"k": before, "rows": [1]}
    with pytest.raises(TypeError):
        fold({"k": how, "rows": "append"}, reduced, [("rows", 2), ("k", value)])
    assert reduced == {"k": before, "rows": [1]}
