"""Times are those of the worker that called the tool, not of the row that carried its report."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.servers import Node, node

NAPS = b"""apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: naps, path: tests/naps}
workflow:
  - step: start
    loop:
      in: [1, 2]
      iterator: n
      spec: {mode: parallel}
    tool:
      - nap: {kind: shell, command: sleep 0.3}
"""
NAP = 300
TOOK = re.compile(r"(?:took=|done in )(\d+) ms")


@pytest.fixture(params=["embedded", "server"])
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Node, str, str]]:
    """A home, the execution on it, and what was shown while it ran."""
    if request.param == "embedded":
        here, played = Node(tmp_path), tmp_path / "naps.yaml"
        played.write_bytes(NAPS)
        answer = here.here("run", played, "--json")
        yield here, str(answer.objects()[0]["execution_id"]), answer.err
        return
    with node(tmp_path) as there:
        assert there.there("register", "-", stdin=NAPS).code == 0
        answer = there.there("execute", "tests/naps", "--wait", "--json")
        yield there, str(answer.objects()[0]["execution_id"]), answer.err


def spans_in(file: Path) -> list[dict[str, Any]]:
    return [
        span
        for line in file.read_text("utf-8").splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def test_a_task_of_300_ms_shows_300_ms(told: tuple[Node, str, str], tmp_path: Path) -> None:
    home, execution_id, shown = told
    assert int(TOOK.findall(shown)[-1]) >= NAP
    lines = home.here("events", execution_id, COLUMNS="200").out.splitlines()
    for name in ("task.done", "loop.iteration.done", "loop.done"):
        found = [TOOK.findall(line) for line in lines if f" {name} " in line]
        assert found
        assert all(int(took) >= NAP for [took] in found)
    file = tmp_path / "spans.jsonl"
    assert home.here("export", execution_id, "--format", "otlp", "-o", file).code == 0
    took = {
        span["name"]: (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) // 1_000_000
        for span in spans_in(file)
    }
    assert took.keys() == {"nap", "start:0", "start:1", "start", "tests/naps"}
    assert min(took.values()) >= NAP
