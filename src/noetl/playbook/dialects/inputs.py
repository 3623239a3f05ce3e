"""Where do `args` and `input` of steps and tasks go? (DIA-S2, DIA-UP)"""

import json
import re
from copy import deepcopy

from noetl.expression.syntax import is_template
from noetl.kinds.table import KINDS
from noetl.playbook.dialects.draft import Draft, own_tasks, respell, shown, templates_below
from noetl.playbook.dialects.names import Respelling, paths_read, respelled
from noetl.playbook.dialects.pipeline import (
    add_task,
    plain_task,
    rule_slot,
    rules_in,
    tasks_in,
    then_node,
    write,
)
from noetl.playbook.dialects.public_tasks import TAKES_ARGS, WORDS
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, TreeSlot, slots_below

_TAKES_NAMES = TAKES_ARGS | {"script"}


def inputs_of_step(draft: Draft, step: Mapping) -> None:
    """`args` and `input` of a step → those of its tasks; what templates read is bound first."""
    for word in ("input", "args"):
        given = step.slot(word)
        if given is None or "step" not in step:
            continue
        tasks = tasks_in(own_tasks(step))
        if not isinstance(given.node, Mapping) or not tasks:
            hint = "put args on the arcs" if word == "args" else "write args: { … } in the task"
            draft.refuse(given, f"'{word}' of a step has no counterpart here", hint)
            continue
        step.pop(word)
        read = _read_args(step, set(given.node.keys()))
        takers = [task for task in tasks if task.text("kind") in _TAKES_NAMES]
        for number, task in enumerate(takers):
            _give(task, given, first=number == 0)
        for name in sorted(set(given.node.keys()) - set(read)) if not takers else ():
            draft.refuse(
                given.node.slot(name) or given,
                f"nothing in the step reads the argument '{name}'",
                "it is left out",
                code="changed-meaning",
            )
        if read:
            _bind_args(draft, step, given, read)
        code = "case-args" if word == "args" else ""
        now = takers[0].slot("args") if takers else None
        draft.tell(given, f"{word} of the step", "args of the task", now=now, code=code)


def _give(task: Mapping, given: TreeSlot, *, first: bool) -> None:
    """The arguments of a step beside those that a task has."""
    assert isinstance(given.node, Mapping)
    args = task.mapping("args")
    if args is None and "args" not in task:
        held = given if first else TreeSlot(deepcopy(given.node), line=given.line, path=given.path)
        held.key = held.key_text = "args"
        held.node = Mapping(list(given.node.slots), given.node.flow, line=given.line)
        task.slots.insert(1, held)
        task.flow = False
    elif args is not None:
        kept = [one for one in given.node.slots if (one.key or "") not in args]
        args.slots += kept if first else deepcopy(kept)


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
    name = path[1] if path[0] in ("args", "input") and len(path) > 1 else path[0]
    return str(name) if name in names else None


def _bind_args(draft: Draft, step: Mapping, given: TreeSlot, read: dict[str, str]) -> None:
    """A first task that writes them where the others find them."""
    assert isinstance(given.node, Mapping)
    bare = given.bare
    then = then_node(bare)
    own = re.sub(r"\W", "_", step.text("step") or "step")
    homes = {
        name: f"ctx.{own}_{name}" if scope == "ctx" else f"iter.{name}"
        for name, scope in read.items()
    }

    def respell_path(path: tuple[str | int, ...]) -> Respelling | None:
        name = _argument(path, set(read))
        parts = 2 if path[0] in ("args", "input") else 1
        return None if name is None else Respelling(parts, homes[name])

    values = {id(slot) for slot in slots_below(given.node)}
    for slot in templates_below(step):
        old = slot.text
        if id(slot) not in values and respell(slot, lambda text: respelled(text, respell_path)):
            draft.tell(slot, shown(old), shown(slot.text), code="case-args")
    for slot in given.node.slots:
        if slot.key in read:
            scope, _, home = homes[slot.key].partition(".")
            write(
                then, f"set_{scope}", home, deepcopy(slot.node), TreeSlot(bare.node, line=slot.line)
            )
    task = plain_task("noop", bare)
    rules_in(task, bare).slots.append(rule_slot(None, then, bare))
    add_task(step, "bind", task, bare, first=True)


def input_of_task(draft: Draft, task: Mapping) -> None:
    """
    `input` of a kind that takes no arguments.

    Its inputs stand there (`url`), or are names for the task's own templates.
    """
    kind, slot = task.text("kind") or "", task.slot("input")
    known = KINDS.get(kind)
    if slot is None or known is None or kind in TAKES_ARGS or not isinstance(slot.node, Mapping):
        return
    fields = known.inputs.__struct_encode_fields__
    if "input" in fields:
        return
    at = task.place("input")
    task.pop("input")
    former = {word.old for word in WORDS.get(kind, ())}
    for one in slot.node.slots:
        if (one.key in fields or one.key in former) and one.key not in task:
            task.slots.insert(at, one)
            at += 1
    rest = [one for one in slot.node.slots if one.key is not None and one not in task.slots]
    _inline(draft, task, Mapping(rest))
    draft.tell(slot, "input", "inputs of the kind")


def _inline(draft: Draft, task: Mapping, given: Mapping) -> None:
    """Names of an `input` in the templates of a task are replaced by what they stood for."""
    stands_for = {one.key: one for one in given.slots if one.key is not None}

    def respell_path(path: tuple[str | int, ...]) -> Respelling | None:
        parts = 2 if path[0] == "input" and len(path) > 1 else 1
        one = stands_for.get(str(path[parts - 1])) if path[0] != "input" or parts == 2 else None
        text = as_expression(one.node) if one is not None else None
        return None if text is None else Respelling(parts, text)

    inside = {id(slot) for one in given.slots for slot in (one, *templates_below(one.node))}
    args = task.node("args")
    if args is not None:
        inside |= {id(slot) for slot in templates_below(args)}
    for slot in templates_below(task):
        old = slot.text
        if id(slot) not in inside and respell(slot, lambda text: respelled(text, respell_path)):
            draft.tell(slot, shown(old), shown(slot.text))


def as_expression(node: Node) -> str | None:
    """A value as it stands inside of an expression."""
    if not isinstance(node, Scalar):
        return None
    if not isinstance(node.value, str):  # JSON's words are those of templates, but for null
        return "none" if node.value is None else json.dumps(node.value)
    text = node.value.strip()
    if not is_template(text):
        return repr(node.value)
    inside = text.removeprefix("{{").removesuffix("}}")
    whole = text.startswith("{{") and text.endswith("}}") and "{{" not in inside
    if not whole or "{%" in inside:
        return None
    inner = inside.strip()
    return inner if inner.replace(".", "").replace("_", "").isalnum() else f"({inner})"
