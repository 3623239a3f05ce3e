"""What is read for an export: which events, in which order, with which envelope."""

import pytest
from tests.unit.exports.stories import ID, Event, event, home_of, questions, run

from noetl.cli.export import all_ids
from noetl.exports import reading
from noetl.exports.reading import WHOLE, Cut, envelopes

LOG: list[tuple[int, list[Event]]] = [
    (1000, [event("playbook.execution.requested", path="p", trace_id="t"), event("a")]),
    (2000, [event("b"), event("c")]),
    (3000, [event("d")]),
]


def seqs(cut: Cut) -> list[int]:
    async def read() -> list[int]:
        home = await home_of({ID: LOG})
        return [told["seq"] async for _, told in envelopes(questions(home).events, ID, cut)]

    found: list[int] = run(read())
    return found


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (WHOLE, [1, 2, 3, 4, 5]),
        (Cut(after=2), [3, 4, 5]),
        (Cut(after=3), [4, 5]),
        (Cut(after=5), []),
        (Cut(after=99), []),
        (Cut(since=2000), [3, 4, 5]),
        (Cut(since=2001), [5]),
        (Cut(after=3, since=1000), [4, 5]),
    ],
)
@pytest.mark.parametrize("page", [1, 2, 500])
def test_a_cut(cut: Cut, expected: list[int], page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE", page)
    assert seqs(cut) == expected


def test_the_trace_of_the_request_is_known_after_any_cut() -> None:
    async def read() -> list[str]:
        home = await home_of({ID: LOG})
        return [
            told["trace_id"]
            async for _, told in envelopes(questions(home).events, ID, Cut(after=4))
        ]

    assert run(read()) == ["t"]


def test_references_stay_as_they_are() -> None:
    reference = {"$ref": {"store": "files", "key": "k", "size": 9, "checksum": "c"}}
    log = [(1, [event("step.done", step="s", step_run_id="4.0", result=reference)])]

    async def read() -> list[Event]:
        home = await home_of({ID: log})
        return [told async for _, told in envelopes(questions(home).events, ID)]

    (told,) = run(read())
    assert told["data"] == {"result": reference}


@pytest.mark.parametrize(
    ("since", "expected"), [(0, ["one", "two", "three"]), (2000, ["two", "three"]), (9000, [])]
)
def test_all_executions_come_in_the_order_of_their_starts(since: int, expected: list[str]) -> None:
    logs = {
        name: [(at, [event("playbook.execution.requested", path="p")])]
        for name, at in (("one", 1000), ("two", 2000), ("three", 3000))
    }

    async def read() -> list[str]:
        return await all_ids(questions(await home_of(logs)), since)

    assert run(read()) == expected
