"""A sink of the case dialect → a storage task at the end of the pipeline (S2 §10, RES-3)."""

import re
from typing import NamedTuple

from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.guards import TRUE, expression_of
from noetl.playbook.dialects.pipeline import (
    add_task,
    free_label,
    is_empty,
    quoted,
    rule_slot,
    rules_in,
    then_node,
)
from noetl.playbook.dialects.sight import Sight
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, Sequence, TreeSlot, node_of, plain

IS_OK = "outcome.status == 'ok'"
KEEP_RESULT = "{{ _prev }}"
_NAME = re.compile(r"[A-Za-z_]\w*")
_TABLE = re.compile(r'(?:[A-Za-z_][\w$]*|"[^"]+")(?:\.(?:[A-Za-z_][\w$]*|"[^"]+"))*|.*\{\{.*')
_KEYS = frozenset({"tool", "table", "args", "when", "auth", "desc"})
# By kind: how a bind parameter is written, by name and by place.
_MARKS: dict[str, tuple[str, str]] = {
    "postgres": ("%({})s", "%s"),
    "snowflake": ("%({})s", "%s"),
    "duckdb": ("${}", "?"),
}
_STATEMENTS = ("command", "query")
# Words of SQL that are met as names of columns.
_RESERVED = re.compile(
    "all|and|any|as|case|check|default|desc|else|end|from|group|in|is|limit|not|null|offset|or|"
    "order|primary|references|select|table|then|to|user|when|where",
    re.IGNORECASE,
)
_WITH_ARGS = frozenset({"python", "workbook", "playbook", "script"})


class Sink(NamedTuple):
    """A sink, read and translated."""

    slot: TreeSlot
    task: Mapping
    when: str
    """The expression that it waits for."""
    at: TreeSlot
    """Where that stands."""


def sinks_of(draft: Draft, slot: TreeSlot, sight: Sight) -> list[Sink]:
    """The sinks of a block: one mapping, or a list of them."""
    node = slot.node
    entries = node.slots if isinstance(node, Sequence) else [slot]
    return [sink for entry in entries if (sink := _sink_of(draft, entry, sight)) is not None]


def _sink_of(draft: Draft, slot: TreeSlot, sight: Sight) -> Sink | None:
    node = slot.node
    tool = node.slot("tool") if isinstance(node, Mapping) else None
    if not isinstance(node, Mapping) or tool is None:
        draft.refuse(slot, "a sink has no tool", "write sink: { tool: { kind: postgres }, … }")
        return None
    unknown = [one for one in node.slots if one.key not in _KEYS]
    for one in unknown:
        draft.refuse(
            one,
            f"'{one.key}' of a sink has no counterpart",
            "write a storage task at the end of the pipeline instead of the sink",
        )
    task = tool.node if isinstance(tool.node, Mapping) else node_of({"kind": tool.text}, tool.line)
    assert isinstance(task, Mapping)
    when = _condition(draft, node)
    if unknown or when is None:
        return None
    task.flow = False
    auth = node.pop("auth")
    if auth is not None and "auth" not in task:
        task.slots.insert(1, auth)
    if not _fill(draft, slot, node, task):
        return None
    draft.sights[id(task)] = sight
    return Sink(slot, task, when, node.slot("when") or slot)


def _condition(draft: Draft, node: Mapping) -> str | None:
    slot = node.slot("when")
    expression = TRUE if slot is None else expression_of(plain(slot.node))
    if slot is not None and expression is None:
        draft.refuse(slot, "'when' is not one whole expression", 'write when: "{{ … }}"')
    return expression


def _fill(draft: Draft, slot: TreeSlot, node: Mapping, task: Mapping) -> bool:
    """Bring `table` and `args` into the inputs of the kind."""
    kind = task.text("kind") or ""
    table, args = node.slot("table"), node.slot("args")
    args = None if args is None or is_empty(args) else args
    if kind in _MARKS and table is not None:
        return _insert(draft, task, kind, table, args)
    if table is not None:
        draft.refuse(
            table,
            f"a sink of kind {kind} has no table",
            "leave the table out, or put its name into the url or the args",
        )
        return False
    if args is None:
        return _is_enough(draft, slot, task, kind)
    key = "params" if kind in _MARKS else "args" if kind in _WITH_ARGS else "body"
    if key == "body" and kind != "http":
        draft.refuse(args, f"a sink of kind {kind} takes no args", "write the inputs of its kind")
        return False
    if key in task:
        draft.refuse(args, f"the sink has both '{key}' and 'args'", f"put them into '{key}'")
        return False
    if kind == "http" and "method" not in task:
        task.put("method", "POST", like=slot.bare)
    task.put(key, args.node, like=args)
    return _is_enough(draft, slot, task, kind)


def _is_enough(draft: Draft, slot: TreeSlot, task: Mapping, kind: str) -> bool:
    if kind in _MARKS and not any(key in task for key in _STATEMENTS):
        draft.refuse(slot, "a sink on a database has no table", "write table: … and args: { … }")
        return False
    return True


def _insert(draft: Draft, task: Mapping, kind: str, table: TreeSlot, args: TreeSlot | None) -> bool:
    """`table` and `args` → INSERT with bind parameters."""
    name = table.text or ""
    if any(key in task for key in _STATEMENTS):
        draft.refuse(table, "the sink has both a table and a statement", "leave one of them out")
        return False
    if not _TABLE.fullmatch(name):
        draft.refuse(table, f"'{name}' is not a table name", "write table: schema.name")
        return False
    if args is None or not isinstance(args.node, Mapping):
        return _insert_rows(draft, task, kind, table, args)
    columns = [slot.key or "" for slot in args.node.slots]
    named, placed = _MARKS[kind]
    by_name = all(_NAME.fullmatch(column) for column in columns)
    marks = [named.format(column) if by_name else placed for column in columns]
    plain_columns = [
        column if _NAME.fullmatch(column) and not _RESERVED.fullmatch(column) else f'"{column}"'
        for column in columns
    ]
    statement = (f"INSERT INTO {name} ({', '.join(plain_columns)})", f"VALUES ({', '.join(marks)})")
    task.put("command", _block(statement), like=table.bare)
    params: Node = args.node
    if not by_name:
        params = Sequence([TreeSlot(one.node, line=one.line) for one in args.node.slots])
    task.put("params", params, like=args)
    return True


def _insert_rows(
    draft: Draft, task: Mapping, kind: str, table: TreeSlot, args: TreeSlot | None
) -> bool:
    """Rows whose columns only the run knows: by name, as the table has them."""
    value = "result" if args is None else expression_of(args.text)
    if args is not None and value is None:
        draft.refuse(args, "the args of a sink are not a mapping", "write args: { column: … }")
        return False
    name = table.text or ""
    rows = f"[{value}] if {value} is mapping else {value}"
    if kind == "duckdb" and name == "rows":
        draft.refuse(table, "the rows have the name of the table", "write args: { column: … }")
        return False
    if kind == "duckdb":
        statement = (f"INSERT INTO {name} BY NAME", "SELECT * FROM rows")
        task.put("command", _block(statement), like=table.bare)
        task.put("rows", quoted(f"{{{{ {rows} }}}}", table.line), like=table.bare)
        return True
    if kind == "snowflake":
        draft.refuse(
            table, "the columns of a snowflake sink are not known", "write args: { column: … }"
        )
        return False
    statement = (
        f"INSERT INTO {name}",
        f"SELECT * FROM jsonb_populate_recordset(NULL::{name}, %(rows)s::jsonb)",
    )
    task.put("command", _block(statement), like=table.bare)
    task.put(
        "params", {"rows": quoted(f"{{{{ ({rows}) | tojson }}}}", table.line)}, like=table.bare
    )
    return True


def _block(lines: tuple[str, ...]) -> Scalar:
    """A text that no line of the source has."""
    text = "\n".join(lines) + "\n"
    return Scalar(text, ["|", *(f"  {one}" for one in lines)], "|")


def label_of(holder: Mapping, sink: Sink) -> str:
    return free_label(holder, "send" if sink.task.text("kind") == "http" else "save")


def save(holder: Mapping, sink: Sink, *, failing: bool = False) -> Mapping:
    """Put a sink into the pipeline; the step keeps the result of its main task, as this says."""
    bare, label = sink.slot.bare, label_of(holder, sink)
    rules = rules_in(sink.task, bare)
    kept = then_node(bare, set_prev=quoted(KEEP_RESULT, bare.line))
    if not failing:
        rules.slots.append(rule_slot(IS_OK, kept, bare))
    rules.slots.append(rule_slot(None, then_node(bare, do="fail"), bare))
    add_task(holder, label, sink.task, sink.slot)
    return kept
