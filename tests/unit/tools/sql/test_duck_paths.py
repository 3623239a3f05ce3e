"""Which paths of a DuckDB command are made absolute, and which are left alone."""

from pathlib import Path

import pytest

from noetl.tools.refusal import Refusal
from noetl.tools.sql.duck_paths import placed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("copy t to 'a.csv'", "copy t to '{}/a.csv'"),
        (
            "COPY (select 'x' to_x) TO 'a b.csv' (HEADER)",
            "COPY (select 'x' to_x) TO '{}/a b.csv' (HEADER)",
        ),
        ("select 1; copy t to 'sub/a.csv';", "select 1; copy t to '{}/sub/a.csv';"),
        ("copy t /* to 'x' */ to -- 'y'\n 'a.csv'", "copy t /* to 'x' */ to -- 'y'\n '{}/a.csv'"),
        ("attach 'x.db' as x", "attach '{}/x.db' as x"),
        ("attach database if not exists 'x.db'", "attach database if not exists '{}/x.db'"),
        ("export database 'dump'", "export database '{}/dump'"),
        ("copy t to 'it''s.csv'", "copy t to '{}/it''s.csv'"),
    ],
)
def test_relative_paths_begin_at_the_folder(tmp_path: Path, text: str, changed: str) -> None:
    assert placed(text, str(tmp_path)) == changed.format(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "copy t to '/tmp/a.csv'",
        "copy t to 's3://bucket/a.csv'",
        "attach ':memory:' as x",
        "attach 'md:x'",
        "copy t from 'a.csv'",
        "select 'to' as x, 'a.csv'",
        "copy (select a from b where c = 'd' or e in ('to', 'f'))",
        "copy \"to\" from 'a.csv'",
        "select /* unclosed 'copy' to 'a.csv'",
    ],
)
def test_everything_else_stays(tmp_path: Path, text: str) -> None:
    assert placed(text, str(tmp_path)) == text


def test_without_a_folder_nothing_changes() -> None:
    assert placed("copy t to 'a.csv'", None) == "copy t to 'a.csv'"


def test_a_path_cannot_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="leaves the playbook's folder"):
        placed("copy t to '../a.csv'", str(tmp_path))
