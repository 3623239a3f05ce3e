"""A value of any size is kept once and referred to; the tool that made it is called once."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.ledger import keeping
from tests.support.nats import NatsServer
from tests.support.oracle import Event, judge, logs_in, losses
from tests.support.postgres import Database
from tests.support.processes import Home, Running
from tests.support.steps import arc, otherwise, sets, step, task
from tests.support.trial import trial, written

MB = 1_000_000
SIZES = [int(size * MB) for size in (0.1, 0.5, 0.53, 0.9, 1.04, 1.05, 1.1, 2.1)]
LIMIT = 1_048_576
ENVELOPE = 4096
"""What an event may have beside its values."""
OPEN = {"NOETL_NAMESPACES": "off"}

MAKES = """
import json, urllib.request
body = json.dumps({"value": 1, "attempt": 1, "fail": 0}).encode()
head = {"Idempotency-Key": f"made-{n}", "Content-Type": "application/json"}
urllib.request.urlopen(urllib.request.Request(url, body, head)).read()
result = "x" * n
"""
"""It tells the ledger that it was called."""

VALUE = "{{ outcome.result }}"
TEXT = written(
    "sizes",
    step(
        "start",
        task(
            "makes",
            "python",
            otherwise(set_ctx={"value": VALUE}, set_iter={"value": VALUE}),
            code=MAKES,
            args={"n": "{{ workload.n }}", "url": "{{ workload.url }}"},
        ),
        arcs=[arc("end")],
    ),
    step("end", sets("measures", length="{{ ctx.value | length }}")),
    workload={"url": "", "n": 0},
)


def largest_in(events: list[Event]) -> int:
    """Bytes of the largest event."""
    return max(len(json.dumps(event["data"], separators=(",", ":"))) for event in events)


def test_a_value_of_any_size_passes_through_a_fleet(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url, **OPEN) as fleet:
        fleet.crew(1, 1)
        fleet.register(TEXT)
        begun = fleet.start("sizes", *({"n": size} for size in SIZES))
        fleet.all_ended(begun)
        logs = fleet.judged()
        ended = [fleet.ended(one) for one in begun]
        calls = [key for key, _ in fleet.ledger.effects]
        assert sorted(calls) == sorted(f"made-{size}" for size in SIZES)
        assert [(one.status, one.ctx.get("length")) for one in ended] == completed()
        assert max(map(largest_in, logs.values())) <= LIMIT + ENVELOPE
        assert losses(logs) == 0


def completed() -> list[tuple[str, Any]]:
    return [("completed", size) for size in SIZES]


@pytest.mark.parametrize("size", SIZES)
def test_a_value_of_any_size_passes_through_one_program(size: int, tmp_path: Path) -> None:
    (tmp_path / "playbook.yaml").write_text(TEXT)
    home = Home(tmp_path / "home")
    with keeping() as ledger:
        words = ("--set", f"n={size}", "--set", f"url={ledger.url}", "--json")
        answer = Running(home.folder, "run", tmp_path / "playbook.yaml", *words, **OPEN).answer()
        assert [key for key, _ in ledger.effects] == [f"made-{size}"]
    assert (answer["status"], answer["ctx"]["length"]) == ("completed", size)
    logs = logs_in(home.folder, home.roots())
    judge(logs)
    assert max(map(largest_in, logs.values())) <= LIMIT + ENVELOPE
