"""
Can anything ever define the names that templates read? (VAL-5)

`unknown_names` is a function of a playbook alone: translators ask it about what they have written.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import islice
from typing import Any, Final

import msgspec
from jinja2 import nodes
from msgspec.structs import replace

from noetl.errors import TemplateFault
from noetl.expression.lookup import GLOBALS, METHODS, NAMESPACES, SEARCHED
from noetl.expression.meant import meant
from noetl.expression.syntax import is_template, parse, path_of, texts_of
from noetl.kinds.kind import Kind
from noetl.kinds.table import KINDS
from noetl.late import late
from noetl.playbook.check_literals import scalars
from noetl.playbook.model import Playbook
from noetl.playbook.reader import Reader, below
from noetl.playbook.retired import OLDER_NAMES
from noetl.playbook.suggest import some
from noetl.playbook.visible import RenderedValue, Seen, spots

MOST_TOLD: Final = 200
MOST_HINTS: Final = 50  # comparing names costs more than all the rest
_UNREAD: Final = frozenset(
    (
        *("retired-word", "root-vars", "step-when", "unknown-key", "wrong-type", "policy-shape"),
        *("rule-shape", "task-shape", "loop-incomplete", "unknown-step", "join-source"),
        "too-many-templates",
    )
)
"""Findings on parts that the model lacks: what they write and carry is not known."""
_TOLD: Final = ("template-syntax", "retired-name")
_OPENED: Final = late(r"\{[{%]")
_CLOSED: Final = {"{{": "}}", "{%": "%}"}
# A sieve: strings, filters, tests, arguments and attributes are stepped over, paths are caught.
_PATHS: Final = late(
    r"""'[^']*'|"[^"]*"|\|\s*\w+|\bis\s+(?:not\s+)?\w+|[A-Za-z_]\w*\s*=(?!=)|\.\s*\w+|[0-9]\w*
    |([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)(\s*\[)?""",
    re.VERBOSE,
)
_WORDS: Final = frozenset(
    ["true", "false", "none", "True", "False", "None", "and", "or", "not", "in", "is", "if", "else"]
)
_COVERS: Final[Mapping[type, tuple[str, ...]]] = {
    nodes.Filter: ("default", "d"),
    nodes.Test: ("defined", "undefined"),
}
_LOCAL: Final = frozenset({"loop", "caller", "varargs", "kwargs", "self", "super"})
_BROUGHT: Final = {"workload": "--set", "ctx": "--ctx"}
"""Namespaces to which a request may add keys (DOC-3, SCOPE-4), and by which option."""
_LIMIT: Final = "the limit of a playbook sees `workload` and `execution_id`"
_ABOVE: Final = "a key of `workload` sees those above it and `execution_id`"
_NOT_HERE: Final[Mapping[str, str]] = {
    "outcome": "only the rules of a task's policy see `outcome`; the next task reads `_prev`",
    "event": "only arcs and admission rules see `event`",
    "iter": "only the pipeline sees `iter`; let a rule write the value to ctx by set_ctx",
    **dict.fromkeys(
        ("_prev", "_task", "_attempt"), "only the pipeline sees it; an arc reads `event.result`"
    ),
    **dict.fromkeys(("ctx", "args"), _ABOVE),
}
_REMEDIES: Final[Mapping[str, str]] = {
    "workload": "declare it in `workload`",
    "ctx": "let a rule write it: set_ctx: {{ {key}: … }}",
    "iter": "let a rule of this pipeline write it: set_iter: {{ {key}: … }}",
    "args": "let an arc to this step carry it: args: {{ {key}: … }}",
}


class UnknownName(msgspec.Struct, frozen=True):
    """A name that a template reads: nothing defines it, or only a request can."""

    path: str
    """Where the template stands in the document."""
    name: str
    code: str
    """
    `unknown-name`, `covered-name` (a default covers it), `unbound-name` (a request may bring it),
    or `never-set` (in this place).
    """
    near: Callable[[], str | None]
    """The name that the author may have meant."""
    remedy: str

    @property
    def message(self) -> str:
        if self.name in NAMESPACES:
            return f"'{self.name}' is undefined here"
        return f"'{self.name}' is undefined{_SAID[self.code]}"

    def hint(self) -> str:
        near = self.near()
        return self.remedy if near is None else f"did you mean '{near}'?"


class NameRead(msgspec.Struct, frozen=True):
    """One path that a template reads; `covered` by a default, or by asking whether it is there."""

    root: str
    keys: tuple[Any, ...]
    covered: bool


def check_unknown_names(reader: Reader, playbook: Playbook) -> None:
    """VAL-5: tell the names, each where its template stands; no verdict where parts are unread."""
    unread = (one for one in reader.findings if one.code in _UNREAD)
    if any(finding.path not in reader.misfits for finding in unread):
        return
    found = list(islice(unknown_names(playbook, reader.kinds, reader.brought), MOST_TOLD))
    if not found:
        return
    places = {at.path: at for _, at in scalars(reader.tree.root)}
    told = {finding.path for finding in reader.findings if finding.code in _TOLD}
    for number, one in enumerate(found):
        at = places.get(one.path)
        if at is not None and one.path not in told:
            hint = one.hint() if number < MOST_HINTS else one.remedy
            reader.report(one.code, at, one.message, hint)


def unknown_names(
    playbook: Playbook, kinds: Mapping[str, Kind], brought: Mapping[str, Any]
) -> Iterator[UnknownName]:
    """Every name that nothing defines, in the order of the document."""
    steps = frozenset(step.name for step in playbook.steps)
    for spot in spots(playbook, kinds, brought):
        if any(_is_suspect(text, spot.seen) for text in texts_of(spot.value)):
            for path, text in _located(spot.value, spot.path):
                yield from _unknown(path, text, spot, steps)


def _is_suspect(text: str, seen: Seen) -> bool:
    """Whether a template may read what is not there: quick, and wrong on one side only."""
    return any(
        _is_strange(root, rest, bracket, seen)
        for inside in _insides(text)
        for root, rest, bracket in _PATHS.findall(inside)
        if root and root not in _WORDS
    )


def _insides(text: str) -> Iterator[str]:
    """What stands between braces, and a little more where a literal holds braces."""
    end = 0
    for opened in _OPENED.finditer(text):
        if opened.start() >= end:
            end = text.find(_CLOSED[opened[0]], opened.end())
            if end < 0:
                return
            yield text[opened.end() : end]


def _is_strange(root: str, rest: str, bracket: str, seen: Seen) -> bool:
    if root not in seen:
        return root in NAMESPACES or not any(root in (seen.get(name) or ()) for name in SEARCHED)
    shape: Any = seen[root]
    for key in rest.split(".")[1:]:
        if shape is None:
            return False
        if key not in shape:
            return True
        shape = shape[key]
    return bool(bracket) and shape is not None


def _located(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if is_template(value):
            yield path, value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _located(child, below(path, key))
    elif isinstance(value, list | tuple):
        for number, child in enumerate(value):
            yield from _located(child, f"{path}[{number}]")


def _unknown(
    path: str, text: str, spot: RenderedValue, steps: frozenset[str]
) -> Iterator[UnknownName]:
    try:
        tree = parse(text)
    except TemplateFault:  # told already
        return
    told: set[str] = set()
    for read in reads_in(tree):
        one = _judge(path, read, spot, steps)
        if one is not None and read.covered:
            one = replace(one, code=_COVERED[one.code])
        if one is not None and one.code and one.name not in told:
            told.add(one.name)
            yield one


def reads_in(tree: nodes.Template) -> Iterator[NameRead]:
    """The paths that a template reads from its scope: not its own variables."""
    own: set[str] = set()
    if tree.environment is not None:  # else it was read by the short cut, and has no statements
        own.update(node.name for node in tree.find_all(nodes.Name) if node.ctx != "load")
        own.update(node.name for node in tree.find_all(nodes.Macro))
    for read in _walk(tree, False):
        if read.root not in own and read.root not in GLOBALS and read.root not in _LOCAL:
            yield read


def _walk(node: nodes.Node, covered: bool) -> Iterator[NameRead]:
    path = path_of(node) if isinstance(node, nodes.Name | nodes.Getattr | nodes.Getitem) else None
    if path is not None:
        yield NameRead(*path, covered)
        return
    covers = getattr(node, "name", None) in _COVERS.get(type(node), ())
    for child in node.iter_child_nodes():
        yield from _walk(child, covered or (covers and child is getattr(node, "node", None)))


def _judge(
    path: str, read: NameRead, spot: RenderedValue, steps: frozenset[str]
) -> UnknownName | None:
    root, seen = read.root, spot.seen
    if root not in seen:
        return _bare(path, root, spot, steps)
    shape: Any = seen[root]
    name = root
    for key in read.keys:
        if shape is None or type(key) is not str:
            return None
        if key not in shape:
            if key in METHODS[dict]:
                return None
            return _missing(path, read, name, key, shape, spot)
        name, shape = f"{name}.{key}", shape[key]
    return None


def _missing(
    path: str, read: NameRead, name: str, key: str, shape: Mapping[str, Any], spot: RenderedValue
) -> UnknownName:
    root = read.root
    brought = root in _BROUGHT and spot.place != "workload"
    code = "unbound-name" if brought else "unknown-name"
    if name == "outcome" and key in _blocks():
        code = "never-set"  # rules may be written for tasks of several kinds
    remedy = _REMEDIES.get(root, f"it has: {some(shape)}").format(key=key)
    if (root, key) == ("iter", "parent"):
        remedy = "only a loop inside another one has `iter.parent`"
    if root == "args" and spot.path.startswith("workbook."):
        remedy = f"let its callers give it: args: {{ {key}: … }}"
    if spot.place == "workload":
        remedy = _ABOVE
    if brought:
        below_root = f"{name}.{key}".partition(".")[2]
        remedy += f", or bring it with each request: {_BROUGHT[root]} {below_root}=…"

    near = partial(meant, root, read.keys, spot.seen)
    return UnknownName(path, f"{name}.{key}", code, near, remedy)


def _bare(path: str, root: str, spot: RenderedValue, steps: frozenset[str]) -> UnknownName | None:
    seen = spot.seen
    if root in NAMESPACES:
        remedy = _LIMIT if spot.place == "limit" else _NOT_HERE[root]
        return UnknownName(path, root, "unknown-name", partial(meant, root, (), seen), remedy)
    searched = {name: seen[name] for name in SEARCHED if name in seen}
    if any(shape is None or root in shape for shape in searched.values()) or root in _OLDER:
        return None
    certain = spot.place == "workload"
    remedy = f"say where it comes from, such as ctx.{root}, and let something define it there"
    foreign = _foreign(root, spot)
    if foreign:
        code = "unknown-name" if certain else "unbound-name"
        return UnknownName(path, root, code, lambda: None, foreign)
    if root in steps:
        remedy = f"'{root}' is a step; let one of its rules keep the result: set_ctx: {{ … }}"
    if certain:
        remedy = _ABOVE
    code = "unknown-name" if certain else "unbound-name"
    return UnknownName(path, root, code, partial(meant, root, (), seen), remedy)


def _foreign(root: str, spot: RenderedValue) -> str:
    """What to write for a name that other tools have, and the language has not."""
    element = next(iter(spot.seen.get("iter") or ()), None)
    if root in _ELEMENTS and element not in (None, "index"):
        return f"did you mean 'iter.{element}'?"
    return _FOREIGN.get(root, "")


_ELEMENTS: Final = frozenset({"item", "element", "it", "each", "loop_item", "current"})
_FOREIGN: Final = {
    **dict.fromkeys(
        ("env", "environ", "os", "ENV"),
        "templates see no environment; keep a secret in `keychain` with provider: environment and "
        "name it by auth, anything else in `workload`",
    ),
    **dict.fromkeys(
        ("secrets", "secret", "keychain", "credentials"),
        "templates see no credentials; name one by auth, or read it by a task of kind secrets",
    ),
    **dict.fromkeys(
        ("inputs", "params", "parameters", "payload"),
        "inputs of the playbook are below `workload`",
    ),
    **dict.fromkeys(
        ("steps", "tasks", "outputs", "needs"),
        "a result goes on by `args` of an arc ({{ event.result }}) or by set_ctx",
    ),
    **dict.fromkeys(
        ("now", "today", "utcnow"),
        "a template gives the same whenever it is evaluated, so it has no clock; let a python task "
        "give the time, or a trigger ({{ trigger.at }})",
    ),
}
"""Names of other tools, and what does their work here."""
_OLDER: Final = frozenset(one.name for one in OLDER_NAMES)
_COVERED: Final = {
    "unknown-name": "covered-name",  # the author meant it to be there at times: it never is
    "unbound-name": "",
    "never-set": "never-set",
}
"""What a default, or asking whether it is there, makes of a finding; empty: none."""
_SAID: Final = {
    **dict.fromkeys(("unknown-name", "covered-name"), ": nothing defines it"),
    "unbound-name": " unless a request brings it",
    "never-set": ": this kind of task has no such part",
}


@cache
def _blocks() -> frozenset[str | None]:
    """The parts of outcomes that kinds have for themselves (OUT-2)."""
    return frozenset(kind.block for kind in KINDS.values())
