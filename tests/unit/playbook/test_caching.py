"""What a kept outcome is known by: no value is taken for another (CACHE-1)."""

from itertools import combinations
from typing import Any

import pytest

from noetl.messages.digest import digest_of_short
from noetl.messages.reference import Reference
from noetl.playbook.caching import LONGEST, CachePlan, kept_as

LONG = "a text of somebody else " * 100
SUM = "5e" * 32
STORED = Reference("files", f"e1/{SUM}", 2_000_000, SUM)


def key_of(value: Any) -> str:
    plan = CachePlan(name="s.t", key=lambda scope: scope["value"], ttl=1, fingerprint="f")
    text = plan.key_in({"value": value})
    assert text is not None
    return kept_as(text)


@pytest.mark.rule("CACHE-1")
@pytest.mark.parametrize(
    "values",
    [
        (1, "1", 1.5, "1.5", '"1"', True, "true", [1], "[1]", {"a": 1}, '{"a":1}', "null"),
        (LONG, f"sha256:{digest_of_short(LONG.encode())}", [LONG], key_of([LONG])),
        (STORED, SUM, f"sha256:{SUM}", {"r": SUM}, key_of(STORED), {"$ref": SUM}),
        (
            [STORED],
            [SUM],
            [{"r": SUM}],
            {"a": STORED},
            {"a": SUM},
            {"l": [STORED]},
            key_of([STORED]),
        ),
        ([STORED, STORED], [STORED, {"r": SUM}], [STORED, SUM], {"l": [STORED, STORED]}),
    ],
    ids=["types", "hashes", "stored", "inside", "beside"],
)
def test_no_two_values_have_one_key(values: tuple[Any, ...]) -> None:
    """A payload chooses its own value: by another one's key it would answer for that."""
    keys = [key_of(value) for value in values]
    assert all(0 < len(key) <= LONGEST for key in keys)
    assert [one for one, other in combinations(keys, 2) if one == other] == []


@pytest.mark.rule("CACHE-1")
def test_a_value_has_the_same_key_wherever_it_is_stored() -> None:
    elsewhere = Reference("s3", f"e2/{SUM}", 2_000_000, SUM)
    assert key_of([1, STORED]) == key_of([1, elsewhere])
    assert (key_of("oslo"), key_of(["a", 1])) == ("oslo", '["a",1]')
