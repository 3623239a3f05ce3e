"""The page of events: what each says, who writes it, its data; from the structs and their table."""

import ast
import inspect as python
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import inspect
from tests.house.typewords import input_words, shown

from noetl.messages import event, events, loop_events, wait_events
from noetl.messages.envelope import SHOWN_AS, TAKEN, TOLD_BY_EITHER, USUAL
from noetl.messages.filtering import NARROWER
from noetl.messages.names import ALIASES, CLASSES, EVENTS, Row

RULE = re.compile(r"\b[A-Z]{2,}-\d+\b")
PAGE = "docs/reference/events.md"
Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]
WRITERS = {"server": "the server", "worker": "a worker", "either": "either"}

HEAD = """
All events of the log, in their usual order. Each event comes in
[an envelope](specification.md#evt-1); the tables list the fields of its `data`. A field that has
its default value is left out of the log, except `attempt` and `do` of tasks. Large values are
references ([RES-1](specification.md#res-1)), secrets are encrypted
([KEY-3](specification.md#key-3)). Every `error` has `kind`, `message` and `retryable`
([OUT-1](specification.md#out-1)).

An event is written by the server, by a worker, or by either: the server reports the end of a run
if no worker does (`source` says which it was). The *status* is the usual one; an event with an
`error` has the status `error`, and so has a `task.done` whose outcome is an error or that ends in
`fail`.

You can select events by older names too (`noetl events --name`, the API): `retry.started` is a
`task.started` whose attempt is not the first.
"""


def page(note: str, table: Table) -> str:
    rows = [
        (f"[`{name}`](#{anchor(name)})", WRITERS[row.by], row.entity, row.status)
        for name, row in EVENTS.items()
    ]
    overview = table(("event", "written by", "entity", "status"), rows)
    parts = [event_part(name, row, table) for name, row in EVENTS.items()]
    return "\n".join(["# Events\n", note, HEAD.strip() + "\n", overview, *parts])


def anchor(name: str) -> str:
    return name.replace(".", "")


def event_part(name: str, row: Row, table: Table) -> str:
    kind = CLASSES[name]
    entity = f"`{row.id_field}`" if row.id_field else "the execution"
    facts = f"Written by {WRITERS[row.by]}. Entity: `{row.entity}`, named by {entity}."
    if older := list(older_names(name)):
        facts += f" Older names: {', '.join(older)}."
    rows = list(field_rows(name, kind))
    fields = table(("field", "value", "default", "meaning"), rows) if rows else "No data.\n"
    return f"## {name}\n\n{linked(doc_of(kind))}\n\n{facts}\n\n{fields}"


def older_names(name: str) -> Iterator[str]:
    for alias, meant in ALIASES.items():
        names, holds = NARROWER.get(alias, ((meant,), None))
        if name in names:
            yield f"`{alias}`" if holds is None else f"`{alias}` (some of them)"


def linked(text: str) -> str:
    """Rules are links."""
    return RULE.sub(lambda rule: f"[{rule[0]}](specification.md#{rule[0].lower()})", text)


def field_rows(name: str, kind: type[Any]) -> list[tuple[str, ...]]:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    meanings = meanings_of(kind)
    moved = TAKEN | {"source"} if name in TOLD_BY_EITHER else TAKEN
    return [
        (
            f"`{SHOWN_AS.get(field.encode_name, field.encode_name)}`",
            input_words(field.type),
            "" if field.name in USUAL.get(name, {}) else shown(field),
            linked(meanings[field.name]),
        )
        for field in described.fields
        if field.encode_name not in moved
    ]


def doc_of(kind: type[Any]) -> str:
    """The docstring of an event, as one paragraph."""
    return " ".join((kind.__doc__ or "").split())


def meanings_of(kind: type[Any]) -> dict[str, str]:
    """Field → the sentence below it in the class or in one above it."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        node = NODES.get(base.__name__)
        if node is None:
            continue
        for field, after in zip(node.body, [*node.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                found[field.target.id] = sentence(after)
    return found


def sentence(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return ""


NODES = {
    node.name: node
    for module in (event, loop_events, wait_events, events)
    for node in ast.parse(python.getsource(module)).body
    if isinstance(node, ast.ClassDef)
}
