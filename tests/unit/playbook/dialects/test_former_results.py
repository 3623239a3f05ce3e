"""Results of public playbooks: each kind's former shape, and how it is read here."""

from typing import Any

import pytest

from noetl.expression.template import compile_value
from noetl.playbook.dialects.code import read_code
from noetl.playbook.dialects.former_args import shaped
from noetl.playbook.dialects.former_results import Path, Source, reading, statements_in
from noetl.playbook.dialects.tree import Mapping, node_of

ROWS = [{"n": 1}, {"n": 2}]
HTTP = {"status": 200, "headers": {"a": "b"}, "data": {"rows": [1]}}


def source(kind: str, listed: bool = False, **inputs: str) -> Source:
    task = node_of({"kind": kind, **inputs})
    assert isinstance(task, Mapping)
    return Source(kind, task, listed)


def spelled(found: Source, path: Path) -> str:
    """The path below `r`, as a template would hold it."""
    below = reading(found, path)
    assert not below.reason
    rest = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path[below.parts :])
    return below.form.format("r") + rest


SELECT = source("postgres", command="SELECT n FROM t")
INSERT = source("postgres", command="INSERT INTO t VALUES (1)")
TWO = source("postgres", command="SELECT 1; SELECT 2")


@pytest.mark.parametrize(
    ("found", "path", "new"),
    [
        (source("http"), (), "r"),
        (source("http"), ("data",), "r.data"),
        (source("http"), ("data", "data"), "r.data.data"),
        (source("http"), ("status_code",), "r.status"),
        (source("http"), ("data", "status_code"), "r.status"),
        (source("http"), ("body", "x"), "r.data.x"),
        (source("http"), ("headers", "a"), "r.headers.a"),
        (source("http"), ("data", "body"), "r.data.body"),
        (SELECT, ("command_0", "rows"), "r"),
        (SELECT, ("command_0", "rows", 0, "n"), "r[0].n"),
        (SELECT, ("rows", 0), "r[0]"),
        (SELECT, ("data", "command_0", "rows"), "r"),
        (SELECT, ("data", "rows"), "r"),
        (SELECT, ("result", 0), "r[0]"),
        (SELECT, (0, "n"), "r[0].n"),
        (SELECT, ("row_count",), "(r | length)"),
        (SELECT, ("command_0", "row_count"), "(r | length)"),
        (SELECT, (), "{'command_0': {'rows': r}}"),
        (INSERT, ("command_0", "row_count"), "r.rowcount"),
        (INSERT, (), "r"),
        (TWO, ("command_1", "rows"), "r"),
        (source("snowflake", query="SELECT 1"), ("statement_0", "result"), "r"),
        (source("duckdb", query="SELECT 1"), ("result",), "r"),
        (source("playbook"), ("status",), "r.status"),
        (source("playbook"), ("execution_id",), "r.execution_id"),
        (source("playbook"), ("score",), "r.result.score"),
        (source("playbook"), ("data", "score"), "r.result.score"),
        (source("playbook"), (), "r"),
        (source("python", code="result = {'data': 1}"), ("data",), "r.data"),
        (source("python", code="result = {'n': 1}"), ("data", "n"), "r.n"),
        (source("python", code="result = f()"), ("data",), "r.data | default(r)"),
        (source("python", code="result = f()"), ("data", "n"), "(r.data | default(r)).n"),
        (source("python", code="("), ("n",), "r.n"),
        (source("noop"), ("data",), "r.data"),
        (source("http", True), ("results",), "r"),
        (source("http", True), (0, "status"), "r[0].status"),
    ],
)
def test_a_former_path_is_read_in_the_new_shape(found: Source, path: Path, new: str) -> None:
    assert spelled(found, path) == new


@pytest.mark.parametrize(
    ("found", "path", "reason"),
    [
        (source("http"), ("elapsed",), "has no 'elapsed'"),
        (source("http"), ("url",), "has no 'url'"),
        (source("http"), ("status",), "is the number of the answer"),
        (TWO, ("command_0", "rows"), "not the last of 2 statements"),
        (SELECT, ("columns",), "has no 'columns'"),
        (INSERT, ("rows",), "has no 'rows'"),
        (source("http", True), ("stats",), "it has no 'stats'"),
    ],
)
def test_what_is_no_more_has_a_reason(found: Source, path: Path, reason: str) -> None:
    assert reason in reading(found, path).reason


@pytest.mark.parametrize(
    ("command", "count"),
    [
        ("", 0),
        ("SELECT 1", 1),
        ("SELECT 1;", 1),
        ("SELECT 1; -- ;\n", 1),
        ("SELECT ';'; SELECT 'it''s ;'", 2),
        ("/* ; */ SELECT 1; SELECT 2;", 2),
        ("DO $$ BEGIN x; y; END $$; SELECT 1", 2),
        ("DO $a$ ; $a$; SELECT 1", 2),
        ("{% for x in y %}SELECT {{ x }};{% endfor %}", 1),
        ("SELECT '{{ a | join(';') }}'", 1),
    ],
)
def test_statements_are_counted(command: str, count: int) -> None:
    task = node_of({"kind": "postgres", "command": command})
    assert isinstance(task, Mapping)
    assert len(statements_in(task)) == count


# Code, how its argument is handed over (spliced: as it is), and what it gives.
SPLICED, SHAPED = True, False
ARGUMENTS = [
    ("http", "result = a.get('status_code')", SPLICED, 200),
    ("http", "result = a['body']['rows']", SPLICED, [1]),
    ("http", 'result = {"status_code": a["status_code"]}', SPLICED, {"status_code": 200}),
    ("http", "result = a.get('data')", SPLICED, {"rows": [1]}),
    ("http", "f = lambda x: x.get('status_code')\nresult = f(a)", SHAPED, 200),
    ("http", "a = dict(a)\nresult = [a['status_code'], a['body']]", SHAPED, [200, {"rows": [1]}]),
    ("postgres", "result = a.get('command_0', {}).get('rows', [])[1]['n']", SPLICED, 2),
    ("postgres", "result = a['rows'] + a['data']['command_0']['rows']", SPLICED, ROWS + ROWS),
    ("postgres", "result = a['command_0']['row_count']", SPLICED, 2),
    ("postgres", "result = a if isinstance(a, list) else []", SPLICED, ROWS),
    ("postgres", "result = a['rows'][0] if isinstance(a, dict) else {}", SHAPED, {"n": 1}),
    ("postgres", "result = [a.get(k) for k in ['rows']][0]", SHAPED, ROWS),
    ("postgres", "a = a or {}\nresult = a['command_0']['rows']", SHAPED, ROWS),
    ("postgres", "x = a.get('data') or a\nresult = x['command_0']['rows']", SHAPED, ROWS),
    ("postgres", "x = a\nresult = [x['rows'], x['row_count']]", SHAPED, [ROWS, 2]),
]


@pytest.mark.parametrize(("kind", "text", "spliced", "value"), ARGUMENTS)
def test_code_reads_what_it_read(kind: str, text: str, spliced: bool, value: Any) -> None:
    code = read_code(text)
    assert code is not None
    found = {"http": source("http"), "postgres": SELECT}[kind]
    how = shaped(found, "a", code)
    assert (how.form == "{0}", how.reason) == (spliced, "")
    assert spliced or how.code == text
    handed = {"http": HTTP, "postgres": ROWS}[kind]
    template = "{{ " + how.form.format("ctx.r") + " }}"
    scope: dict[str, Any] = {"a": compile_value(template)({"ctx": {"r": handed}})}
    exec(compile(how.code, "<code>", "exec"), scope)
    assert scope["result"] == value


@pytest.mark.parametrize(
    ("found", "text", "line"),
    [
        (TWO, "x = 1\nresult = a['command_0']['rows']", 2),
        (TWO, "result = a['command_1']['rows']\ny = [a, 'command_0']", 2),
        (source("http", True), "\nresult = a.get('stats')", 2),
    ],
)
def test_code_that_reads_what_is_gone_is_refused_by_line(
    found: Source, text: str, line: int
) -> None:
    code = read_code(text)
    assert code is not None
    how = shaped(found, "a", code)
    assert how.reason
    assert how.line == line
