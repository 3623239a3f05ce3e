"""Where do the values of `input` go, where no task takes them as arguments? (DIA-UP)"""

from noetl.expression.syntax import is_template
from noetl.kinds.table import KINDS
from noetl.playbook.dialects.draft import (
    Draft,
    respell,
    shown,
    tasks_of,
    templates_below,
)
from noetl.playbook.dialects.names import Respelling, respelled
from noetl.playbook.dialects.public_tasks import TAKES_ARGS, WORDS
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, TreeSlot


def input_of_step(draft: Draft, step: Mapping) -> None:
    """`input` of a step → the arguments of its tasks."""
    slot = step.slot("input")
    if slot is None or "step" not in step:
        return
    tasks = [one.node for one in tasks_of(step) if isinstance(one.node, Mapping)]
    takers = [task for task in tasks if task.text("kind") in TAKES_ARGS]
    if not isinstance(slot.node, Mapping) or not tasks:
        draft.refuse(
            slot, "'input' of a step has no counterpart here", "write args: { … } in the task"
        )
        return
    step.pop("input")
    given = slot.node
    if given.slots:
        given.slots[0].before = [*filter(None, slot.before), *given.slots[0].before]
    for number, task in enumerate(takers):
        args = task.within("args", like=slot)
        for one in given.slots:
            if one.key is not None and one.key not in args:
                again = TreeSlot(one.node, line=one.line, path=one.path)
                made = args.put(one.key, one.node, like=one if number == 0 else again)
                made.key_text = one.key_text
    for task in tasks:
        _inline(draft, task, given)
    new = "args of the task" if takers else "values in its templates"
    draft.tell(slot, "input of the step", new, now=_now(takers, slot))


def _now(takers: list[Mapping], slot: TreeSlot) -> TreeSlot:
    return (takers[0].slot("args") if takers else None) or slot


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
    if not isinstance(node.value, str):
        return {None: "none", True: "true", False: "false"}.get(node.value, repr(node.value))
    text = node.value.strip()
    if not is_template(text):
        return repr(node.value)
    inside = text.removeprefix("{{").removesuffix("}}")
    whole = text.startswith("{{") and text.endswith("}}") and "{{" not in inside
    if not whole or "{%" in inside:
        return None
    inner = inside.strip()
    return inner if inner.replace(".", "").replace("_", "").isalnum() else f"({inner})"
