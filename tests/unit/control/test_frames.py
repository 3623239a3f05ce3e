"""A copy of where a pipeline stands moves without the other one."""

import copy
from collections.abc import Iterator
from typing import Any

import msgspec

from noetl.pipeline.frame import Frame, Iteration, Nested, copied, copied_iteration


def deep() -> Iteration:
    """A nested loop of which one iteration has begun a nested loop itself."""
    innermost = Nested(total=1, items=[1], active={0: Iteration(frame=Frame(pc=1))})
    inner = Nested(
        total=2,
        items=[1, 2],
        active={1: Iteration(frame=Frame(iter={"a": 1}, inner=innermost), writes=[("k", 1)])},
        results={0: "r"},
        errors={2: {"kind": "x"}},
        writes={"k": (0, 1)},
        reduced={0: [("k", 1)]},
    )
    return Iteration(frame=Frame(iter={"b": 2}, inner=inner), writes=[("w", 1)], ctx={"c": 3})


def moving(value: Any) -> Iterator[Any]:
    """Every struct, mapping and list that moving a frame changes; what they hold is nobody's."""
    if isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            if name not in ("items", "error", "prev"):
                yield from moving(getattr(value, name))
    elif isinstance(value, dict | list):
        yield value
        for one in value.values() if isinstance(value, dict) else ():
            if isinstance(one, msgspec.Struct | list):
                yield from moving(one)


def test_nothing_that_moves_is_shared() -> None:
    one = deep()
    for other in (copied_iteration(one), Iteration(frame=copied(one.frame))):
        shared = {id(part) for part in moving(one)} & {id(part) for part in moving(other)}
        assert not shared
    assert copied_iteration(one) == copy.deepcopy(one)
