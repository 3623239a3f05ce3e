"""The command: what it takes, what it refuses, and what it says in the end."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from tests.support.collector import Collector, Reply
from tests.unit.exports.stories import ID, event

from noetl.adapters.sqlite.storage import open_storage
from noetl.cli.main import main
from noetl.cli.moment import Moment
from noetl.ports.event_log import Decision, ExecutionRow

pytestmark = pytest.mark.unproven

DAY = datetime(2026, 1, 31, tzinfo=UTC).timestamp() * 1000
OTHER = "06h3k9v2q8m4x0c7w2"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two executions: one of yesterday with three events, one of today with one."""
    folder = tmp_path / "home"
    monkeypatch.setenv("NOETL_HOME", str(folder))

    async def fill() -> None:
        opened = await open_storage(folder)
        for execution_id, at, count in ((ID, int(DAY), 3), (OTHER, int(DAY) + 86_400_000, 1)):
            row = ExecutionRow(
                execution_id=execution_id,
                path="p",
                digest="d",
                status="running",
                started_at=at,
                updated_at=at,
            )
            events = [event("playbook.execution.requested", path="p")]
            events += [event("execution.paused")] * (count - 1)
            decision = Decision(
                execution_id=execution_id,
                expected=0,
                last=count,
                at=at,
                events=msgspec.json.encode(events),
                row=row,
            )
            await opened.log.append(decision)
        await opened.close()

    asyncio.run(fill())
    return folder


Said = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("--format jsonl", "give IDs, or --all, or --since"),
        ("a --all --format jsonl", "give IDs or --all, not both"),
        ("--all --after 3 --format jsonl", "--after counts within one execution: give one ID"),
        ("a b --after 3 --format jsonl", "--after counts within one execution: give one ID"),
        ("a --after -1 --format jsonl", "-1 is not in the range x>=0"),
        ("--all", "Missing option '--format'"),
        ("--all --format csv", "'csv' is not one of"),
        ("--all --format otlp -o f --to http://h", "give -o or --to, not both"),
        ("--all --format jsonl --to http://h", "jsonl is written to a file: give -o"),
        ("--all --format parquet --to http://h", "parquet is written to a file: give -o"),
        ("--all --format parquet", "parquet is not text: give the file with -o"),
        ("--all --format parquet -o -", "parquet is not text: give the file with -o"),
        ("--all --format otlp --auth k", "--auth signs requests: give --to"),
        ("--all --format otlp --to http://h --create", "belong to --format clickhouse"),
        ("--all --format clickhouse --table t", "belong to --format clickhouse --to URL"),
        ("--all --format otlp --to localhost:4318", "is not an address: expected http://HOST:PORT"),
        ("--all --format otlp --to ftp://h", "is not an address"),
        ("--all --format otlp --to http://", "is not an address"),
        ("--all --format otlp --to http://h:x", "is not an address"),
        ("--all --since yesterday --format jsonl", "'yesterday' is not a time: expected"),
        ("--all --format clickhouse --to http://h --table a;b", "'a;b' is not a table name"),
        ("nobody --format jsonl", "no execution 'nobody' in"),
        (f"{ID} nobody --format jsonl", "no execution 'nobody' in"),
        ("--all --format otlp --to http://h --auth nobody", "no credential 'nobody'"),
    ],
)
def test_what_is_refused(words: str, remedy: str, capfd: Said) -> None:
    assert main(["export", *words.split()]) == 3
    said = capfd.readouterr()
    assert remedy in said.err
    assert said.out == ""


def test_a_home_in_which_nothing_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Said
) -> None:
    monkeypatch.setenv("NOETL_HOME", str(tmp_path / "none"))
    assert main(["export", "--all", "--format", "jsonl"]) == 3
    assert "nothing has run in" in capfd.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("--all", [ID, ID, ID, OTHER]),
        (f"{OTHER} {ID} {OTHER}", [OTHER, ID, ID, ID]),
        ("--since 2026-02-01", [OTHER]),
        ("--since 2026-02-01T00:00:00Z", [OTHER]),
        ("--since 2026-02-01T01:00:00+01:00", [OTHER]),
        (f"{ID} --since 2026-02-01", []),
        (f"{ID} --after 1", [ID, ID]),
        ("--since 2099-01-01", []),
    ],
)
def test_which_events(words: str, ids: list[str], capfd: Said) -> None:
    assert main(["export", *words.split(), "--format", "jsonl"]) == 0
    said = capfd.readouterr()
    assert [msgspec.json.decode(x)["execution_id"] for x in said.out.splitlines()] == ids
    assert ("nothing to export" in said.err) == (not ids)


@pytest.mark.parametrize(
    ("form", "words", "told"),
    [
        ("jsonl", [ID], {"executions": 1, "events": 3, "lines": 3, "last_seq": 3}),
        ("parquet", ["--all"], {"executions": 2, "events": 4, "rows": 4, "last_seq": None}),
        ("clickhouse", ["--all"], {"executions": 2, "events": 4, "rows": 4, "last_seq": None}),
        ("otlp", [ID], {"executions": 1, "events": 3, "spans": 0, "last_seq": 3}),
        ("jsonl", [ID, "--after", "3"], {"executions": 1, "events": 0, "lines": 0, "last_seq": 3}),
        ("otlp", [ID, "--after", "2"], {"executions": 1, "events": 1, "spans": 0, "last_seq": 3}),
    ],
)
def test_the_summary_for_programs(
    form: str, words: list[str], told: dict[str, Any], tmp_path: Path, capfd: Said
) -> None:
    file = tmp_path / "out"
    assert main(["export", *words, "--format", form, "-o", str(file), "--json"]) == 0
    said = msgspec.json.decode(capfd.readouterr().out)
    assert said == {"status": "ok", "format": form, **told}
    assert file.exists()


@pytest.mark.parametrize("out", ["missing/out", "."])
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_file_that_cannot_be_written(form: str, out: str, tmp_path: Path, capfd: Said) -> None:
    assert main(["export", "--all", "--format", form, "-o", str(tmp_path / out)]) == 3
    assert f"cannot write '{tmp_path / out}'" in capfd.readouterr().err


def test_a_full_disk(capfd: Said) -> None:
    assert main(["export", "--all", "--format", "jsonl", "-o", "/dev/full"]) == 3
    assert "no space left on device" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("kind", "fields", "header", "value"),
    [
        ("bearer", {"token": "a-long-token"}, "authorization", "Bearer a-long-token"),
        ("basic", {"user": "u", "password": "secret"}, "authorization", "Basic dTpzZWNyZXQ="),
        ("api_key", {"key": "a-long-key", "header": "X-Key"}, "x-key", "a-long-key"),
    ],
)
def test_a_registered_credential_signs_requests(
    kind: str,
    fields: dict[str, str],
    header: str,
    value: str,
    collector: Collector,
    tmp_path: Path,
) -> None:
    register(tmp_path, kind, fields)
    collector.replies = [Reply(202)]
    words = ["--format", "clickhouse", "--to", collector.url, "--auth", "gate"]
    assert main(["export", ID, *words]) == 0
    assert [told.get(header) for told in collector.headers] == [value]


def register(folder: Path, kind: str, fields: dict[str, str]) -> None:
    """A credential `gate`."""
    (folder / "gate.json").write_bytes(msgspec.json.encode(fields))
    words = ["--kind", kind, "--file", str(folder / "gate.json")]
    assert main(["credential", "add", "gate", *words]) == 0


def test_a_credential_of_another_kind_is_refused(
    collector: Collector, tmp_path: Path, capfd: Said
) -> None:
    register(tmp_path, "generic", {"a": "b"})
    words = ["--format", "otlp", "--to", collector.url, "--auth", "gate"]
    assert main(["export", ID, *words]) == 3
    assert "expected one of: basic, bearer, api_key" in capfd.readouterr().err


def test_what_a_receiver_repeats_of_a_secret_is_masked(
    collector: Collector, tmp_path: Path, capfd: Said
) -> None:
    register(tmp_path, "bearer", {"token": "a-long-token"})
    collector.replies = [Reply(403, b"a-long-token is not welcome")]
    words = ["--format", "clickhouse", "--to", collector.url, "--auth", "gate"]
    assert main(["export", ID, *words]) == 3
    said = capfd.readouterr().err
    assert "is not welcome" in said
    assert "a-long-token" not in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31", DAY),
        ("2026-01-31T00:00:01.5", DAY + 1500),
        ("2026-01-31T02:00:00+02:00", DAY),
        ("0s", 1_000_000_000_000),
        ("90m", 1_000_000_000_000 - 90 * 60_000),
        ("24h", 1_000_000_000_000 - 86_400_000),
        ("7d", 1_000_000_000_000 - 7 * 86_400_000),
    ],
)
def test_moments(text: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.cli.moment.time.time", lambda: 1_000_000_000.0)
    assert Moment().convert(text, None, None) == expected


@pytest.mark.parametrize(
    "text", ["", "24", "h", "-1h", "1.5h", "2026-13-01", "٣h", "9" * 400 + "d"]
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time"):
        Moment().convert(text, None, None)
