"""What a template's text says: its syntax tree, and what can be refused before it runs (VAL-2)."""

from collections.abc import Iterator
from typing import Any, Final

from jinja2 import nodes

from noetl.errors import TemplateFault
from noetl.expression.failure import excerpt
from noetl.expression.grammar import quick_tree
from noetl.expression.remembered import remembered
from noetl.expression.tokens import Unusual

DEEPEST_TREE: Final = 400
"""Of what a parser makes without recursion. None that can be compiled is as deep, and who walks a
tree does so by recursion."""
ROOM: Final = 1_000_000  # characters whose trees are kept: checking and compiling parse a text once


def is_template(value: object) -> bool:
    """Does it hold anything to evaluate? Other text is a literal and is never rendered (TPL-1)."""
    return isinstance(value, str) and ("{{" in value or "{%" in value)


def texts_of(value: Any) -> Iterator[str]:
    """The templates inside a value."""
    if isinstance(value, str):
        if is_template(value):
            yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from texts_of(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from texts_of(child)


@remembered(ROOM)
def parse(text: str) -> nodes.Template:
    """The checked tree of `text`, or a TemplateFault."""
    try:
        tree = quick_tree(text)
    except (Unusual, RecursionError):
        from noetl.expression.stock import stock_tree  # few playbooks need it

        tree = stock_tree(text)
    if len(text) > DEEPEST_TREE:  # a level takes a character at least
        refuse_deep(tree, text)
    return tree


def refuse_deep(tree: nodes.Template, text: str) -> None:
    level: list[nodes.Node] = [tree]
    for _ in range(DEEPEST_TREE):
        level = [child for node in level for child in node.iter_child_nodes()]
        if not level:
            return
    raise TemplateFault("the template is nested too deeply", text=text)


def is_everyday(text: str) -> bool:
    """Was `text` read by the short cut? All else costs ten times as much to check."""
    return parse(text).environment is None


def outputs_of(tree: nodes.Template) -> list[nodes.Node] | None:
    """The parts of a template that has no statements."""
    parts: list[nodes.Node] = []
    for node in tree.body:
        if not isinstance(node, nodes.Output):
            return None
        parts += node.nodes
    return parts


def whole_expression(tree: nodes.Template) -> nodes.Node | None:
    """The expression, if the template is exactly one; white space around it is no text (TPL-1)."""
    parts = outputs_of(tree)
    if parts is None:
        return None
    expressions = [
        part
        for part in parts
        if not (isinstance(part, nodes.TemplateData) and not part.data.strip())
    ]
    if len(expressions) != 1 or isinstance(expressions[0], nodes.TemplateData):
        return None
    return expressions[0]


def path_of(node: nodes.Node) -> tuple[str, tuple[Any, ...]] | None:
    """The root and the keys of a path: constants from a name on, such as `ctx.rows[0].id`."""
    keys: list[Any] = []
    while not isinstance(node, nodes.Name):
        if isinstance(node, nodes.Getattr):
            keys.append(node.attr)
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
            if type(node.arg.value) not in (str, int):
                return None
            keys.append(node.arg.value)
        else:
            return None
        node = node.node
    return node.name, tuple(reversed(keys))


def check_template(text: str) -> TemplateFault | None:
    """What is wrong with a template, without evaluating it."""
    try:
        parse(text)
    except TemplateFault as fault:
        return fault
    return None


def check_guard(value: object) -> str | None:
    """Why `value` cannot be a guard: neither a boolean nor one whole `{{ … }}` (VAL-2)."""
    if isinstance(value, bool):
        return None
    wanted = "a guard is true, false or one whole {{ … }} expression"
    if not isinstance(value, str):
        return f"{wanted}, not {kind_of(value)}"
    inside = value.strip()
    if not (inside.startswith("{{") and inside.endswith("}}")):
        return f"{wanted}, not {excerpt(value)!r}"
    try:
        tree = parse(value)
    except TemplateFault as fault:
        return fault.message
    if whole_expression(tree) is None:
        return f"{wanted}, not {excerpt(value)!r}"
    return None


KINDS: Final[dict[type, str]] = {
    type(None): "nothing",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
}


def kind_of(value: Any) -> str:
    return KINDS.get(type(value), type(value).__name__)
