"""Where a statement ends: the semicolons that count, and those that do not."""

import pytest

from noetl.tools.sql.statements import Statement, split, statements_of


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        (" ; ;select 1;; select 2 ", ["select 1", "select 2"]),
        ("", []),
        ("-- only; this\n/* and; that */ ;", []),
        ("select ';' ; select ''';'", ["select ';'", "select ''';'"]),
        ('select 1 as "a;""b"; select 2', ['select 1 as "a;""b"', "select 2"]),
        (r"select E'\';' ; select 2", [r"select E'\';'", "select 2"]),
        (r"select '\' ; select 2", [r"select '\'", "select 2"]),
        ("select $$a;b$$; select 2", ["select $$a;b$$", "select 2"]),
        ("select $q$a;$$;b$q$; select 2", ["select $q$a;$$;b$q$", "select 2"]),
        ("select 1 -- a; b\n; select 2", ["select 1 -- a; b", "select 2"]),
        ("select 1 /* a; /* b; */ c; */; select 2", ["select 1 /* a; /* b; */ c; */", "select 2"]),
        ("select 1 /* open; select 2", ["select 1 /* open; select 2"]),
        ("select $$open; select 2", ["select $$open; select 2"]),
        ("select 'open; select 2", ["select 'open", "select 2"]),
        (
            "create rule r as on insert to t do (delete from a; delete from b); select 2",
            ["create rule r as on insert to t do (delete from a; delete from b)", "select 2"],
        ),
        (
            "create function f() returns int begin atomic select case when 1=1 then 1 end; "
            "select 2; end; select 3",
            [
                "create function f() returns int begin atomic select case when 1=1 then 1 end; "
                "select 2; end",
                "select 3",
            ],
        ),
        ("select a$b$c; select 2", ["select a$b$c", "select 2"]),
        ("select 1$$;$$", ["select 1$$;$$"]),
    ],
)
def test_statements_are_told_apart(text: str, statements: list[str]) -> None:
    assert [statement.text for statement in split(text)] == statements


def one(text: str) -> Statement:
    (statement,) = statements_of(text)
    return statement


@pytest.mark.parametrize(
    ("text", "only_reads"),
    [
        ("SELECT 1", True),
        ("/* c */ values (1)", True),
        ("with a as (select 1) select * from a", True),
        ("table t", True),
        ("select 'insert'", True),
        ("select 1 into t", False),
        ("with a as (insert into t values (1) returning *) select * from a", False),
        ("insert into t values (1) returning id", False),
        ("update t set a = 1", False),
        ("call p()", False),
    ],
)
def test_what_certainly_answers_with_rows(text: str, only_reads: bool) -> None:
    assert one(text).only_reads is only_reads


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("set search_path to x", True),
        ("select set_config('a', 'b', false)", True),
        ("create temp table t (a int)", True),
        ("select 1 into temporary t", True),
        ("listen news", True),
        ("select pg_advisory_lock(1)", True),
        ("update t set a = 1", False),
        ("insert into t values (1) on conflict do update set a = 1", False),
        ("select temp from weather", False),
        ("create table t (a int)", False),
        ("select 'set temp'", False),
    ],
)
def test_what_changes_the_session(text: str, stays: bool) -> None:
    assert one(text).leaves_traces is stays
