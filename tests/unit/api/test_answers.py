"""A secret that is also a word of ours breaks no answer (KEY-2)."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.api import answers
from noetl.api import types as t
from noetl.api.answers import OWN, answered_aside, shown, words
from noetl.masking import KNOWN, MASK
from noetl.messages.outcome import ERROR_KINDS
from noetl.ports.large import LARGE
from noetl.server.views.standing import Listed

pytestmark = pytest.mark.rule("KEY-2")

LISTED = Listed(
    execution_id="01m7j7qgkrg05ygdcj",
    path="tests/hello",
    version="3",
    status="completed",
    interrupted=False,
    started_at="2026-11-16T13:00:00.000Z",
    updated_at="2026-11-16T13:00:01.234Z",
    finished_at=None,
    duration_ms=1234567,
    parent_execution_id=None,
    error="it said completed, and 1234567",
)
EVENT = t.EventView(
    event_id="01m7j7qgkrg05ygdcj.7",
    seq=7,
    execution_id="01m7j7qgkrg05ygdcj",
    timestamp="2026-11-16T13:00:00.000Z",
    source="worker",
    name="task.done",
    entity="task",
    entity_id="1.1",
    status="error",
    step="start",
    step_run_id="1.0",
    task_run_id="1.1",
    trace_id="01m7j7qgkrg05ygdcj",
    parent_id="1.0",
    data={
        "task": "fetch",
        "kind": "http",
        "attempt": 1,
        "do": "continue",
        "outcome": {
            "status": "error",
            "result": {"status": "status", "secret-key": 1234567},
            "error": {"kind": "http", "message": "no secret-key", "retryable": False},
            "meta": {"duration_ms": 1234567},
        },
    },
)
EVENTS = t.EventPage(events=[EVENT], after=7, more=False)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    KNOWN.clear()


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield key
            yield from strings_in(below)
    elif isinstance(value, list):
        for below in value:
            yield from strings_in(below)
    elif isinstance(value, str):
        yield value


COMMON = sorted({*words(), *OWN, *ERROR_KINDS, *strings_in(msgspec.to_builtins([LISTED, EVENTS]))})


@pytest.mark.parametrize("secret", [*COMMON, "1234567", "2026-11", "completed", "00:00."])
def test_a_secret_that_is_a_word_of_ours_breaks_no_answer(secret: str) -> None:
    KNOWN.add(secret)
    page = msgspec.json.decode(
        shown(t.ExecutionPage(executions=[LISTED], next=None)), type=t.ExecutionPage
    )
    [listed] = page.executions
    same = ("execution_id", "status", "started_at", "updated_at", "duration_ms", "finished_at")
    assert {name: getattr(listed, name) for name in same} == {
        name: getattr(LISTED, name) for name in same
    }
    [event] = msgspec.json.decode(shown(EVENTS), type=t.EventPage).events
    assert msgspec.structs.replace(event, data={}) == msgspec.structs.replace(EVENT, data={})
    for name in ("task", "kind", "attempt", "do"):
        assert event.data[name] == EVENT.data[name]
    assert event.data["outcome"]["status"] == "error"
    assert event.data["outcome"]["error"]["retryable"] is False


def test_it_is_masked_where_it_is_data() -> None:
    for secret in ("status", "secret-key", "1234567"):
        KNOWN.add(secret)
    [event] = msgspec.json.decode(shown(EVENTS))["events"]
    outcome = event["data"]["outcome"]
    assert outcome["result"] == {"status": MASK, MASK: MASK}
    assert outcome["error"]["message"] == f"no {MASK}"
    [listed] = msgspec.json.decode(shown(t.ExecutionPage(executions=[LISTED], next=None)))[
        "executions"
    ]
    assert listed["error"] == f"it said completed, and {MASK}"


async def test_large_answers_are_looked_through_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[threading.Thread] = []
    found_in = KNOWN.found_in

    def noted(text: bytes) -> bool:
        threads.append(threading.current_thread())
        return found_in(text)

    KNOWN.add("correct-horse-battery")
    monkeypatch.setattr(KNOWN, "found_in", noted)
    try:
        large = await answered_aside({"data": ["correct-horse-battery", "x" * LARGE]})
        small = await answered_aside({"data": ["correct-horse-battery"]})
    finally:
        KNOWN.clear()
    assert b"horse" not in large.content + small.content  # type: ignore[operator]
    assert threads[0] is not threading.current_thread()
    assert threads[1] is threading.current_thread()


DIRECT = re.compile(r"return answered\((.*)")
SETTLED = re.compile(r"\b(status|fixed)=")


def test_whatever_is_read_may_be_large() -> None:
    """Masked on the loop are answers to orders, and documents of ours: they are small."""
    folder = Path(answers.__file__).parent
    files = [one for one in folder.glob("*.py") if one.name not in ("sessions.py", "worker.py")]
    found = [text for file in files for text in DIRECT.findall(file.read_text())]
    assert [text for text in found if not SETTLED.search(text)] == []
