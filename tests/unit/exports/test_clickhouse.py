"""The table of ClickHouse and what may be its name."""

import pytest

from noetl.errors import NoetlError
from noetl.exports.clickhouse import checked, creation
from noetl.exports.columns import COLUMNS


@pytest.mark.parametrize("name", ["noetl_events", "logs.events", "_a1"])
def test_names_of_tables(name: str) -> None:
    assert checked(name) == name


@pytest.mark.parametrize("name", ["", "a b", "a;drop table b", "a.b.c", "1a", "a`", "é", "a.\n"])
def test_what_could_be_sql_is_no_name(name: str) -> None:
    with pytest.raises(NoetlError, match=r"expected TABLE or DATABASE\.TABLE"):
        checked(name)


def test_the_table_has_every_field_of_the_envelope() -> None:
    made = creation("t")
    assert made.startswith("create table if not exists t (event_id String, seq UInt64, ")
    assert [name for name in COLUMNS if f"{name} {COLUMNS[name].clickhouse}" not in made] == []
    assert made.endswith("engine = ReplacingMergeTree order by (execution_id, seq)")
