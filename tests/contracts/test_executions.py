"""What lists and pages of executions promise."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.contracts.homes import Homes, answer_of, decision, row

from noetl.ports.event_log import ExecutionRow, PrintedLine
from noetl.ports.storage import Storage

FULL = ExecutionRow(
    execution_id="full",
    path="demo/full",
    digest="abc",
    status="failed",
    started_at=10,
    updated_at=20,
    version="7",
    finished_at=30,
    parent_execution_id="p",
    owner=None,
    error="http: 503",
    seq=0,
)


async def begin(home: Storage, execution_id: str, **fields: object) -> None:
    await home.log.append(decision(execution_id, 0, 1, row=row(execution_id, **fields)))


async def names(home: Storage, **asked: object) -> list[str]:
    return [found.execution_id for found in await home.executions.page(**asked)]  # type: ignore[arg-type]


async def test_a_row_comes_back_whole_with_the_seq_of_the_log(homes: Homes) -> None:
    home = await homes.open()
    await home.log.append(decision("full", 0, 4, row=FULL))
    assert await home.executions.find("full") == msgspec.structs.replace(FULL, seq=4)
    assert await home.executions.find("other") is None


async def test_a_row_is_replaced_by_the_decision_that_changes_it(homes: Homes) -> None:
    home = await homes.open()
    await begin(home, "full", owner=home.owners.me, version="1")
    await home.log.append(decision("full", 1, 2, row=FULL))
    assert await home.executions.find("full") == msgspec.structs.replace(FULL, seq=2)


async def test_pages_are_newest_first_without_gaps_or_repeats(homes: Homes) -> None:
    home = await homes.open()
    for n in range(7):
        await begin(home, f"e{n}")
    await home.log.append(decision("e2", 1, 2))  # going on does not make it newer
    pages = [await names(home, limit=3)]
    while pages[-1]:
        pages.append(await names(home, limit=3, before=pages[-1][-1]))
    assert pages == [["e6", "e5", "e4"], ["e3", "e2", "e1"], ["e0"], []]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ["e3", "e2", "e1", "e0"]),
        ({"status": "running"}, ["e2", "e0"]),
        ({"path": "b"}, ["e3", "e2"]),
        ({"path": "b", "status": "running"}, ["e2"]),
        ({"path": "b", "before": "e3"}, ["e2"]),
        ({"status": "paused"}, []),
        ({"before": "gone"}, []),
    ],
)
async def test_filters(homes: Homes, asked: dict[str, object], expected: list[str]) -> None:
    home = await homes.open()
    for n in range(4):
        status = "running" if n % 2 == 0 else "completed"
        await begin(home, f"e{n}", status=status, path="a" if n < 2 else "b")
    assert await names(home, **asked) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"since": 20}, ["e3", "e2", "e1", "e4"]),
        ({"until": 20}, ["e0"]),
        ({"since": 20, "until": 40}, ["e2", "e1", "e4"]),
        ({"since": 41}, []),
        ({"parent": "p"}, ["e3", "e1"]),
        ({"parent": "p", "status": "running"}, ["e3"]),
        ({"parent": "p", "since": 20, "until": 40}, ["e1"]),
        ({"since": 20, "path": "b", "status": "completed"}, ["e2", "e4"]),
        ({"since": 10, "before": "e2"}, ["e1", "e4", "e0"]),
        ({"since": 10, "before": "e4", "limit": 1}, ["e0"]),
        ({"until": 50, "before": "gone"}, []),
        ({"parent": "gone"}, []),
    ],
)
@pytest.mark.rule("SRV-1")
async def test_filters_by_time_and_parent(
    homes: Homes, asked: dict[str, object], expected: list[str]
) -> None:
    home = await homes.open()
    for name, at, status, parent in (
        ("e0", 10, "running", None),
        ("e1", 30, "completed", "p"),
        ("e2", 30, "completed", None),
        ("e3", 40, "running", "p"),
        ("e4", 20, "completed", None),  # its server's clock was behind
    ):
        path = "a" if name in ("e0", "e1") else "b"
        fields = {"started_at": at, "status": status, "parent_execution_id": parent, "path": path}
        await begin(home, name, **fields)
    assert await names(home, **asked) == expected


async def test_pages_by_time_have_no_gaps_or_repeats(homes: Homes) -> None:
    home = await homes.open()
    for n in range(7):
        await begin(home, f"e{n}", started_at=100 - n // 3)
    pages = [await names(home, limit=3, since=1)]
    while pages[-1]:
        pages.append(await names(home, limit=3, since=1, before=pages[-1][-1]))
    assert pages == [["e2", "e1", "e0"], ["e5", "e4", "e3"], ["e6"], []]


@pytest.mark.rule("TOOL-1")
async def test_children_are_all_of_a_parent(homes: Homes) -> None:
    home = await homes.open()
    await begin(home, "parent")
    for n in range(70):
        ended = {"status": "completed", "finished_at": 9} if n % 2 else {}
        await begin(home, f"c{n}", parent_execution_id="parent", **ended)
    await begin(home, "grandchild", parent_execution_id="c0")
    found = await home.executions.children("parent")
    assert [row.execution_id for row in found] == [f"c{n}" for n in range(70)]
    assert found[1] == await home.executions.find("c1")
    assert [row.execution_id for row in await home.executions.children("c0")] == ["grandchild"]
    assert list(await home.executions.children("grandchild")) == []


async def test_those_that_have_not_ended_are_told_at_once(homes: Homes) -> None:
    home = await homes.open()
    for n in range(6):
        ended = {"status": "completed", "finished_at": 9} if n % 2 else {}
        await begin(home, f"e{n}", **ended)
    asked = ["e0", "e1", "e2", "e2", "gone", "'"]
    assert sorted(await home.executions.unfinished(asked)) == ["e0", "e2"]
    assert list(await home.executions.unfinished([])) == []


async def test_executions_are_counted_by_status(homes: Homes) -> None:
    home = await homes.open()
    for n in range(5):
        ended = {"status": "completed", "finished_at": 9} if n < 3 else {}
        await begin(home, f"e{n}", **ended)
    await home.log.append(decision("e4", 1, 2, row=row("e4", status="failed", finished_at=9)))
    counted = {
        status: await home.executions.count(status)
        for status in ("running", "completed", "failed", "paused", "")
    }
    assert counted == {"running": 1, "completed": 3, "failed": 1, "paused": 0, "": 0}


async def test_playbooks_are_kept_by_digest(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    assert await home.playbooks.text("d1") is None
    await home.playbooks.keep("d1", "demo/hello", "name: héllo\n", "examples")
    await home.playbooks.keep("d2", "demo/piped", "name: piped\n", None)
    assert await other.playbooks.text("d1") == ("name: héllo\n", "examples")
    assert await other.playbooks.text("d2") == ("name: piped\n", None)
    await other.playbooks.keep("d1", "demo/hello", "name: héllo\n", "moved")
    assert await home.playbooks.text("d1") == ("name: héllo\n", "moved")


def line(execution_id: str, **fields: object) -> PrintedLine:
    usual: dict[str, object] = {
        "step": "fetch",
        "task_run_id": "3.1",
        "attempt": 1,
        "at": 7,
        "stream": "stdout",
        "text": "hello",
    }
    return PrintedLine(execution_id=execution_id, **(usual | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("alone", [True, False])
async def test_a_line_that_cannot_be_kept_harms_nothing_else(homes: Homes, alone: bool) -> None:
    """Promise 7: neither the decisions of its commit, nor the lines beside it."""
    home = await homes.open()
    for number in range(5):
        home.printed.keep(line("a", text=f"{number}", at=2**63 if number == 2 else number))
    assert await answer_of(home.log.append(decision("a", 0), alone=alone)) == "ok"
    assert await answer_of(home.log.append(decision("a", 1), alone=alone)) == "ok"
    texts = [found.text for found in await home.printed.read("a")]
    assert [text for text in texts if text != "2"] == ["0", "1", "3", "4"]


async def test_executions_whose_id_begins_with_a_text(homes: Homes) -> None:
    home = await homes.open()
    for name in ("01a", "01b", "01b-4.1-1", "02", "01B", "é1"):
        await begin(home, name)

    async def found(prefix: str, limit: int = 50) -> list[str]:
        rows = await home.executions.starting(prefix, limit=limit)
        return [row.execution_id for row in rows]

    assert await found("01b") == ["01b-4.1-1", "01b"]
    assert await found("01") == ["01B", "01b-4.1-1", "01b", "01a"]
    assert await found("01", limit=1) == ["01B"]
    assert await found("é") == ["é1"]
    assert await found("3") == await found("%") == await found("_1") == []


async def test_printed_lines_are_kept_though_nothing_is_decided(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await begin(home, "a")
    home.printed.keep(line("a"))
    async with asyncio.timeout(600):
        while await other.printed.read("a") != [line("a")]:
            await asyncio.sleep(0)


async def test_printed_lines_are_read_in_order(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await begin(home, "a")
    lines = [line("a", text=f"{n}", step="odd" if n % 2 else "even") for n in range(2500)]
    for each in lines:
        home.printed.keep(each)
    home.printed.keep(line("b"))
    assert await home.printed.read("a") == lines
    assert await home.printed.read("a", step="odd", limit=3) == lines[1:6:2]
    assert await home.printed.read("a", step="odd", skip=1, limit=2) == lines[3:6:2]
    assert await home.printed.read("a", skip=2498) == lines[2498:]
    assert await other.printed.read("b") == [line("b")]


async def test_a_printed_line_without_end_is_cut(homes: Homes) -> None:
    home = await homes.open()
    home.printed.keep(line("a", text="x" * 70_000))
    kept = (await home.printed.read("a"))[0].text
    assert kept == "x" * 65_536 + "… (4464 more characters)"


PLACES: dict[str, Any] = {
    "status": "queued",
    "limit_key": "tenant/ä",
    "asks": 1,
    "queued_at": 1_700_000_000_000,
    "wake_at": 1_700_000_060_000,
    "origin_execution_id": "before",
    "origin_seq": 12,
}


async def test_a_row_has_room_for_limits_waits_and_restarts(homes: Homes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0, 1, row=row("a", **PLACES)))
    kept = await home.executions.find("a")
    assert kept == row("a", seq=1, **PLACES)
    assert list(await home.executions.page(status="queued")) == [kept]
    await home.log.append(decision("a", 1, 2, row=row("a", status="running")))
    assert await home.executions.find("a") == row("a", status="running", seq=2)


@pytest.mark.rule("WAIT-7")
async def test_those_that_ask_people_are_found_without_the_others(homes: Homes) -> None:
    home = await homes.open()
    for name in "abcde":
        asks = None if name in "bd" else 1
        await home.log.append(decision(name, 0, row=row(name, asks=asks)))
    found = await home.executions.asking(limit=2)
    assert [one.execution_id for one in found] == ["e", "c"]
    found = await home.executions.asking(before="c", limit=2)
    assert [one.execution_id for one in found] == ["a"]
    await home.log.append(decision("a", 1, row=row("a", seq=2)))
    assert [one.execution_id for one in await home.executions.asking()] == ["e", "c"]
