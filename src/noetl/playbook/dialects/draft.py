"""A document under migration: its blocks, what has been changed, what cannot be."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from noetl.expression.syntax import is_template
from noetl.playbook.codes import CODES
from noetl.playbook.dialects.detect import (
    Dialect,
    dialects_of,
    dialects_of_step,
    speaks_case,
    variables_of,
)
from noetl.playbook.dialects.rewrite import REASONS, Block, Pass
from noetl.playbook.dialects.sight import Sight
from noetl.playbook.dialects.tree import (
    Document,
    Mapping,
    Node,
    Scalar,
    Sequence,
    TreeSlot,
    slots_below,
)
from noetl.playbook.finding import Finding

LONGEST_SHOWN = 60
T = TypeVar("T")
ReadFile = Callable[[str], str | None]


class PendingChange(NamedTuple):
    """A change whose new line is not known yet."""

    code: str
    message: str
    line: int
    path: str
    old: str
    new: str
    slot: TreeSlot
    """Where it stands now."""


class NeededResult(NamedTuple):
    """A result that is read by the name of its step: its key in `ctx`, and how it is read."""

    home: str
    answers: bool
    """Whether parts of an http answer are read, and not only its body."""


class Draft:
    """The tree, and everything to be told about it."""

    def __init__(self, document: Document, read: ReadFile | None = None) -> None:
        self.document = document
        self.read = read
        """The text of a file beside the playbook; nothing where files cannot be read."""
        self.notes: list[PendingChange] = []
        self.findings: list[Finding] = []
        self.code = ""
        """That of the present pass."""
        self._facts: dict[str, Any] = {}
        self.left: dict[tuple[str, int], TreeSlot] = {}
        """What a row leaves for later ones: by a word of its own and the identity of a block."""
        self._spoken = {id(step): dialects_of_step(step) for step in self.steps()}
        self.dialects = dialects_of(self.root, self._spoken.values())
        """Those of the source, whatever passes have changed since."""
        self.case = speaks_case(self.root, self.dialects)
        """Whether the names of results are those of the case dialect."""
        self.ok_words = {word for word in ("success", "ok") if self._quotes(word)}
        """What the source, its code too, compares with: what a status was, is among them."""
        self.variables = {slot.key or "" for step in self.steps() for slot in variables_of(step)}
        """Names that steps write by `vars`, or by `set` of a case."""
        self.inputs: set[str] = set()
        """Names that `vars` of the root gave."""
        self.needed: dict[str, NeededResult] = {}
        """The steps of the case dialect whose results are read by name."""
        self.mains: dict[int, str] = {}
        """By step of the case dialect: the kind of the task that its words are about."""
        self.sights: dict[int, Sight] = {}
        """By step: what its router sees; by task: what its inputs see. Where it is not usual."""
        self.homes: dict[int, object] = {}
        """By step: where its variables live (`step_vars.py`)."""

    @property
    def root(self) -> Mapping:
        root = self.document.root
        return root if isinstance(root, Mapping) else Mapping()

    def apply(self, passes: tuple[Pass, ...]) -> None:
        """Every pass, in order, to every block of its kind."""
        for one in passes:
            self.code = one.code
            self._facts = {}
            for block in list(_BLOCKS[one.block](self)):
                one.apply(self, block)

    def fact(self, word: str, found: Callable[[], T]) -> T:
        """What holds of the whole document, found once for each pass: steps are many."""
        if word not in self._facts:
            self._facts[word] = found()
        fact: T = self._facts[word]
        return fact

    # ── telling ──

    def tell(
        self, was: TreeSlot, old: str, new: str, *, now: TreeSlot | None = None, code: str = ""
    ) -> None:
        """A change: `old` stood at `was`, `new` stands at `now`; of the present pass by default."""
        told = code or self.code
        change = PendingChange(told, REASONS[told], was.line, was.path, old, new, now or was)
        self.notes.append(change)

    def refuse(
        self, at: TreeSlot, message: str, hint: str, *, code: str = "no-counterpart"
    ) -> None:
        """What cannot be translated, or (by its code) only with a warning."""
        finding = Finding(code, CODES[code].severity, at.line, 1, at.path, message, hint)
        if finding not in self.findings:
            self.findings.append(finding)

    def _quotes(self, word: str) -> bool:
        texts = (slot.text or "" for slot in slots_below(self.root))
        return any(f"'{word}'" in text or f'"{word}"' in text for text in texts)

    def spoken(self, step: Mapping) -> frozenset[Dialect]:
        """The dialects that one step showed in the source."""
        return self._spoken.get(id(step), frozenset())

    # ── blocks ──

    def steps(self) -> list[Mapping]:
        workflow = self.root.sequence("workflow")
        return workflow.mappings() if workflow is not None else []

    def tasks(self) -> Iterator[Mapping]:
        """Every task: of steps, nested in them, and of the workbook."""
        for step in self.steps():
            yield from (slot.node for slot in tasks_of(step))  # type: ignore[misc]
        workbook = self.root.mapping("workbook")
        named = workbook.mapping("tasks") if workbook is not None else None
        for slot in named.slots if named is not None else ():
            if isinstance(slot.node, Mapping):
                yield slot.node
                yield from (inner.node for inner in tasks_of(slot.node))  # type: ignore[misc]

    def rules(self) -> Iterator[Mapping]:
        for task in self.tasks():
            yield from rules_of(task)


_BLOCKS: dict[Block, Callable[[Draft], Iterator[Mapping]]] = {
    "document": lambda draft: iter([draft.root]),
    "step": lambda draft: iter(draft.steps()),
    "task": lambda draft: draft.tasks(),
    "rule": lambda draft: draft.rules(),
}


def tasks_of(step: Mapping) -> Iterator[TreeSlot]:
    """The label slots of a pipeline, those nested in `iterator` tasks after their own."""
    tool = step.sequence("tool")
    for entry in tool.mappings() if tool is not None else ():
        if len(entry.slots) == 1 and isinstance(entry.slots[0].node, Mapping):
            yield entry.slots[0]
            yield from tasks_of(entry.slots[0].node)


def own_tasks(holder: Mapping) -> list[TreeSlot]:
    """The label slots of a step's own pipeline, or of an iterator's."""
    tool = holder.sequence("tool")
    slots = [entry.slots[0] for entry in (tool.mappings() if tool else []) if entry.slots]
    return [slot for slot in slots if isinstance(slot.node, Mapping)]


def rules_of(task: Mapping) -> list[Mapping]:
    rules = below_path(task, "spec", "policy")
    listed = rules.sequence("rules") if rules is not None else None
    return listed.mappings() if listed is not None else []


def then_of(rule: Mapping) -> Mapping | None:
    """The directive of a rule, with `when` or of `else`."""
    otherwise = rule.mapping("else")
    return rule.mapping("then") if otherwise is None else otherwise.mapping("then")


def arcs_of(step: Mapping) -> list[Mapping]:
    router = step.node("next")
    if isinstance(router, Sequence):
        return router.mappings()
    arcs = router.sequence("arcs") if isinstance(router, Mapping) else None
    return arcs.mappings() if arcs is not None else []


def targets_below(step: Mapping) -> Iterator[Mapping]:
    """Every `{ step: … }` that a step leads to, in `next` and in its cases."""
    found: list[Node] = [node for key in ("next", "case") if (node := step.node(key)) is not None]
    while found:
        node = found.pop()
        if isinstance(node, Mapping):
            if "step" in node:
                yield node
            found += [slot.node for slot in node.slots if slot.key in ("arcs", "then", "next")]
        elif isinstance(node, Sequence):
            found += [slot.node for slot in node.slots]


def below_path(node: Mapping, *keys: str) -> Mapping | None:
    """The mapping at a path of keys."""
    found: Mapping | None = node
    for key in keys:
        found = found.mapping(key) if found is not None else None
    return found


def templates_below(node: Node) -> Iterator[TreeSlot]:
    """The slots below a node that hold a template."""
    for slot in slots_below(node):
        if isinstance(slot.node, Scalar) and slot.node.style != "*" and is_template(slot.text):
            yield slot


def respell(slot: TreeSlot, change: Callable[[str], str]) -> bool:
    """Change the text of a scalar; its spelling stays where it can. Whether anything changed."""
    node = slot.node
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return False
    new = change(node.value)
    if new == node.value:
        return False
    if node.style in ("|", ">"):  # the line breaks of a folded text stay where they are
        node.lines = [node.lines[0], *change("\n".join(node.lines[1:])).split("\n")]
        node.value = new
    else:
        slot.say(new)
    return True


def shown(value: Any) -> str:
    """A value, short enough for one line of a report."""
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
