"""What a template's text says: its syntax tree, and what can be refused before it runs (VAL-2)."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError

from noetl.errors import TemplateFault
from noetl.expression.failure import excerpt
from noetl.expression.filters import FILTERS, TESTS, unavailable
from noetl.expression.grammar import quick_tree
from noetl.expression.limits import LONGEST_STATEMENTS
from noetl.expression.sandbox import SANDBOX
from noetl.expression.tokens import Unusual

MOST_PARSED: Final = 4096  # trees kept, so that checking and compiling parse a text once


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


@lru_cache(maxsize=MOST_PARSED)
def parse(text: str) -> nodes.Template:
    """The checked tree of `text`, or a TemplateFault."""
    try:
        return quick_tree(text)
    except (Unusual, RecursionError):
        return stock_tree(text)


def stock_tree(text: str) -> nodes.Template:
    """The tree as Jinja2's own parser reads it; its faults are told in Jinja2's words."""
    if "{%" in text and len(text) > LONGEST_STATEMENTS:
        said = f"a template with statements is longer than {LONGEST_STATEMENTS:,} characters"
        raise TemplateFault(said, text=text)
    try:
        tree = SANDBOX.parse(text)
        check_names(tree)
    except TemplateFault as fault:
        raise TemplateFault(fault.message, text=text, line=fault.line) from None
    except TemplateSyntaxError as error:
        raise TemplateFault(str(error.message), text=text, line=error.lineno - 1) from error
    except RecursionError as error:
        raise TemplateFault("the template is nested too deeply", text=text) from error
    except (ValueError, OverflowError) as error:
        raise TemplateFault(f"a literal is not valid: {error}", text=text) from error
    return tree


def check_names(tree: nodes.Template) -> None:
    """Unknown filters and tests, private attributes, other templates: refused at load."""
    for node in tree.find_all(nodes.Node):
        reason = refusal(node)
        if reason is not None:
            raise TemplateFault(reason, line=node.lineno - 1)


def refusal(node: nodes.Node) -> str | None:
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        return unavailable("filter", node.name)
    if isinstance(node, nodes.Test) and node.name not in TESTS:
        return unavailable("test", node.name)
    if isinstance(node, nodes.Getattr) and node.attr.startswith("__"):
        return f"access to attribute {node.attr!r} is not allowed"
    if isinstance(node, nodes.Const) and SURROGATE.search(str(node.value)):
        return "a text holds half a character (a surrogate), which JSON cannot carry"
    if isinstance(node, CALLS) and node.kwargs:
        [(name, times)] = Counter(given.key for given in node.kwargs).most_common(1)
        return f"the argument {name!r} is given twice" if times > 1 else None
    if isinstance(node, FOREIGN):
        return f"`{type(node).__name__.lower()}` is not available in templates"
    return None


SURROGATE: Final = re.compile("[\ud800-\udfff]")
CALLS: Final = (nodes.Call, nodes.Filter, nodes.Test)
FOREIGN: Final = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)


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
