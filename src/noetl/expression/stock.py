"""What Jinja2's own parser reads, and what of it is refused before it runs (VAL-2)."""

from collections import Counter
from typing import Final

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError

from noetl.errors import TemplateFault
from noetl.expression.filters import FILTERS, TESTS, unavailable
from noetl.expression.limits import LONGEST_STATEMENTS
from noetl.expression.sandbox import SANDBOX
from noetl.late import late


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


SURROGATE: Final = late("[\ud800-\udfff]")
CALLS: Final = (nodes.Call, nodes.Filter, nodes.Test)
FOREIGN: Final = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
