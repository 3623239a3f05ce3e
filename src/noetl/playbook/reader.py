"""
Does a block of the text have the shape that its table demands?

The reader walks nodes beside the tables of `blocks.py`, collects every fault, and hands the parser
only what fits. It remembers where each field stands, so that later checks can point at it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from noetl.expression.syntax import is_template
from noetl.kinds.kind import Kind
from noetl.late import late
from noetl.playbook.blocks import BLOCKS
from noetl.playbook.finding import Finding, Place
from noetl.playbook.fitting import described, misfit, shown
from noetl.playbook.neighbours import ALONE, Neighbours
from noetl.playbook.retired import ELSEWHERE, RETIRED, RETIRED_VALUES
from noetl.playbook.shape import (
    Block,
    Choice,
    Field,
    Free,
    FreeMapping,
    Guard,
    Inside,
    Text,
    article,
)
from noetl.playbook.suggest import did_you_mean
from noetl.playbook.templates import TemplateProblem, Templates
from noetl.playbook.trigger_blocks import TRIGGER_BLOCKS
from noetl.playbook.yaml_checks import size_of
from noetl.playbook.yaml_text import PLAIN, Tree

_POLICY = ("policy-shape", "write a mapping with rules: policy: { rules: [ … ] }")
_RULE = ("rule-shape", 'write { when: "{{ … }}", then: { … } }, and { else: { then: { … } } } last')
_ADMIT = ("policy-shape", "write policy: { admit: { rules: [ … ] } }")
# Faults in the shape of these blocks have codes of their own (VAL-1, VAL-2).
_SHAPE_CODES = {
    "policy": _POLICY,
    "step policy": _ADMIT,
    "admit": _ADMIT,
    "rule": _RULE,
    "admit rule": _RULE,
    "else": _RULE,
    "admit else": _RULE,
}
# Where an older word stands in the place of what is missing.
_STOOD_FOR = ("else", "loop", "arc", "next")
MOST_SUGGESTIONS = 100
MOST_MERGED = 500_000
_RULED = ("policy", "admit")
_FIELD_CODES = {("then", "attempts"): "retry-attempts", ("loop", "in"): "loop-incomplete"}


_BLOCKS = {**BLOCKS, **TRIGGER_BLOCKS}
_SPAN = late(r"([0-9]+)\s*(ms|s|sec|m|min|h|d)")
_SECONDS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def seconds_hint(key: str, value: Any, doc: str) -> str | None:
    """`5m` as the number that the language wants, where it wants seconds."""
    found = _SPAN.fullmatch(value) if isinstance(value, str) and "econds" in doc else None
    if found is None:
        return None
    return f"write the seconds as a number: {key}: {int(found[1]) * _SECONDS[found[2]]:g}"


def below_of(block: Block, key: str) -> str:
    """Where a key belongs that stands one level too high; empty where it belongs nowhere."""
    for name, field in block.fields.items():
        inner = _BLOCKS.get(field.type.block) if isinstance(field.type, Inside) else None
        if inner is not None and key in inner.fields:
            return f"it belongs below '{name}': {name}: {{ {key}: … }}"
    return ""


class At(msgspec.Struct, frozen=True, eq=False):
    """One value of the text: the node, the node that faults of the block point at, the path."""

    anchor: Node
    node: Node
    path: str


def below(path: str, key: str) -> str:
    """The path of a key below a path."""
    if key.isidentifier() or key.replace("-", "_").isidentifier():
        return f"{path}.{key}" if path else key
    return f'{path}["{key}"]'


class Reader:
    """Reads one document; `findings` grows."""

    def __init__(
        self,
        tree: Tree,
        kinds: Mapping[str, Kind],
        brought: Mapping[str, Any] | None = None,
        neighbours: Neighbours = ALONE,
    ) -> None:
        self.tree = tree
        self.kinds = kinds
        self.brought = brought or {}
        """What a request brings to `workload` and `ctx`, where it is known already (VAL-5)."""
        self.neighbours = neighbours
        self.findings: list[Finding] = []
        self.places: dict[str, At] = {}
        self.older: set[int] = set()
        """Nodes that hold a word of an older dialect: what else they lack is not worth telling."""
        self.misfits: set[str] = set()
        """Where inputs of tasks do not fit: the model has them as they are."""
        self._seen: set[tuple[str, int, int, str]] = set()
        self._templates = Templates()
        self._suggested = 0
        self._merged = 0

    # ── telling ──

    def report(self, code: str, at: At, message: str, hint: str) -> None:
        """A fault of the value at `at`: a scalar is pointed at itself, a block at its key."""
        empty = at.node.value == "" and at.node.tag == PLAIN
        scalar = type(at.node) is ScalarNode and not empty
        self.report_node(code, at.node if scalar else at.anchor, at.path, message, hint)

    def report_node(self, code: str, node: Node, path: str, message: str, hint: str) -> None:
        """A fault at exactly this node."""
        mark = node.start_mark
        self.report_spot(code, mark.line + 1, mark.column + 1, path, message, hint)

    def report_spot(
        self, code: str, line: int, column: int, path: str, message: str, hint: str
    ) -> None:
        """A fault at this line and column; the same fault is told once (aliases, defaults)."""
        same = (code, line, column, message)
        if same not in self._seen:
            from noetl.playbook.codes import CODES  # most texts have no fault

            self._seen.add(same)
            severity = CODES[code].severity
            self.findings.append(Finding(code, severity, line, column, path, message, hint))

    def suggest(self, name: str, known: Iterable[str], otherwise: str) -> str:
        """The hint for an unknown name; a text full of faults gets the plain hint in the end."""
        self._suggested += 1
        if self._suggested > MOST_SUGGESTIONS:
            return otherwise
        return did_you_mean(name, known, otherwise)

    def place(self, at: At) -> Place:
        """Where a part of the model stands."""
        mark = at.anchor.start_mark
        return Place(at.path, mark.line + 1, mark.column + 1)

    def input_at(self, path: str, name: str) -> At:
        """Where an input of the task at `path` stands."""
        return self.entries(self.places[path])[name]

    # ── reading ──

    def value(self, at: At) -> Any:
        """The plain value."""
        return self.tree.value(at.node)

    def entries(self, at: At) -> dict[str, At]:
        """The values of a mapping by key, duplicates and broken keys left out."""
        made: dict[str, At] = {}
        path = at.path
        known = self.tree.value(at.node)
        for key_node, node in at.node.value:
            key = key_node.value
            if isinstance(key, str) and key in known and key not in made:
                made[key] = At(key_node, node, below(path, key))
        return made

    def elements(self, at: At) -> list[At]:
        """The elements of a list."""
        path = at.path
        return [At(node, node, f"{path}[{n}]") for n, node in enumerate(at.node.value)]

    def fields(self, block: Block, at: At, kept: Collection[str] = ()) -> dict[str, At]:
        """
        The fields of a block that fit; every other is told. Unknown ones stay if it is open.

        `kept` are words that mean something here, though elsewhere they are retired.
        """
        if type(at.node) is not MappingNode:
            self._not_a_mapping(block, at)
            return {}
        fitting: dict[str, At] = {}
        known = block.fields
        given = self.entries(at)
        if block.name in _RULED and "rules" not in given:
            self._missing(block, at, given)  # without rules it is no policy, whatever it holds
            return {}
        for key, entry in given.items():
            field = known.get(key)
            if field is None:
                if key in kept or self._unknown(block, at.node, key, entry):
                    fitting[key] = entry
            elif self._fits(block, key, field, entry):
                fitting[key] = entry
                self.places[entry.path] = entry
        if block.name not in _STOOD_FOR or id(at.node) not in self.older:
            self._missing(block, at, given)
        return fitting

    def _not_a_mapping(self, block: Block, at: At) -> None:
        if id(at.node) in self.tree.broken:
            return
        keys = f"a mapping with {', '.join(block.fields)}"
        code, hint = _SHAPE_CODES.get(block.name, ("wrong-type", f"write {keys}"))
        said = f"{article(block.name)} is {shown(self.value(at))}, expected a mapping"
        self.report_node(code, at.anchor, at.path, said, hint)

    def _unknown(self, block: Block, node: Node, key: str, entry: At) -> bool:
        """Whether an unknown key may stay; tells it otherwise."""
        if id(node) in self.older and block.name in ("rule", "else"):
            return False  # the first older word of a rule stands for the whole rule
        retired = RETIRED.get(block.name, {}).get(key)
        if retired:
            self.report_node(retired.code, entry.anchor, entry.path, retired.message, retired.hint)
            self.older.add(id(node))
            return False
        if block.open:
            return True
        keys = f"keys: {', '.join(block.fields)}"
        elsewhere = ELSEWHERE.get(block.name, {}).get(key) or below_of(block, key)
        self.report_node(
            "unknown-key",
            entry.anchor,
            entry.path,
            f"{article(block.name)} has no key '{key}'",
            self.suggest(key, block.fields, elsewhere or keys),
        )
        return False

    def _missing(self, block: Block, at: At, given: Mapping[str, At]) -> None:
        missing = [key for key in block.required if key not in given]
        if missing and block.name == "loop":
            self.report_node(
                "loop-incomplete",
                at.anchor,
                at.path,
                f"the loop has no {' and no '.join(map(repr, missing))}",
                'a loop needs both: loop: { in: "{{ workload.rows }}", iterator: row }',
            )
            return
        for key in missing:
            advice = f"add '{key}': {block.fields[key].doc}"
            if block.name == "metadata" and key == "path":
                advice += " `noetl migrate FILE` derives it from the name."
            code, hint = _SHAPE_CODES.get(block.name, ("missing-key", advice))
            self.report_node(code, at.anchor, at.path, f"{article(block.name)} lacks '{key}'", hint)

    def _fits(self, block: Block, key: str, field: Field, entry: At) -> bool:
        kind = type(field.type)
        if kind is Guard:
            return self.guard(entry)
        if kind is Inside:
            return self._is_block(field, entry)
        value = self.tree.value(entry.node)
        if value is None and not field.required and kind is not Choice and kind is not Free:
            return False
        wrong = misfit(field.type, value)
        if wrong is not None:
            if id(entry.node) not in self.tree.broken:
                self._misfit(block, key, field, entry, wrong)
            return False
        if getattr(field.type, "templates", False) or is_template(value):
            self.templates(entry)
        if kind is FreeMapping and field.type.names:  # type: ignore[union-attr]
            return self._plain_names(entry)
        return True

    def _is_block(self, field: Field, entry: At) -> bool:
        """Null is an empty block, except where a policy must say something."""
        if type(entry.node) is not ScalarNode or self.value(entry) is not None:
            return True
        block = field.type.block  # type: ignore[union-attr]
        return block in _SHAPE_CODES or field.required

    def _misfit(self, block: Block, key: str, field: Field, entry: At, code: str) -> None:
        value = self.value(entry)
        retired = RETIRED_VALUES.get((block.name, key), {}).get(
            value if isinstance(value, str) else type(value).__name__
        )
        if retired:
            self.report(retired.code, entry, retired.message, retired.hint)
            return
        hint = f"write {described(field.type)}: {field.doc}"
        if isinstance(field.type, Text) and isinstance(value, bool | int | float):
            hint = f'write it in quotes: {key}: "{entry.node.value}"'
        elif meant := seconds_hint(key, value, field.doc):
            hint = meant
        elif isinstance(field.type, Choice) and isinstance(value, str):
            hint = self.suggest(value, field.type.words, hint)
        message = f"'{key}' is {shown(value)}, expected {described(field.type)}"
        self.report(_FIELD_CODES.get((block.name, key), code), entry, message, hint)

    def _plain_names(self, at: At) -> bool:
        for key, entry in self.entries(at).items():
            if not key.isidentifier():
                self.report_node(
                    "plain-name",
                    entry.anchor,
                    entry.path,
                    f"'{key}' is not a plain name (letters, digits, underscore)",
                    f"write the name without scope or path, such as '{_last_name(key)}'",
                )
        return True

    def may_merge(self, default: At) -> bool:
        """Whether a default may be read once more: merged everywhere, it must stay finite work."""
        if self._merged <= MOST_MERGED:
            self._merged += size_of(default.node)
        if self._merged <= MOST_MERGED:
            return True
        self.report_node(
            "too-many-nodes",
            default.anchor,
            default.path,
            f"merged under every spec, the defaults make more than {MOST_MERGED} values",
            "use smaller defaults",
        )
        return False

    # ── templates ──

    def guard(self, at: At) -> bool:
        """Whether a guard has the right shape and parses."""
        wrong = self._templates.guard(self.tree.value(at.node))
        if wrong is None:
            self.places[at.path] = at
            return True
        if id(at.node) not in self.tree.broken:
            if wrong.code == "guard-shape":
                self.report(wrong.code, at, wrong.message, wrong.hint)
            else:
                self._template_fault(at, wrong)
        return False

    def templates(self, at: At) -> None:
        """Tell every template at and below `at` that does not parse."""
        node = at.node
        if type(node) is ScalarNode:
            text = node.value
            if "{{" in text or "{%" in text:
                fault = self._templates.text(text)
                if fault is not None:
                    self._template_fault(at, fault)
        elif type(node) is SequenceNode:
            for element in self.elements(at):
                self.templates(element)
        else:
            for key_node, child in node.value:
                if type(child) is not ScalarNode or "{" in child.value:
                    self.templates(At(key_node, child, below(at.path, str(key_node.value))))

    def _template_fault(self, at: At, fault: TemplateProblem) -> None:
        """At the line of the text where the fault is, not where the text begins."""
        node: Any = at.node
        start = node.start_mark
        row, column = start.line + fault.line, start.column
        if node.style in ("|", ">"):  # the text begins on the line after the indicator
            row += 1
            source = self.tree.lines[row] if row < len(self.tree.lines) else ""
            column = len(source) - len(source.lstrip())
        self.report_spot(fault.code, row + 1, column + 1, at.path, fault.message, fault.hint)

    def report_inside(
        self, code: str, at: At, spot: tuple[int, int], message: str, hint: str
    ) -> None:
        """A fault inside a text, at its line and column from 0, where the document keeps them."""
        node: Any = at.node
        line, column = spot
        row = node.start_mark.line + line
        if node.style == "|":
            row += 1
            source = self.tree.lines[row] if row < len(self.tree.lines) else ""
            own = node.value.split("\n")[line] if line <= node.value.count("\n") else ""
            indent = len(source) - len(own) if own and source.endswith(own) else 0
            self.report_spot(code, row + 1, indent + column + 1, at.path, message, hint)
        elif line == 0 and node.start_mark.line == node.end_mark.line:
            quote = 1 if node.style else 0
            column += node.start_mark.column + quote
            self.report_spot(code, row + 1, column + 1, at.path, message, hint)
        else:
            self.report(code, at, f"{message} (line {line + 1} of the text)", hint)


def _last_name(key: str) -> str:
    name = key.rsplit(".", 1)[-1].rsplit("]", 1)[-1]
    return name if name.isidentifier() else "total"
