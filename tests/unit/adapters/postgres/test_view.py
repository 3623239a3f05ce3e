"""The view `event` says the same of every event as the one on SQLite (EVT-1)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.contracts.homes import PostgresHomes, SqliteHomes, decision
from tests.unit.adapters.postgres.asking import asking
from tests.unit.adapters.test_event_view import EVENTS
from tests.unit.adapters.test_event_view import seen as seen_on_sqlite

from noetl.messages.envelope import envelope
from noetl.messages.names import NAMES


async def seen(
    homes: PostgresHomes, groups: list[list[dict[str, Any]]], at: int
) -> list[dict[str, Any]]:
    """What the view shows of an execution with these events, some to a decision."""
    home = await homes.open()
    stands_at = 0
    for group in groups:
        events, last = msgspec.json.encode(group), stands_at + len(group)
        await home.log.append(decision("e1", stands_at, last, events=events, at=at + stands_at))
        stands_at = last
    async with asking(homes.url) as beside:
        rows = await beside.fetch("select * from noetl.event order by seq")
    return [dict(row) | {"data": msgspec.json.decode(row["data"])} for row in rows]


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize("trace_id", [None, "t-1"])
@pytest.mark.parametrize("at", [0, 1_700_000_000_007, 1_767_225_599_999])
async def test_both_views_are_the_same(
    homes: PostgresHomes, tmp_path: Path, trace_id: str | None, at: int
) -> None:
    opening = EVENTS[0] | ({"trace_id": trace_id} if trace_id else {})
    groups = [[opening, EVENTS[1]], EVENTS[2:5], EVENTS[5:]]
    sqlite = SqliteHomes(tmp_path)
    try:
        expected = await seen_on_sqlite(sqlite, groups, at)
    finally:
        await sqlite.close_all()
    found = await seen(homes, groups, at)
    assert found == expected
    assert [list(row) for row in found] == [list(row) for row in expected], "in the same order"


@pytest.mark.rule("EVT-1", "EVT-2")
async def test_the_view_knows_every_name(homes: PostgresHomes) -> None:
    found = await seen(homes, [[{"name": name} for name in NAMES]], 0)
    told = {row["name"]: (row["source"], row["entity"], row["status"]) for row in found}
    assert told == {
        name: (about.source, about.entity, about.status) for name, about in NAMES.items()
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nul \0 here", "nul \ufffd here"),
        ("\0\0", "\ufffd\ufffd"),
        ("a backslash, then letters: \\u0000", "a backslash, then letters: \\u0000"),
        ("\\\0", "\\\ufffd"),
        ("\\\\\0 \x01", "\\\\\ufffd \x01"),
    ],
)
async def test_a_nul_does_not_break_the_view(homes: PostgresHomes, text: str, shown: str) -> None:
    event = {"name": "step.done", "step": text, "step_run_id": "1.1", "result": {text: [text]}}
    (found,) = await seen(homes, [[event]], 0)
    plain = event | {"step": shown, "result": {shown: [shown]}}
    assert found == envelope(plain, execution_id="e1", seq=1, at=0, trace_id=None)
