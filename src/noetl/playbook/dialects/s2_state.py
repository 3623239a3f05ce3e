"""`vars`, `args` and results by step name: where the state of the case dialect lives (DIA-S2)."""

import re
from collections.abc import Iterator

from noetl.playbook.dialects.draft import Draft, respell, shown, tasks_of, templates_below
from noetl.playbook.dialects.names import Respelling, paths_read, respelled
from noetl.playbook.dialects.s2_names import Sight, translate
from noetl.playbook.dialects.s2_pipeline import (
    add_task,
    free_label,
    kind_of,
    main_task,
    on_success,
    plain_task,
    quoted,
    rule_slot,
    rules_in,
    then_node,
    tool_task,
    write,
)
from noetl.playbook.dialects.tree import Mapping, Node, Sequence, TreeSlot, node_of, slots_below

_NAME = re.compile(r"[A-Za-z_]\w*")
_WITH_ARGS = frozenset({"python", "workbook", "playbook", "script"})
_ANSWER = {"status_code": "status", "data": "data", "headers": "headers"}
"""Parts of an http answer that are read by the name of its step."""


# ── vars ──


def written_vars(draft: Draft) -> set[str]:
    """The names that steps write by `vars` or by `set` of a case."""
    return {slot.key or "" for step in draft.steps() for slot in _var_slots(step)}


def _var_slots(step: Mapping) -> Iterator[TreeSlot]:
    given = step.mapping("vars")
    yield from given.slots if given is not None else ()
    cases = step.sequence("case")
    for entry in cases.mappings() if cases is not None else ():
        then = entry.mapping("then")
        for key in ("set", "vars"):
            written = then.mapping(key) if then is not None else None
            yield from written.slots if written is not None else ()


def reads_of_vars(draft: Draft, root: Mapping) -> None:
    """`vars.x` → `ctx.x`; a variable of an eval step stays what it is."""
    if "case" not in draft.dialects:
        return
    known = written_vars(draft)
    mixed = "eval" in draft.dialects

    def respell_path(path: tuple[str | int, ...]) -> Respelling | None:
        if path[0] != "vars":
            return None
        if len(path) == 1:
            return None if mixed else Respelling(1, "ctx")
        return Respelling(2, f"ctx.{path[1]}") if path[1] in known or not mixed else None

    for slot in templates_below(root):
        old = slot.text
        if respell(slot, lambda text: respelled(text, respell_path)):
            draft.tell(slot, shown(old), shown(slot.text))


def vars_of_step(draft: Draft, step: Mapping) -> None:
    """`vars` → `set_ctx` after a success."""
    given = step.slot("vars")
    if given is None or "step" not in step:
        return
    if not isinstance(given.node, Mapping):
        draft.refuse(given, "'vars' of a step is no mapping", "write vars: { name: … }")
        return
    step.pop("vars")
    then = keep_all(draft, step, given.node.slots, given)
    draft.tell(given, "vars", "spec.policy.rules: set_ctx", now=then.slot("set_ctx"))


def keep_all(draft: Draft, step: Mapping, slots: list[TreeSlot], like: TreeSlot) -> Mapping:
    """Write values to `ctx` whenever the step's main task has succeeded."""
    then, sight = keeping(draft, step, like)
    for slot in slots:
        name = plain_name(draft, slot)
        if name is not None:
            slot.before = [line for line in slot.before if line]
            translate(draft, slot, sight)
            write(then, "set_ctx", name, slot.node, slot)
    return then


def plain_name(draft: Draft, slot: TreeSlot) -> str | None:
    """The key of a write; `vars.x` and `ctx.x` mean x (SCOPE-5)."""
    name = (slot.key or "").removeprefix("vars.").removeprefix("ctx.")
    if _NAME.fullmatch(name):
        return name
    draft.refuse(slot, f"'{slot.key}' is no plain name", "use letters, digits and _")
    return None


def keeping(draft: Draft, step: Mapping, like: TreeSlot) -> tuple[Mapping, Sight]:
    """The directive that writes after a success, and what its templates see."""
    task = main_task(step)
    kind = kind_of(draft, tool_task(step))
    bare = TreeSlot(like.node, line=like.line, path=like.path)
    kept = draft.left.get(("keep", id(task)))
    if task is not None and kept is not None:
        return on_success(task, bare, fails=False), Sight("after", kind)
    own = task is not None and (
        "policy" not in (task.mapping("spec") or Mapping())
        or ("case rules", id(task)) in draft.left
    )
    if task is None or not own:
        keep = plain_task("noop", like)
        add_task(step, free_label(step, "keep"), keep, bare)
        draft.left["keep", id(keep)] = like
        then = then_node(like)
        rules_in(keep, bare).slots.append(rule_slot(None, then, bare))
        return then, Sight("after", kind)
    draft.left["case rules", id(task)] = like
    listed = ("listed", id(task)) in draft.left
    fails = kind != "noop"  # which never does
    return on_success(task, bare, fails=fails), Sight(
        "rule", _inner_kind(draft, task, kind), listed
    )


def _inner_kind(draft: Draft, task: Mapping, kind: str) -> str:
    return kind_of(draft, main_task(task)) if kind == "iterator" else kind


# ── results by step name ──


class Shadows:
    """Names that mean something nearer than the result of a step."""

    def __init__(self, draft: Draft) -> None:
        self.into: dict[str, set[str]] = {}
        self.called: set[str] = set()
        for step in draft.steps():
            for target in targets_below(step):
                keys = target.mapping("args")
                name = target.text("step") or ""
                self.into.setdefault(name, set()).update(keys.keys() if keys else ())
            for slot in tasks_of(step):
                task = slot.node
                if isinstance(task, Mapping) and task.text("kind") == "workbook":
                    args = task.mapping("args")
                    self.called.update(args.keys() if args else ())

    def of(self, step: Mapping) -> set[str]:
        own = step.mapping("args")
        loop = step.mapping("loop")
        return (
            self.into.get(step.text("step") or "", set())
            | set(own.keys() if own else ())
            | ({loop.text("iterator") or ""} if loop is not None else set())
        )


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


def results_by_name(draft: Draft, root: Mapping) -> None:
    """`<step>.x` → `ctx.<step>.x`, and each step that is read keeps its result there."""
    if "case" not in draft.dialects:
        return
    steps = {name: step for step in draft.steps() if (name := step.text("step"))}
    homes = _homes(draft, steps)
    shadows = Shadows(draft)
    for step in draft.steps():
        hidden = shadows.of(step)
        _respell_results(draft, step, {n: h for n, h in homes.items() if n not in hidden}, steps)
    workbook = root.node("workbook")
    if workbook is not None:
        known = {n: h for n, h in homes.items() if n not in shadows.called}
        _respell_results(draft, workbook, known, steps)


def _homes(draft: Draft, steps: dict[str, Mapping]) -> dict[str, str]:
    """The key of `ctx` for each step's result; a variable of the same name comes first."""
    taken = written_vars(draft)
    return {
        name: f"{name}_result" if name in taken else name
        for name in steps
        if _NAME.fullmatch(name) and name not in _RESERVED
    }


_RESERVED = frozenset(
    {"workload", "ctx", "iter", "args", "vars", "event", "execution_id", "outcome", "result"}
    | {"response", "this", "data", "error", "attempt", "success", "status_code", "max_attempts"}
)


def _respell_results(
    draft: Draft, node: Node, homes: dict[str, str], steps: dict[str, Mapping]
) -> None:
    def respell_path(path: tuple[str | int, ...]) -> Respelling | None:
        home = homes.get(str(path[0]))
        if home is None:
            return None
        if len(path) > 1 and path[1] in _ANSWER and _is_http(draft, steps[str(path[0])]):
            return Respelling(2, f"ctx.{home}.{_ANSWER[str(path[1])]}")
        return Respelling(1, f"ctx.{home}")

    for slot in templates_below(node):
        read = [path for path in paths_read(slot.text) if str(path[0]) in homes]
        for path in read:
            _note_read(draft, steps[str(path[0])], homes[str(path[0])], path, slot)
        old = slot.text
        if read and respell(slot, lambda text: respelled(text, respell_path)):
            draft.tell(slot, shown(old), shown(slot.text))


def _is_http(draft: Draft, step: Mapping) -> bool:
    return kind_of(draft, main_task(step)) == "http"


def _note_read(
    draft: Draft, step: Mapping, home: str, path: tuple[str | int, ...], slot: TreeSlot
) -> None:
    """Leave word that a step's result is read, and whether as a whole http answer."""
    draft.left.setdefault(("result", id(step)), TreeSlot(node_of(home), line=slot.line))
    if len(path) > 1 and path[1] in _ANSWER and _is_http(draft, step):
        draft.left["answer", id(step)] = slot


def keep_result(draft: Draft, step: Mapping) -> None:
    """A step whose result is read by its name writes it to `ctx`."""
    left = draft.left.get(("result", id(step)))
    name = step.slot("step")
    if left is None or name is None or not ({"tool", "vars", "case"} & set(step.keys())):
        return
    like = TreeSlot(name.node, line=name.line, path=name.path)
    then, sight = keeping(draft, step, like)
    if ("answer", id(step)) in draft.left:
        sight = sight._replace(kind="")
    value = quoted(f"{{{{ {sight.result} }}}}", name.line)
    slot = write(then, "set_ctx", left.text or "", value, like)
    draft.tell(name, f"the result of {name.text}", f"set_ctx: {left.text}", now=slot)


# ── args of a step ──


def args_of_step(draft: Draft, step: Mapping) -> None:
    """`args` of a step → those of its task; what templates read is bound before it."""
    given = step.slot("args")
    task = main_task(step)
    if given is None or "step" not in step:
        return
    if not isinstance(given.node, Mapping) or task is None:
        draft.refuse(given, "'args' of a step has no counterpart here", "put args on the arcs")
        return
    step.pop("args")
    names = {slot.key or "" for slot in given.node.slots}
    read = _read_args(step, names)
    kind = task.text("kind") or ""
    if kind in _WITH_ARGS and not isinstance(task.node("args"), Sequence):
        _pass_args(task, given, task.within("args", like=given, at=1))
    elif names - set(read):
        for name in sorted(names - set(read)):
            slot = given.node.slot(name)
            assert slot is not None
            draft.refuse(
                slot,
                f"nothing in the step reads the argument '{name}'",
                "it is left out",
                code="changed-meaning",
            )
    if read:
        _bind_args(draft, step, given, read)
    draft.tell(given, "args of the step", "args of the task")


def _pass_args(task: Mapping, given: TreeSlot, target: Mapping) -> None:
    assert isinstance(given.node, Mapping)
    held = task.slot("args")
    if held is not None and not target.slots:
        held.before = [line for line in given.before if line]
        held.beside = given.beside
        target.flow = given.node.flow
    target.slots[:0] = [slot for slot in given.node.slots if (slot.key or "") not in target]


def _read_args(step: Mapping, names: set[str]) -> dict[str, str]:
    """The arguments that templates of the step read → the scope that can hold them."""
    found: dict[str, str] = {}
    for held in step.slots:
        for slot in templates_below(held.node):
            for path in paths_read(slot.text):
                name = _argument(path, names)
                if name is not None and found.get(name) != "ctx":
                    found[name] = "ctx" if held.key in ("case", "next") else "iter"
    return found


def _argument(path: tuple[str | int, ...], names: set[str]) -> str | None:
    name = path[1] if path[0] == "args" and len(path) > 1 else path[0]
    return str(name) if name in names else None


def _bind_args(draft: Draft, step: Mapping, given: TreeSlot, read: dict[str, str]) -> None:
    """A first task that writes them where the others find them."""
    assert isinstance(given.node, Mapping)
    bare = TreeSlot(given.node, line=given.line, path=given.path)
    task = plain_task("noop", bare)
    then = then_node(bare)
    own = re.sub(r"\W", "_", step.text("step") or "step")
    homes = {
        name: f"ctx.{own}_{name}" if scope == "ctx" else f"iter.{name}"
        for name, scope in read.items()
    }

    def respell_path(path: tuple[str | int, ...]) -> Respelling | None:
        name = _argument(path, set(read))
        return None if name is None else Respelling(2 if path[0] == "args" else 1, homes[name])

    own_slots = {id(slot) for slot in slots_below(given.node)}
    for slot in templates_below(step):
        old = slot.text
        if id(slot) in own_slots:
            continue
        if respell(slot, lambda text: respelled(text, respell_path)):
            draft.tell(slot, shown(old), shown(slot.text))
    for slot in given.node.slots:
        name = slot.key or ""
        if name in read:
            scope, _, home = homes[name].partition(".")
            write(then, f"set_{scope}", home, slot.node, TreeSlot(slot.node, line=slot.line))
    rules_in(task, bare).slots.append(rule_slot(None, then, bare))
    add_task(step, "bind", task, bare, first=True)
