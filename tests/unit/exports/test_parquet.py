"""Parquet, read back with another implementation than the one that wrote it."""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.exports.stories import each, envelopes_of, event, run

from noetl.errors import LogUnavailable, UnwritableFile
from noetl.exports import parquet
from noetl.exports.columns import COLUMNS, row_of
from noetl.exports.export import ExportBody, lines
from noetl.exports.parquet import write_parquet

ODD = {"big": 2**70, "exact": 0.1, "text": 'é "quoted" \n', "none": None, "like": {"$ref": {}}}


def rows(*fields: dict[str, Any]) -> list[ExportBody]:
    told = envelopes_of(*((1_794_783_260_901, event("ctx.patched", **one)) for one in fields))
    return [ExportBody(lines([row_of(one) for _, one in told]), len(told))] if fields else []


def read(file: Path) -> Any:
    import pyarrow.parquet as pq  # slow, and every process of the suite collects this file

    return pq.ParquetFile(file)


def written(file: Path, *fields: dict[str, Any]) -> Any:
    run(write_parquet(file, each(rows(*fields))))
    return read(file).read()


def test_columns_have_their_types(tmp_path: Path) -> None:
    table = written(tmp_path / "out.parquet", {"patch": ODD, "step": "load"})
    types = {field.name: str(field.type) for field in table.schema}
    assert list(types) == list(COLUMNS)
    assert (types["seq"], types["timestamp"]) == ("int64", "timestamp[us, tz=UTC]")
    assert "json" in types["data"]
    assert {types[name] for name in COLUMNS} - {types["data"]} == {
        "string",
        "int64",
        "timestamp[us, tz=UTC]",
    }


def test_values_come_back_exactly(tmp_path: Path) -> None:
    (row,) = written(tmp_path / "out.parquet", {"patch": ODD, "step": "load"}).to_pylist()
    assert row["timestamp"] == datetime(2026, 11, 15, 22, 54, 20, 901000, UTC)
    assert (row["seq"], row["step"], row["parent_id"]) == (1, "load", None)
    assert row["data"] == (
        '{"patch":{"big":1180591620717411303424,"exact":0.1,'
        '"text":"é \\"quoted\\" \\n","none":null,"like":{"$ref":{}}}}'
    )


def test_a_row_has_the_times_of_the_worker(tmp_path: Path) -> None:
    [(_, told)] = envelopes_of((2000, event("task.done", step="load")))
    body = ExportBody(lines([row_of(told, (1_000, 1_277)), row_of(told)]), 2)
    run(write_parquet(tmp_path / "out.parquet", each([body])))
    known, unknown = read(tmp_path / "out.parquet").read().to_pylist()
    assert known["started_at"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert (known["duration_ms"], unknown["duration_ms"], unknown["started_at"]) == (
        277,
        None,
        None,
    )


def test_no_event_is_a_file_without_rows(tmp_path: Path) -> None:
    table = written(tmp_path / "out.parquet")
    assert table.num_rows == 0
    assert table.schema.names == list(COLUMNS)


def test_order_is_kept_over_many_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 2048)
    table = written(tmp_path / "out.parquet", *({"patch": {"n": n}} for n in range(10_000)))
    assert table.column("seq").to_pylist() == list(range(1, 10_001))
    assert read(tmp_path / "out.parquet").num_row_groups > 1


def test_the_same_events_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        written(tmp_path / name, {"patch": ODD}, {"patch": {}})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("name", ["it's [1] *?.parquet", "über{a}.parquet", "a;b.parquet"])
def test_any_name_is_only_a_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "d[a]*'"
    folder.mkdir()
    assert written(folder / name, {"patch": {}}).num_rows == 1
    assert os.listdir(folder) == [name]


@pytest.mark.parametrize("name", ["missing/out.parquet", ".", "x" * 300])
def test_what_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnwritableFile) as refused:
        run(write_parquet(tmp_path / name, each(rows({"patch": {}}))))
    assert "cannot write" in str(refused.value)
    assert ".part" not in str(refused.value)
    assert os.listdir(tmp_path) == []


def test_a_device_is_refused() -> None:
    with pytest.raises(UnwritableFile, match="parquet needs an ordinary file"):
        run(write_parquet(Path("/dev/null"), each([])))


def test_a_failure_leaves_the_old_file_and_no_parts(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[ExportBody]:
        yield rows({"patch": {}})[0]
        raise LogUnavailable("the log is gone")

    file = tmp_path / "out.parquet"
    file.write_text("before")
    with pytest.raises(LogUnavailable):
        run(write_parquet(file, broken()))
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.parquet"]
