"""EVT-6: the log as JSON lines, Parquet, OpenTelemetry traces and rows of ClickHouse."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.clickhouse import ClickHouse
from tests.support.collector import Collector, Reply, parsed
from tests.system.program import noetl

from noetl.cli.main import main
from noetl.messages.trace import span_id, trace_id

pytestmark = pytest.mark.rule("EVT-6")

PARENT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: parent, path: demo/parent }
workload: { numbers: [1, 2] }
executor: { spec: { policy: { limits: { max_payload_bytes: 20000 } } } }
workflow:
  - step: start
    tool:
      - big: { kind: transform, value: "{{ 'é' * 20000 }}" }
      - child: { kind: playbook, path: child.yaml }
    next: { arcs: [{ step: each }] }
  - step: each
    loop: { in: "{{ workload.numbers }}", iterator: number }
    tool:
      - inner:
          kind: iterator
          in: [7]
          iterator: deeper
          tool: [{ deep: { kind: noop } }]
      - again:
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ _attempt < 2 }}"
                  then: { do: retry, attempts: 2, delay: 0 }
    next: { arcs: [{ step: bad }] }
  - step: bad
    tool:
      - boom: { kind: duckdb, command: select nope }
"""
CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: demo/child }
workflow:
  - step: start
    tool: [{ only: { kind: noop } }]
"""


class Place(msgspec.Struct, frozen=True):
    """A home in which a parent and its child ran, and what `noetl events` says of them."""

    home: str
    parent: str
    child: str
    told: dict[str, list[dict[str, Any]]]

    def events(self, *ids: str) -> list[dict[str, Any]]:
        return [told for name in ids or (self.parent, self.child) for told in self.told[name]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("export")
    (folder / "parent.yaml").write_text(PARENT)
    (folder / "child.yaml").write_text(CHILD)
    home = str(folder / "home")
    ran = noetl("run", folder / "parent.yaml", "--json", NOETL_HOME=home)
    assert ran.code == 1, ran.err
    rows = noetl("list", "--json", NOETL_HOME=home).objects()
    ids = {row["path"]: row["execution_id"] for row in rows}
    told = {
        name: noetl("events", name, "--json", NOETL_HOME=home).objects() for name in ids.values()
    }
    return Place(home, ids["demo/parent"], ids["demo/child"], told)


@pytest.fixture(autouse=True)
def _at_home(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOETL_HOME", place.home)


def export(*words: str) -> int:
    return main(["export", *words])


# ── files ────────────────────────────────────────────────────────────────────────────────────


def lines_in(file: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]


def test_lines_are_the_envelopes_of_the_log(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    assert export("--all", "--format", "jsonl", "-o", str(file)) == 0
    assert lines_in(file) == place.events(), "the oldest execution first"


def test_large_values_stay_references(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    export(place.parent, "--format", "jsonl", "-o", str(file))
    (big,) = [
        told["data"]["outcome"]["result"]
        for told in lines_in(file)
        if told["name"] == "task.done" and told["data"]["task"] == "big"
    ]
    assert big["$ref"]["size"] == len("é".encode()) * 20_000 + 2
    assert "éé".encode() not in file.read_bytes()


def test_lines_on_standard_output(place: Place, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert export(place.child, "--format", "jsonl") == 0
    said = capfdbinary.readouterr()
    assert [msgspec.json.decode(line) for line in said.out.splitlines()] == place.events(
        place.child
    )
    assert said.err.startswith(b"exported ")


def test_exporting_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for form in ("jsonl", "parquet", "otlp", "clickhouse"):
        for name in ("one", "two"):
            assert export("--all", "--format", form, "-o", str(tmp_path / name)) == 0
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes(), form


@pytest.mark.parametrize("form", ["jsonl", "parquet", "clickhouse"])
def test_only_what_is_new(place: Place, tmp_path: Path, form: str) -> None:
    import pyarrow.parquet as pq

    file = tmp_path / "out"
    export(place.parent, "--after", "20", "--format", form, "-o", str(file))
    found = pq.read_table(file).to_pylist() if form == "parquet" else lines_in(file)
    assert [row["seq"] for row in found] == [
        told["seq"] for told in place.events(place.parent) if told["seq"] > 20
    ]


def test_parquet_holds_the_same(place: Place, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    file = tmp_path / "events.parquet"
    assert export("--all", "--format", "parquet", "-o", str(file)) == 0
    rows = pq.read_table(file).to_pylist()
    for row in rows:
        row["timestamp"] = row["timestamp"].isoformat(timespec="milliseconds")[:-6] + "Z"
        row["data"] = msgspec.json.decode(row["data"])
    take_times(rows)
    assert rows == place.events()


def take_times(rows: list[dict[str, Any]]) -> None:
    """Out of the rows, the columns that the envelope does not have: those of the worker (OUT-1)."""
    timed = {row["name"]: (row.pop("started_at"), row.pop("duration_ms")) for row in rows}
    assert None not in timed["task.done"]
    assert timed["playbook.processed"] == (None, None)


# ── OpenTelemetry ────────────────────────────────────────────────────────────────────────────


def attributes_of(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def path_of(span: Any, spans: dict[bytes, Any]) -> str:
    """The names from the root to a span."""
    above = spans.get(span.parent_span_id)
    return span.name if above is None else f"{path_of(above, spans)} > {span.name}"


def test_an_execution_is_a_trace(place: Place, collector: Collector) -> None:
    assert export(place.parent, "--format", "otlp", "--to", collector.url) == 0
    assert collector.faults == []
    assert collector.paths == ["/v1/traces"]
    assert collector.headers[0]["content-type"] == "application/json"
    spans = {span.span_id: span for span in collector.spans}
    assert len(spans) == len(collector.spans), "no id twice"
    assert {span.trace_id.hex() for span in collector.spans} == {trace_id(place.parent)}
    assert Counter(path_of(span, spans) for span in collector.spans) == {
        "demo/parent": 1,
        "demo/parent > start": 1,
        "demo/parent > start > big": 1,
        "demo/parent > start > child": 1,
        "demo/parent > each": 1,
        "demo/parent > each > each:0": 1,
        "demo/parent > each > each:0 > inner": 1,
        "demo/parent > each > each:0 > inner > each:0/0": 1,
        "demo/parent > each > each:0 > inner > each:0/0 > deep": 1,
        "demo/parent > each > each:0 > again": 1,
        "demo/parent > each > each:0 > again > again": 2,
        "demo/parent > each > each:1": 1,
        "demo/parent > each > each:1 > inner": 1,
        "demo/parent > each > each:1 > inner > each:1/0": 1,
        "demo/parent > each > each:1 > inner > each:1/0 > deep": 1,
        "demo/parent > each > each:1 > again": 1,
        "demo/parent > each > each:1 > again > again": 2,
        "demo/parent > bad": 1,
        "demo/parent > bad > boom": 1,
    }


def test_a_failed_task_shows_its_kind_up_to_the_root(place: Place, collector: Collector) -> None:
    export(place.parent, "--format", "otlp", "--to", collector.url)
    failed = {span.name: span for span in collector.spans if span.status.code == 2}
    assert sorted(failed) == ["bad", "boom", "demo/parent"]
    told = attributes_of(failed["boom"])
    assert told["noetl.step"] == "bad"
    assert told["noetl.task"] == "boom"
    assert told["noetl.kind"] == told["noetl.error.kind"] == told["error.type"] == "duckdb"
    assert told["noetl.attempt"] == 1
    assert "nope" in failed["boom"].status.message


def test_times_of_tasks_are_those_of_the_worker(place: Place, collector: Collector) -> None:
    export(place.parent, "--format", "otlp", "--to", collector.url)
    metas = [
        told["data"]["outcome"]["meta"]
        for told in place.events(place.parent)
        if told["name"] == "task.done" and told["step"] != "each"
    ]
    spans = {attributes_of(span).get("noetl.task_run_id"): span for span in collector.spans}
    for meta in metas:
        span = spans[meta["task_run_id"]]
        assert span.start_time_unix_nano == meta["started_at"] * 1_000_000
        took = span.end_time_unix_nano - span.start_time_unix_nano
        assert took == meta["duration_ms"] * 1_000_000


def test_a_child_is_in_the_trace_of_its_parent(place: Place, collector: Collector) -> None:
    assert export("--all", "--format", "otlp", "--to", collector.url) == 0
    roots = [span for span in collector.spans if span.parent_span_id == b""]
    assert [span.name for span in roots] == ["demo/parent"]
    assert {span.trace_id.hex() for span in collector.spans} == {trace_id(place.parent)}
    spans = {span.span_id: span for span in collector.spans}
    child = next(span for span in collector.spans if span.name == "demo/child")
    assert path_of(child, spans) == "demo/parent > start > child > demo/child"
    each = next(span for span in collector.spans if span.name == "each")
    assert [spans[link.span_id].name for link in each.links] == ["start"]


def test_spans_that_ended_after_a_seq(place: Place, collector: Collector) -> None:
    last = place.events(place.parent)[-1]["seq"]
    export(place.parent, "--after", str(last - 1), "--format", "otlp", "--to", collector.url)
    (root,) = collector.spans
    assert root.span_id.hex() == span_id(place.parent, ("execution", ""))


def test_an_otlp_file_is_a_request_per_line(tmp_path: Path, collector: Collector) -> None:
    file = tmp_path / "traces.jsonl"
    assert export("--all", "--format", "otlp", "-o", str(file)) == 0
    export("--all", "--format", "otlp", "--to", collector.url)
    assert [parsed(line) for line in file.read_bytes().splitlines()] == collector.requests


# ── ClickHouse ───────────────────────────────────────────────────────────────────────────────


def test_rows_in_clickhouse(place: Place, clickhouse: ClickHouse) -> None:
    words = ("--all", "--format", "clickhouse", "--to", clickhouse.url, "--table", "whole")
    assert export(*words, "--create") == 0
    rows = clickhouse.rows(
        "select * replace (formatDateTime(timestamp, '%FT%T.') || "
        "leftPad(toString(toUnixTimestamp64Milli(timestamp) % 1000), 3, '0') || 'Z' as timestamp) "
        "from whole order by execution_id = '" + place.child + "', seq"
    )
    for row in rows:
        row["data"] = msgspec.json.decode(row["data"])
        row["seq"] = int(row["seq"])
    take_times(rows)
    assert rows == place.events()
    assert export(*words, "--create") == 0, "a second time"
    assert clickhouse.rows("select count() as n from whole final") == [{"n": len(rows)}]


def test_a_table_that_is_missing_is_named(
    clickhouse: ClickHouse, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--all", "--format", "clickhouse", "--to", clickhouse.url, "--table", "nowhere")
    assert export(*words) == 3
    said = capfd.readouterr().err
    assert f"{clickhouse.url} answered 404 Not Found: Code: 60" in said
    assert "(taken before that: 0 rows)" in said


# ── when it does not work ────────────────────────────────────────────────────────────────────


def test_a_receiver_that_is_away(capfd: pytest.CaptureFixture[str]) -> None:
    assert export("--all", "--format", "otlp", "--to", "http://u:secret@127.0.0.1:1") == 3
    said = capfd.readouterr().err
    assert "http://127.0.0.1:1/v1/traces cannot be reached" in said
    assert "check the address and that it runs, then export again" in said
    assert "secret" not in said


def test_a_receiver_that_refuses(collector: Collector, capfd: pytest.CaptureFixture[str]) -> None:
    collector.replies = [Reply(401, b"who are you?")]
    assert export("--all", "--format", "otlp", "--to", collector.url, "--json") == 3
    said = capfd.readouterr()
    assert "answered 401 Unauthorized: who are you?" in said.err
    assert msgspec.json.decode(said.out)["status"] == "error"


def test_a_receiver_that_takes_only_some(
    collector: Collector, capfd: pytest.CaptureFixture[str]
) -> None:
    collector.replies = [Reply(200, b'{"partialSuccess":{"rejectedSpans":"2"}}')]
    assert export("--all", "--format", "otlp", "--to", collector.url) == 3
    assert "refused 2 of its spans" in capfd.readouterr().err
