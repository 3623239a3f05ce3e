"""Kinds of public playbooks that are none here: said by others where they can be (DIA-UP)."""

import re
from typing import Final

from noetl.playbook.dialects.draft import Draft, own_tasks
from noetl.playbook.dialects.pipeline import plain_task
from noetl.playbook.dialects.sight import Sight
from noetl.playbook.dialects.sinks import save, sinks_of
from noetl.playbook.dialects.tree import Mapping, TreeSlot, node_of

_INSTEAD: Final = {
    "transfer": "read the rows in one task and write them in the next: kind: postgres with query, "
    "then kind: postgres, duckdb or snowflake with command and rows",
    "artifact": "kind: s3 or kind: gcs with operation: put or get, bucket and key",
    "ducklake": "kind: duckdb with command: ATTACH 'ducklake:…' AS lake; …",
    "result": "read the result where it is: a large one is fetched when it is touched",
    "resolve": "read the value where it is: a large one is fetched when it is touched",
    "agent": "kind: http to the agent's server, or kind: playbook with path",
    "mcp": "kind: http with method: POST to the server, and the call as body",
    "subscription": "kind: nats with operation: fetch; other brokers by a plugin",
    "gateway": "kind: http to the gateway",
}
_PLACE: Final = re.compile(r"(s3|gs|gcs)://([^/]+)/(.+)")
_DOES: Final = {
    **dict.fromkeys(("get", "read", "load", "fetch"), "get"),
    **dict.fromkeys(("put", "write", "save", "store"), "put"),
}
_CONTENT: Final = ("body", "content", "data", "value")
_SOURCES: Final = ("http", "postgres", "duckdb", "snowflake")
_NAMES: Final = ("type", "kind")


def transfers_of_step(draft: Draft, step: Mapping) -> None:
    """`transfer` at the end of a pipeline → a task that reads, and one that writes its rows."""
    tasks = own_tasks(step)
    last = tasks[-1] if tasks else None
    task = last.node if last is not None else None
    if last is None or not isinstance(task, Mapping) or task.text("kind") != "transfer":
        return
    source, target = task.mapping("source"), task.mapping("target")
    kinds = [_kind_of(one) for one in (source, target) if one is not None]
    known = len(kinds) == 2 and kinds[0] in _SOURCES and kinds[1] in ("postgres", "duckdb")
    rest = set(target.keys()) - {*_NAMES, "auth", "table", "mode", "database"} if target else {""}
    if not known or rest or source is None or target is None or "table" not in target:
        return
    if target.text("mode") not in (None, "append", "insert"):
        return
    for word in _NAMES:
        source.pop(word)
    made = plain_task(kinds[0], last)
    made.slots += source.slots
    kept = {key: target.node(key) for key in ("auth", "database") if key in target}
    sink = {"tool": {"kind": kinds[1], **kept}, "table": target.node("table")}
    last.node = made
    slot = TreeSlot(node_of(sink, last.line), line=last.line, path=last.path)
    for one in sinks_of(draft, slot, Sight("after", kinds[0])):
        save(step, one)
    draft.tell(last, "kind: transfer", f"kind: {kinds[0]}, then kind: {kinds[1]}")


def _kind_of(node: Mapping) -> str:
    return next((node.text(word) or "" for word in _NAMES if node.text(word)), "")


def objects_of_artifacts(draft: Draft, task: Mapping) -> None:
    """`kind: artifact` with an address in a bucket → the kind of that bucket."""
    kind, uri = task.slot("kind"), task.slot("uri")
    place = _PLACE.fullmatch(uri.text or "") if uri is not None else None
    word = next((one for one in ("action", "operation") if one in task), "")
    does, content = _DOES.get(task.text(word) or ""), [one for one in _CONTENT if one in task]
    rest = set(task.keys()) - {"kind", "uri", word, "auth", *_CONTENT}
    if kind is None or kind.text != "artifact" or place is None or does is None or rest:
        return
    if len(content) != (does == "put"):
        return
    named = "s3" if place[1] == "s3" else "gcs"
    kind.say(named)
    at = task.place("uri")
    for key in ("uri", word):
        task.pop(key)
    for number, (key, text) in enumerate(zip(_ADDRESS, (does, place[2], place[3]), strict=True)):
        made = task.put(key, text, at=min(at, len(task.slots)) + number)
        made.line, made.path = kind.line, kind.path
    for key in content:
        task.rename(key, "body")
    draft.tell(kind, "kind: artifact", f"kind: {named}")


_ADDRESS: Final = ("operation", "bucket", "key")


def kinds_that_are_none(draft: Draft, task: Mapping) -> None:
    """What to write for a kind that this runtime does not have."""
    slot = task.slot("kind")
    instead = _INSTEAD.get(slot.text or "") if slot is not None else None
    if slot is not None and instead is not None:
        said = f"no tool kind is called '{slot.text}'"
        draft.refuse(slot, said, instead, code="unknown-kind")
