"""What the editor of the UI asks: faults and their fixes, what may follow, another dialect."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event

import pytest
from tests.support.api import Api, api_of
from tests.unit.api.test_outline import TEXT, TRIGGER

from noetl.node.server import ServerNode
from noetl.playbook.plan import digest_of
from noetl.ports.large import DRAFTS, LARGE, MOST_DRAFTS, PARSED
from noetl.settings import Settings

WRONG = TEXT.replace("kind: noop}}]\n    next", "kind: nop}}]\n    next")
LOST = TEXT.replace("{step: right}", "{step: rihgt}")
OLDER = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: old, path: tests/old}
workflow:
  - step: start
    tool: [{a: {kind: noop}}]
    next: [{step: end}]
  - step: end
    tool: [{b: {kind: noop}}]
"""


@asynccontextmanager
async def asked(home: Path) -> AsyncIterator[Api]:
    plane = await ServerNode.open(Settings(home=home), says=lambda _: None)
    try:
        async with api_of(plane) as api:
            yield api
    finally:
        await plane.close()


@pytest.mark.rule("VAL-2")
async def test_a_fault_comes_with_its_word_its_fix_and_the_picture(tmp_path: Path) -> None:
    async with asked(tmp_path) as api:
        sound = await api.post("/api/editing/check", {"text": TEXT})
        assert (sound["findings"], sound["path"]) == ([], "tests/fork")
        assert [box["name"] for box in sound["outline"]["boxes"]] == ["start", "left", "right"]

        told = await api.post("/api/editing/check", {"text": WRONG})
        [fault] = told["findings"]
        row = WRONG.split("\n")[fault["finding"]["line"] - 1]
        assert row[fault["finding"]["column"] - 1 : fault["end"] - 1] == "nop"
        fix = fault["fix"]
        assert row[: fix["start"]] + fix["text"] + row[fix["end"] :] == row.replace("nop", "noop")
        assert len(told["outline"]["boxes"]) == 3, "what can be drawn is"

        lost = await api.post("/api/editing/check", {"text": LOST})
        assert lost["outline"] is None
        assert lost["findings"][0]["fix"]["text"] == "right"
        broken = await api.post("/api/editing/check", {"text": "workflow: [\n"})
        assert (broken["outline"], len(broken["findings"])) == (None, 1)
        trigger = await api.post("/api/editing/check", {"text": TRIGGER})
        assert (trigger["path"], trigger["outline"]) == ("tests/nightly", None)


async def test_thousands_of_faults_are_counted_and_not_sent(tmp_path: Path) -> None:
    many = TEXT + "".join(f"  - step: s{n}\n    tool: [{{a: {{kind: nop}}}}]\n" for n in range(900))
    async with asked(tmp_path) as api:
        told = await api.post("/api/editing/check", {"text": many})
        assert len(told["findings"]) == 500
        assert told["more"] >= 400
        for path in ("validate", "editing/translate"):
            told = await api.post(f"/api/{path}", {"text": f"{many}surprise: 1\n"})
            assert (len(told["findings"]), told["more"] >= 400) == (500, True), path


async def test_keys_kinds_steps_and_names_are_offered_at_the_cursor(tmp_path: Path) -> None:
    async def names(api: Api, before: str, after: str) -> set[str]:
        text = TEXT.replace(after, before, 1)
        at = text.index(before) + len(before)
        line = text.count("\n", 0, at)
        place = {"line": line, "column": at - (text.rfind("\n", 0, at) + 1)}
        told = await api.post("/api/editing/complete", {"text": text, **place})
        return {one["name"] for one in told["offers"]}

    async with asked(tmp_path) as api:
        assert {"python", "http"} <= await names(api, "look: {kind: ", "look: {kind: noop")
        assert {"left", "right"} <= await names(api, "- {step: ", "- {step: left")
        assert {"size", "region"} <= await names(api, '"{{ workload.', '"{{ workload.size')
        kind = TEXT.split("\n")
        line = next(number for number, row in enumerate(kind) if "look: {kind" in row)
        place = {"text": TEXT, "line": line, "column": kind[line].index("noop") + 1}
        assert "noop" in (await api.post("/api/editing/about", place))["about"]
        far = {"text": TEXT, "line": 10**6, "column": 10**6}
        assert (await api.post("/api/editing/about", far))["about"] is None


@pytest.mark.rule("DIA-UP")
async def test_another_dialect_is_translated_with_every_rewrite_explained(tmp_path: Path) -> None:
    async with asked(tmp_path) as api:
        assert (await api.post("/api/editing/check", {"text": OLDER}))["older"]
        told = await api.post("/api/editing/translate", {"text": OLDER})
        assert told["complete"]
        assert told["changed"]
        assert all(one["why"] for one in told["rewrites"])
        assert (await api.post("/api/editing/check", {"text": told["text"]}))["findings"] == []
        same = await api.post("/api/editing/translate", {"text": TEXT})
        assert (same["text"], same["changed"], same["rewrites"]) == (TEXT, False, [])


@pytest.mark.rule("SRV-1")
async def test_playbooks_and_triggers_are_listed_apart(tmp_path: Path) -> None:
    async with asked(tmp_path) as api:
        for text in (TEXT, TRIGGER, OLDER.replace("[{step: end}]", "{arcs: [{step: end}]}")):
            await api.post("/api/catalog", {"text": text})

        async def paths(**query: str) -> list[str]:
            return [one["path"] for one in await api.pages("/api/catalog", "entries", **query)]

        assert await paths() == ["tests/fork", "tests/nightly", "tests/old"]
        assert await paths(kind="playbook", limit="1") == ["tests/fork", "tests/old"]
        assert await paths(kind="trigger", limit="1") == ["tests/nightly"]


async def test_no_draft_is_kept_or_seen_by_others(tmp_path: Path) -> None:
    """The draft has the path of a registered playbook; nobody who asks for that one meets it."""
    draft = TEXT.replace("kind: noop}}]\n    next", "kind: noop, note: planted-draft}}]\n    next")
    assert draft != TEXT
    plane = await ServerNode.open(Settings(home=tmp_path), says=lambda _: None)
    try:
        async with api_of(plane) as api:
            await api.post("/api/catalog", {"text": TEXT})
            before = await plane.library.plan_by(digest_of(TEXT))
            for route in ("check", "translate"):
                await api.post(f"/api/editing/{route}", {"text": draft})
            for route in ("complete", "about"):
                asked = {"text": draft, "line": 1, "column": 1}
                await api.post(f"/api/editing/{route}", asked)
            assert (await api.get("/api/catalog/entries/tests/fork"))["text"] == TEXT
            assert await plane.storage.playbooks.text(digest_of(draft)) is None
            assert plane.library._plans.find(digest_of(draft)) is None
            assert await plane.library.plan_by(digest_of(TEXT)) is before
    finally:
        await plane.close()
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"planted-draft" not in written
    assert b"tests/fork" in written


async def test_drafts_keep_nobody_from_registering(tmp_path: Path) -> None:
    """They are read apart from texts that are to run, and few of them wait."""
    held, large = Event(), TEXT + "#" * (LARGE // PARSED)
    async with asked(tmp_path) as api:
        waiting = [asyncio.create_task(DRAFTS.read(LARGE, held.wait)) for _ in range(MOST_DRAFTS)]
        try:
            await asyncio.sleep(0)
            for route in ("editing/check", "editing/translate", "validate"):
                status, told = await api.ask("POST", f"/api/{route}", json={"text": large})
                assert (status, told["error"]["code"]) == (503, "busy"), route
            await api.post("/api/catalog", {"text": large})
        finally:
            held.set()
            await asyncio.gather(*waiting)
        assert (await api.post("/api/editing/check", {"text": large}))["findings"] == []
