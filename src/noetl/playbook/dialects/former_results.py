"""
What is a result of public playbooks called here, kind by kind? (DIA-UP, OUT-3)

There `http` gave `{status_code, headers, data}`, `postgres` `{command_0: {rows}}`, and a child its
`return_step`; a step's result was read by the step's name. Here each has the shape of OUT-3.
"""

import re
from typing import Final, NamedTuple

from noetl.playbook.dialects.code import keys_of_result, read_code
from noetl.playbook.dialects.draft import Draft, below_path
from noetl.playbook.dialects.tree import Mapping, TreeSlot

Path = tuple[str | int, ...]
SQL: Final = frozenset({"postgres", "duckdb", "snowflake"})
NUMBERED: Final = re.compile(r"(?:command|statement)_(\d+)")
_FORMER_KEY: Final = re.compile(r"command_\d+|statement_\d+|status_code")
ANSWER: Final = {"status_code": "status", "data": "data", "headers": "headers"}
"""Parts of an http answer that the case dialect reads by the name of its step."""
_COUNTS: Final = frozenset({"row_count", "rowcount", "rows_affected"})
_ROWS: Final = frozenset({"rows", "result", "data"})
_ABOUT_CALL: Final = frozenset({"url", "elapsed", "request"})
_OF_CHILD: Final = frozenset({"execution_id", "status", "ctx", "result"})
_NOT_SQL: Final = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$|\{[{%#].*?[}%#]\}", re.DOTALL
)
_GIVES_ROWS: Final = re.compile(r"\s*(?:select|with|values|show|table|explain)\b", re.IGNORECASE)
_RETURNING: Final = re.compile(r"\breturning\b", re.IGNORECASE)


class Source(NamedTuple):
    """The task whose result a name stands for."""

    kind: str
    task: Mapping
    listed: bool = False
    """Whether it is the result of a loop: one value for each iteration."""
    child: TreeSlot | None = None
    """`return_step` of a playbook that is called."""


class PathReading(NamedTuple):
    """How a path below a result is written: `parts` of it become `form`, with the root in it."""

    parts: int
    form: str = "{0}"
    reason: str = ""
    """Why it cannot be written; empty if it can."""


def source_of(draft: Draft, task: Mapping, *, listed: bool = False) -> Source:
    """A task as the origin of a result; a call to the workbook is the task there."""
    kind = task.text("kind") or ""
    origin = task
    if kind == "workbook":
        named = below_path(draft.root, "workbook", "tasks", task.text("name") or "")
        origin, kind = (named, named.text("kind") or "") if named is not None else (task, kind)
    return Source(kind, origin, listed, draft.left.get(("returned", id(task))))


def reading(source: Source, path: Path) -> PathReading:
    """How a path below a result is read; an empty path is the whole of it."""
    if source.listed:
        return _of_loop(path)
    if source.kind == "http":
        return _of_http(path)
    if source.kind in SQL:
        return _of_sql(source, path)
    if source.kind == "playbook":
        return _of_child(source, path)
    if source.kind == "python" and path[:1] in (("data",), ("result",)):
        return _of_python(source, path)
    return PathReading(0)


def _of_loop(path: Path) -> PathReading:
    if path[:1] in (("data",), ("results",), ("result",)):
        return PathReading(1)
    if not path or isinstance(path[0], int):
        return PathReading(0)
    return PathReading(
        0, reason=f"a loop's result is the list of its results; it has no '{path[0]}'"
    )


def _of_http(path: Path) -> PathReading:
    if path[:2] == ("data", "status_code"):  # the number was met at both places
        return PathReading(2, "{0}.status")
    head = path[0] if path else None
    if head == "status_code":
        return PathReading(1, "{0}.status")
    if head == "body":
        return PathReading(1, "{0}.data")
    if head in _ABOUT_CALL:
        return PathReading(0, reason=f"the result of an http task has no '{head}'")
    if head == "status":
        return PathReading(0, reason="'status' of an http result is the number of the answer now")
    if isinstance(head, str) and head not in ("data", "headers"):
        said = f"an http result has status_code, headers and data; '{head}' is none of them"
        return PathReading(0, reason=said)
    return PathReading(0)


def _of_sql(source: Source, path: Path) -> PathReading:
    at = 1 if path[:1] in (("data",), ("result",), ("results",)) and len(path) > 1 else 0
    if at and isinstance(path[1], int):
        return PathReading(1)  # `result[0]` of the kinds that had no commands
    statements = statements_in(source.task)
    number = NUMBERED.fullmatch(str(path[at])) if len(path) > at else None
    if number is not None:
        if int(number.group(1)) != len(statements) - 1:
            return PathReading(
                0,
                reason=f"'{path[at]}' is not the last of {len(statements)} statements, and only "
                "the last one's result is kept",
            )
        at += 1
    word = path[at] if len(path) > at else None
    gives_rows = not statements or _gives_rows(statements[-1])
    if word in _ROWS and gives_rows:
        return PathReading(at + 1)
    if word in _COUNTS:
        return PathReading(at + 1, "({0} | length)" if gives_rows else "{0}.rowcount")
    if word is None and not at:
        rows = "'command_0': {{'rows': {0}}}"
        return PathReading(0, f"{{{{{rows}}}}}") if gives_rows else PathReading(0)
    if isinstance(word, int) and not at:
        return PathReading(0)
    shown = ".".join(map(str, path))
    return PathReading(0, reason=f"the result of the statement has no '{shown}'")


def is_former_key(text: str) -> bool:
    """Whether only a former result had such a key."""
    return bool(_FORMER_KEY.fullmatch(text))


def statements_in(task: Mapping) -> list[str]:
    """The statements of an SQL task, without their texts and comments."""
    text = next((task.text(key) or "" for key in ("command", "query") if key in task), "")
    return [one for one in _NOT_SQL.sub(" ", text).split(";") if one.strip()]


def _gives_rows(statement: str) -> bool:
    return bool(_GIVES_ROWS.match(statement) or _RETURNING.search(statement))


def _of_child(source: Source, path: Path) -> PathReading:
    if path[:1] and path[0] in _OF_CHILD and source.child is None:
        return PathReading(0)
    if path[:1] and path[0] in ("execution_id", "status"):
        return PathReading(0)
    if path[:1] == ("data",):
        return PathReading(1, "{0}.result")
    return PathReading(0, "{0}.result") if path or source.child is not None else PathReading(0)


def _of_python(source: Source, path: Path) -> PathReading:
    """`data` or `result` is a key of the result, or the result itself: the code decides."""
    word = str(path[0])
    code = read_code(source.task.text("code") or "")
    keys = keys_of_result(code) if code is not None else None
    if keys is not None and word in keys[0]:
        return PathReading(0)
    if keys is not None and word not in keys[1]:
        return PathReading(1)
    either = f"{{0}}.{word} | default({{0}})"
    return PathReading(1, f"({either})" if len(path) > 1 else either)
