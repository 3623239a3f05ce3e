"""From the text of a playbook to its model and everything that is wrong with it (VAL)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from yaml.nodes import MappingNode, Node, SequenceNode

from noetl.errors import PlaybookRejected
from noetl.kinds.kind import Kind
from noetl.kinds.table import KINDS
from noetl.late import late
from noetl.playbook.check_brought import check_brought, check_calls
from noetl.playbook.check_credentials import check_auth
from noetl.playbook.check_events import check_event_fields, check_events, check_statuses
from noetl.playbook.check_graph import (
    check_arcs,
    check_entry,
    check_final,
    check_reach,
    check_step_names,
)
from noetl.playbook.check_ignored import (
    check_arc_specs,
    check_credential_kinds,
    check_directives,
    check_falling_through,
    check_knobs,
    check_limits,
    check_reserved,
)
from noetl.playbook.check_joins import check_joins
from noetl.playbook.check_literals import check_older_names, check_secrets
from noetl.playbook.check_names import check_unknown_names
from noetl.playbook.check_races import check_races, check_reduced
from noetl.playbook.check_tasks import (
    check_admission,
    check_code,
    check_jumps,
    check_method,
    check_params,
    check_sql,
    tasks_of,
)
from noetl.playbook.finding import Finding
from noetl.playbook.model import Playbook
from noetl.playbook.neighbours import ALONE, Neighbours
from noetl.playbook.parse import parse
from noetl.playbook.reader import Reader, below
from noetl.playbook.trigger_blocks import TRIGGER_KIND
from noetl.playbook.yaml_checks import UnreadableText
from noetl.playbook.yaml_text import Tree, read_yaml

if TYPE_CHECKING:
    from noetl.playbook.triggers import Trigger


class Loaded(msgspec.Struct, frozen=True):
    """What a text turned out to be. `playbook` is None where an error stands among the findings."""

    playbook: Playbook | None
    findings: tuple[Finding, ...]
    document: Any
    """The plain value of the whole text, for a digest; None where there is none."""
    trigger: "Trigger | None" = None
    """The trigger that it is, where `load_document` was asked."""


LATER = frozenset(
    {
        *("unknown-name", "reserved-name", "missing-input", "code-syntax", "sql-params"),
        "approval-shape",
    }
)
"""Errors that texts may have which were accepted before there was a check for them."""


def load(
    source: str | bytes,
    kinds: Mapping[str, Kind] = KINDS,
    forgiven: Collection[str] = (),
    brought: Mapping[str, Any] | None = None,
    neighbours: Neighbours = ALONE,
) -> Loaded:
    """
    Everything about a text; bad input gives findings, never an exception.

    `brought`: the `workload` and `ctx` of the request that it is loaded for.
    """
    return examine(source, kinds, forgiven, brought, neighbours)[0]


def examine(
    source: str | bytes,
    kinds: Mapping[str, Kind] = KINDS,
    forgiven: Collection[str] = (),
    brought: Mapping[str, Any] | None = None,
    neighbours: Neighbours = ALONE,
) -> tuple[Loaded, Playbook | None]:
    """The same, and the model as far as it could be read, for whoever works on a broken text."""
    try:
        tree = read_yaml(source)
    except UnreadableText as refused:
        return Loaded(None, (_told(refused),), None), None
    document = tree.value(tree.root)
    reader = Reader(tree, kinds, brought, neighbours)
    _tell_faults(reader, tree)
    if _says_trigger(document):
        reader.report_node("no-playbook", tree.root, "", "this is a trigger, no playbook", _HINT)
        return Loaded(None, tuple(reader.findings), document), None
    if _says_tests(document):
        message = "this is a file of tests, no playbook"
        reader.report_node("test-file", tree.root, "", message, "run it with `noetl test FILE`")
        return Loaded(None, tuple(reader.findings), document), None
    playbook = parse(reader)
    if playbook is not None:
        check(reader, playbook)
    findings = tuple(sorted(reader.findings, key=_order))
    rejected = any(one.severity == "error" and one.code not in forgiven for one in findings)
    return Loaded(None if rejected else playbook, findings, document), playbook


def load_document(
    source: str | bytes, kinds: Mapping[str, Kind] = KINDS, neighbours: Neighbours = ALONE
) -> Loaded:
    """The same of whatever may be registered: a playbook or a trigger (START-1)."""
    loaded = load(source, kinds, neighbours=neighbours)
    if not _says_trigger(loaded.document):
        return loaded
    from noetl.playbook.triggers import parse_trigger  # reads time zones: most runs need none

    tree = read_yaml(source)
    reader = Reader(tree, kinds, neighbours=neighbours)
    _tell_faults(reader, tree)
    trigger = parse_trigger(reader)
    findings = tuple(sorted(reader.findings, key=_order))
    rejected = any(one.severity == "error" for one in findings)
    return Loaded(None, findings, loaded.document, None if rejected else trigger)


def load_trigger(source: str | bytes) -> "Trigger":
    """The trigger of a text without errors; raises PlaybookRejected with all findings."""
    loaded = load_document(source)
    if loaded.trigger is None:
        raise PlaybookRejected(loaded.findings)
    return loaded.trigger


_HINT = "register it with `noetl register`; what it starts is the playbook that `spec` names"


def _says_trigger(document: Any) -> bool:
    return isinstance(document, dict) and document.get("kind") == TRIGGER_KIND


def _says_tests(document: Any) -> bool:
    return isinstance(document, dict) and "tests" in document and "workflow" not in document


def is_trigger(text: str) -> bool:
    """Whether a text that was registered once is a trigger."""
    return _MAYBE.search(text) is not None and _says_trigger(load(text).document)


# A sieve: a playbook with these words somewhere in it is read to the end.
_MAYBE = late(rf"""kind["']?\s*:\s*["']?{TRIGGER_KIND}""")


def _told(refused: UnreadableText) -> Finding:
    from noetl.playbook.codes import CODES

    return Finding(
        refused.code,
        CODES[refused.code].severity,
        refused.line,
        refused.column,
        "",
        refused.message,
        refused.hint,
    )


def load_valid(
    source: str | bytes, kinds: Mapping[str, Kind] = KINDS, forgiven: Collection[str] = ()
) -> Playbook:
    """The playbook of a text without errors; raises PlaybookRejected with all findings."""
    loaded = load(source, kinds, forgiven)
    if loaded.playbook is None:
        raise PlaybookRejected(loaded.findings)
    return loaded.playbook


def load_kept(source: str | bytes, kinds: Mapping[str, Kind] = KINDS) -> Playbook:
    """The playbook of a text that was accepted once: what began with it runs to its end."""
    return load_valid(source, kinds, LATER)


def _tell_faults(reader: Reader, tree: Tree) -> None:
    faults = tuple(tree.faults)
    paths = paths_of(tree.root, [fault.node for fault in faults]) if faults else {}
    for fault in faults:
        path = paths.get(id(fault.node), "")
        reader.report_node(fault.code, fault.node, path, fault.message, fault.hint)


def _order(finding: Finding) -> tuple[int, int, str]:
    return finding.line, finding.column, finding.code


def paths_of(root: Node, wanted: Iterable[Node]) -> dict[int, str]:
    """The path of each wanted node by its identity; a key has the path of its value."""
    missing = {id(node) for node in wanted}
    found: dict[int, str] = {}
    for node, path in _walk(root):
        if id(node) in missing:
            found.setdefault(id(node), path)
    return found


def _walk(root: Node) -> Iterator[tuple[Node, str]]:
    """Every node once, keys too, aliases by the first way to them."""
    seen: set[int] = set()
    waiting = [(root, "")]
    while waiting:
        node, path = waiting.pop()
        yield node, path
        if id(node) in seen:
            continue
        seen.add(id(node))
        if type(node) is SequenceNode:
            waiting += [(child, f"{path}[{n}]") for n, child in enumerate(node.value)]
        elif type(node) is MappingNode:
            for key, child in node.value:
                here = below(path, key.value) if isinstance(key.value, str) else path
                waiting += [(child, here), (key, here)]


def check_python(reader: Reader, playbook: Playbook) -> None:
    """VAL-8, where there is code: who has none does not wait for Python's own parser."""
    if any(task.kind in ("python", "script") for task in tasks_of(playbook)):
        from noetl.playbook.check_python import check_python as read_code

        read_code(reader, playbook)


def check_waits(reader: Reader, playbook: Playbook) -> None:
    """WAIT-1, where something waits."""
    if any(task.kind == "wait" for task in tasks_of(playbook)):
        from noetl.playbook.check_waits import check_waits as look

        look(reader, playbook)


def check_cache(reader: Reader, playbook: Playbook) -> None:
    """CACHE-1, where something is kept."""
    if any(task.spec.cache is not None for task in tasks_of(playbook)):
        from noetl.playbook.check_cache import check_cache as look

        look(reader, playbook)


def check_workbook(reader: Reader, playbook: Playbook) -> None:
    """TOOL-2, where there is a workbook or something that asks for it."""
    if playbook.workbook or any(task.kind == "workbook" for task in tasks_of(playbook)):
        from noetl.playbook.check_workbook import check_workbook_cycles, check_workbook_names

        check_workbook_names(reader, playbook)
        check_workbook_cycles(reader, playbook)


Check = Callable[[Reader, Playbook], None]

CHECKS: tuple[Check, ...] = (
    check_step_names,
    check_arcs,
    check_entry,
    check_final,
    check_joins,
    check_jumps,
    check_workbook,
    check_events,
    check_event_fields,
    check_statuses,
    check_admission,
    check_sql,
    check_method,
    check_params,
    check_code,
    check_python,
    check_waits,
    check_cache,
    check_secrets,
    check_older_names,
    check_unknown_names,
    check_knobs,
    check_directives,
    check_arc_specs,
    check_limits,
    check_credential_kinds,
    check_auth,
    check_reserved,
    check_falling_through,
    check_reduced,
    check_races,
    check_calls,
    check_brought,
    check_reach,  # the last: it speaks only where the arcs are sound
)


def check(reader: Reader, playbook: Playbook) -> None:
    """Run every check; each tells the reader what it finds."""
    for one in CHECKS:
        one(reader, playbook)
