"""Many rows at once: COPY into PostgreSQL, rows and files for DuckDB, and from one to the other."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.postgres import Database
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.sql import DuckdbInputs, PostgresInputs
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.tools.sql.duck import DuckDbTool
from noetl.tools.sql.postgres import PostgresTool


class Databases:
    """Both kinds side by side in one step run, with one store of results."""

    def __init__(self, place: BenchPlace, folder: Path) -> None:
        self.place = place
        self._folder = folder
        self._runner = asyncio.Runner()
        self._postgres, self._duckdb = PostgresTool(), DuckDbTool()

    def postgres(self, command: str, max_inline: int = 1_048_576, **named: Any) -> Outcome:
        inputs = PostgresInputs(command=command, auth="db", **named)
        call = call_of(inputs, folder=str(self._folder), max_inline=max_inline)
        return self._runner.run(self._postgres.call(call, self.place))

    def duckdb(self, command: str, max_inline: int = 1_048_576, **named: Any) -> Outcome:
        inputs = DuckdbInputs(command=command, **named)
        call = call_of(inputs, folder=str(self._folder), max_inline=max_inline)
        return self._runner.run(self._duckdb.call(call, self.place))

    def stored(self, value: Any) -> Reference:
        return self.place.results.stored("e1", msgspec.json.encode(value))

    def close(self) -> None:
        self._runner.run(self._postgres.close())
        self._runner.run(self._duckdb.close())
        self._runner.close()


@pytest.fixture
def both(database: Database, tmp_path: Path) -> Iterator[Databases]:
    databases = Databases(BenchPlace(db=database.credential), tmp_path)
    yield databases
    databases.close()


def message_of(outcome: Outcome) -> str:
    assert outcome.error is not None, outcome
    return str(outcome.error["message"])


@pytest.mark.rule("TOOL-0", "OUT-2", "OUT-3")
@pytest.mark.parametrize("kept", ["inline", "stored"])
@pytest.mark.parametrize(
    ("command", "rows"),
    [
        ("copy t from stdin", [{"b": "x\ty\\n", "a": 1}, {"b": None, "a": 2}]),
        ("COPY t (a, b) FROM STDIN", [{"b": "x\ty\\n", "a": 1}, {"a": 2}]),
        ("copy t from stdin", [[1, "x\ty\\n"], [2, None]]),
        ('copy "public"."t" (b, "a") from stdin;', [["x\ty\\n", 1], [None, 2]]),
    ],
)
def test_rows_are_copied_into_postgres(both: Databases, command: str, rows: Any, kept: str) -> None:
    both.postgres("create table t (a int, b text)")

    outcome = both.postgres(command, rows=rows if kept == "inline" else both.stored(rows))

    assert outcome.result == {"rowcount": 2}, outcome.error
    assert outcome.block is not None
    assert outcome.block["rowcount"] == 2
    assert both.postgres("select * from t order by a").result == [
        {"a": 1, "b": "x\ty\\n"},
        {"a": 2, "b": None},
    ]


@pytest.mark.rule("OUT-3")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("jsonb", {"a": [1, None]}),
        ("jsonb", [1, 2]),
        ("json", "text"),
        ("bytea", "AP8="),
        ("int[]", [1, None, 3]),
        ("text[]", ["a,b", '"']),
        ("timestamptz", "2026-01-02T03:04:05+00:00"),
        ("numeric", "12345678901234567890.123456789"),
        ("boolean", True),
        ("float8", "NaN"),
        ("uuid", "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_what_was_read_can_be_copied_back(both: Databases, kind: str, value: Any) -> None:
    both.postgres(f"create table t (v {kind})")

    outcome = both.postgres("copy t from stdin", rows=[{"v": value}])

    assert outcome.status == "ok", outcome.error
    assert both.postgres("select v from t").result == [{"v": value}]


@pytest.mark.rule("TOOL-0")
@pytest.mark.parametrize("source", ["text", "stored text", "file"])
def test_csv_goes_as_it_is(both: Databases, tmp_path: Path, source: str) -> None:
    csv = 'a,b\n1,"x, y"\n2,é\n'
    (tmp_path / "in.csv").write_text(csv, "utf-8")
    both.postgres("create table t (a int, b text)")
    named = {"text": csv, "stored text": both.stored(csv)}
    carried = {"file": "in.csv"} if source == "file" else {"rows": named[source]}

    outcome = both.postgres("copy t from stdin with (format csv, header)", **carried)

    assert outcome.result == {"rowcount": 2}, outcome.error
    assert both.postgres("select b from t order by a").result == [{"b": "x, y"}, {"b": "é"}]


@pytest.mark.rule("TOOL-0")
def test_a_table_is_written_to_a_file(both: Databases, tmp_path: Path) -> None:
    outcome = both.postgres(
        "copy (select 1 as a, 'x' as b) to stdout with (format csv, header)", file="out.csv"
    )

    assert outcome.result == {"rowcount": 1}, outcome.error
    assert (tmp_path / "out.csv").read_text() == "a,b\n1,x\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.rule("OUT-3")
def test_what_stands_before_a_copy_is_one_transaction_with_it(both: Databases) -> None:
    both.postgres("create table t (a int); insert into t values (7)")

    failed = both.postgres("delete from t; copy t from stdin", rows=[{"a": 1}, {"a": "no number"}])
    kept = both.postgres("select a from t").result
    done = both.postgres("delete from t; copy t from stdin", rows=[{"a": 1}])

    assert failed.error is not None
    assert (failed.error["kind"], failed.block and failed.block["code"]) == ("postgres", "22P02")
    assert kept == [{"a": 7}]
    assert done.result == {"rowcount": 1}
    assert both.postgres("select a from t").result == [{"a": 1}]


@pytest.mark.rule("RES-4")
def test_a_stored_body_that_changed_loads_nothing(both: Databases) -> None:
    both.postgres("create table t (a int)")
    reference = both.stored([{"a": n} for n in range(1000)])
    both.place.results.kept[reference.key] = b'[{"a":1}]'

    outcome = both.postgres("copy t from stdin", rows=reference)

    assert outcome.error is not None
    assert outcome.error["kind"] == "result"
    assert reference.key in message_of(outcome)
    assert both.postgres("select a from t").result == []


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize(
    ("command", "named", "kind", "says"),
    [
        ("copy t from stdin", {}, "input", "needs 'rows' or 'file'"),
        ("copy t to stdout", {}, "input", "needs 'file'"),
        ("select 1", {"rows": []}, "input", "need a last statement like COPY"),
        ("copy t from stdin; select 1", {"rows": []}, "input", "not the last statement"),
        ("copy t from stdin", {"rows": [], "file": "x"}, "input", "give only one of them"),
        ("copy t from stdin", {"rows": {"a": 1}}, "input", "expected a list"),
        ("copy t from stdin", {"rows": [1]}, "input", "row 1 is 1; expected a mapping"),
        ("copy t from stdin", {"rows": [{"a": 1}, {"c": 1}]}, "input", "row 2 has 'c'"),
        ("copy t from stdin", {"rows": [[1, 2]]}, "input", "row 1 has 2 values for the 1"),
        ("copy t from stdin csv", {"rows": [[1]]}, "input", "COPY's own format"),
        ("copy t from stdin", {"rows": [[1]], "params": [1]}, "input", "no places for 'params'"),
        ("copy t from stdin", {"file": "missing.csv"}, "not_found", "cannot read"),
        ("copy t from stdin", {"file": "../x.csv"}, "input", "leaves the playbook's folder"),
        ("copy t to stdout", {"file": "no/such/x.csv"}, "input", "cannot write"),
        ("copy nowhere from stdin", {"rows": [{"a": 1}]}, "postgres", "nowhere"),
        ("copy b from stdin", {"rows": [{"v": "?"}]}, "input", "not base64 text"),
    ],
)
def test_a_copy_that_cannot_be_says_why(
    both: Databases, command: str, named: dict[str, Any], kind: str, says: str
) -> None:
    both.postgres("create table t (a int); create table b (v bytea)")

    outcome = both.postgres(command, **named)

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == (kind, False)
    assert says in message_of(outcome)
    assert both.postgres("select count(*) as n from t").result == [{"n": 0}]


def test_no_rows_are_no_rows(both: Databases) -> None:
    both.postgres("create table t (a int)")

    assert both.postgres("copy t from stdin", rows=[]).result == {"rowcount": 0}


@pytest.mark.rule("TOOL-0")
@pytest.mark.parametrize("kept", ["inline", "stored"])
def test_duckdb_reads_rows_as_a_table(both: Databases, kept: str) -> None:
    rows = [{"a": 1, "b": "2026-01-02T03:04:05", "c": {"d": [1]}}, {"a": 2.5}]
    carried = rows if kept == "inline" else both.stored(rows)
    both.duckdb("create table t (a double, b timestamp)")

    both.duckdb("insert into t select a, b from rows", rows=carried)
    outcome = both.duckdb("select * from rows", rows=carried)

    assert outcome.result == [
        {"a": 1.0, "b": "2026-01-02T03:04:05", "c": {"d": [1]}},
        {"a": 2.5, "b": None, "c": None},
    ]
    assert both.duckdb("select b from t where a = 1").result == [{"b": "2026-01-02T03:04:05"}]


@pytest.mark.rule("TOOL-0")
@pytest.mark.parametrize("rows", [[], [{"a": "7", "b'c": None}]])
def test_columns_say_what_rows_are(both: Databases, rows: list[Any]) -> None:
    columns = {"a": "INTEGER", "b'c": "DECIMAL(9, 2)"}

    outcome = both.duckdb('select a, "b\'c" as b from rows', rows=rows, columns=columns)

    assert outcome.result == [{"a": 7, "b": None} for _ in rows], outcome.error


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ({"columns": {"a": "INTEGER"}}, "'rows', which are missing"),
        ({"rows": {"a": 1}}, "not a list of mappings"),
        ({"rows": "text"}, "not a list of mappings"),
    ],
)
def test_rows_that_cannot_be_say_why(both: Databases, named: dict[str, Any], says: str) -> None:
    outcome = both.duckdb("select 1", **named)

    assert outcome.error is not None
    assert outcome.error["kind"] == "input"
    assert says in message_of(outcome)


@pytest.mark.rule("TOOL-0")
@pytest.mark.parametrize(
    ("name", "read"), [("t.parquet", "'{}'"), ("t.csv", "'{}'"), ("t.json", "read_json('{}')")]
)
def test_duckdb_writes_and_reads_files_beside_the_playbook(
    both: Databases, tmp_path: Path, name: str, read: str
) -> None:
    written = both.duckdb(f"copy (select 1 as a, 'x' as b) to '{name}'")

    assert written.result == {"rowcount": 1}, written.error
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert both.duckdb(f"select * from {read.format(name)}").result == [{"a": 1, "b": "x"}]


@pytest.mark.rule("TOOL-0")
def test_another_database_is_attached(both: Databases, tmp_path: Path) -> None:
    both.duckdb("attach 'other.duckdb' as other; create table other.t as select 1 as a")
    read = both.duckdb("select a from t", database="other.duckdb")

    assert (tmp_path / "other.duckdb").exists()
    assert read.error is not None  # still attached by this step run
    assert both.duckdb("detach other").status == "ok"
    assert both.duckdb("select a from t", database="other.duckdb").result == [{"a": 1}]


@pytest.mark.rule("RES-1", "RES-2")
def test_rows_travel_by_reference(both: Databases) -> None:
    """DuckDB → PostgreSQL → DuckDB: what is between them is in the store, never in a list."""
    both.postgres("create table t (n bigint, label text, seen timestamptz)")
    made = both.duckdb(
        "select range as n, 'row ' || range as label, timestamptz '2026-01-02 03:04:05+00' as seen "
        "from range(20000)",
        max_inline=1000,
    )
    assert isinstance(made.result, Reference)

    loaded = both.postgres("copy t from stdin", rows=made.result)
    read = both.postgres("select * from t order by n", max_inline=1000)
    assert isinstance(read.result, Reference)
    back = both.duckdb(
        "select count(*) as n, sum(n)::bigint as sum, max(label) as last, min(seen) as seen "
        "from rows",
        rows=read.result,
    )

    assert loaded.result == {"rowcount": 20000}, loaded.error
    assert back.result == [
        {"n": 20000, "sum": 199990000, "last": "row 9999", "seen": "2026-01-02T03:04:05+00:00"}
    ]
