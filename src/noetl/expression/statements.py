"""Templates with statements (`{% … %}`), run by Jinja2 itself inside our sandbox."""

import re
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any, Final, cast

from jinja2 import nodes
from jinja2.environment import Template
from jinja2.exceptions import TemplateSyntaxError, UndefinedError
from jinja2.visitor import NodeTransformer

from noetl.errors import NeedsBody, TemplateFault
from noetl.expression.evaluation import RULES, Evaluation
from noetl.expression.failure import NAMED
from noetl.expression.limits import NODES_PER_RUN, fits
from noetl.expression.lookup import BODIES
from noetl.expression.missing import Missing, joined
from noetl.expression.sandbox import EVALUATION, SANDBOX
from noetl.expression.syntax import path_of
from noetl.messages.reference import Reference


def inner(name: str, node: nodes.Node, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(
        cast(nodes.Expr, node), name, list(args), [], None, None, lineno=node.lineno
    )


def weight_of(node: nodes.Node) -> int:
    """How many turns one run through a block costs: a long block does more than a short one."""
    return 1 + sum(1 for _ in node.find_all(nodes.Node)) // NODES_PER_RUN


class Counting(NodeTransformer):
    """Puts a count on what Jinja2 would run uncounted: loops, `~`, literals, slices, `==`."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        weight = nodes.Const(weight_of(node))
        self.generic_visit(node)
        node.iter = inner("$counted", node.iter, weight)
        return node

    def visit_block(self, node: Any) -> Any:
        """What can be called again and again pays for its length each time."""
        charge = inner("$charged", nodes.Const(weight_of(node)))
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(charge, lineno=node.lineno))
        return node

    visit_Macro = visit_CallBlock = visit_Block = visit_block

    def visit_call(self, node: Any) -> Any:
        self.generic_visit(node)
        if node.dyn_args is not None:
            node.dyn_args = inner("$counted", node.dyn_args, nodes.Const(1))
        return node

    visit_Call = visit_Filter = visit_Test = visit_call

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:
        self.generic_visit(node)
        return inner("$concat", nodes.Tuple(node.nodes, "load", lineno=node.lineno))

    def visit_literal(self, node: Any) -> nodes.Expr:
        self.generic_visit(node)
        return inner("$built", node)

    visit_List = visit_Dict = visit_literal

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        return self.visit_literal(node) if node.ctx == "load" else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Expr:
        self.generic_visit(node)
        node.expr = inner("$weighed", node.expr)
        for operand in node.ops:
            operand.expr = inner("$weighed", operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        given = [nodes.Const(None) if bound is None else bound for bound in bounds]
        return inner("$cut", node.node, *given)


def compile_statements(text: str) -> Callable[[dict[str, Any]], str]:
    """One callable that renders the template, at Jinja2's own speed."""
    template = counting_template(text)
    paths = paths_by_ending(SANDBOX.parse(text))

    def render(scope: dict[str, Any]) -> str:
        try:
            return with_bodies(lambda filled: rendered(template, filled), scope)
        except UndefinedError as error:
            raise named_in_full(error, paths) from error

    return render


def counting_template(text: str) -> Template:
    """The template compiled by Jinja2; what only Python's compiler refuses is a fault too."""
    try:
        # Parsed anew: the counting changes the tree, and the checked one is shared.
        counting: nodes.Template = Counting().visit(SANDBOX.parse(text))
        counting.set_environment(SANDBOX)
        with warnings.catch_warnings():  # Python's compiler warns of what Jinja2 writes for `1()`
            warnings.simplefilter("ignore", SyntaxWarning)
            return Template.from_code(SANDBOX, SANDBOX.compile(counting), {})
    except TemplateSyntaxError as error:  # such as a block that is defined twice
        raise TemplateFault(str(error.message), text=text, line=error.lineno - 1) from error
    except (RecursionError, MemoryError, IndentationError) as error:
        raise TemplateFault("the template is nested too deeply", text=text) from error
    except SyntaxError as error:
        deep = "nested blocks" in error.msg
        said = "the template is nested too deeply" if deep else PRIVATE.sub("", error.msg)
        raise TemplateFault(said, text=text) from error


PRIVATE: Final = re.compile(r"\bl_\d+_| in function definition")  # how Jinja2 names variables


def paths_by_ending(tree: nodes.Template) -> dict[str, set[str]]:
    """The paths a template spells, by their last key: compiled statements know only that one."""
    found: dict[str, set[str]] = {}
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        path = path_of(node)
        if path is not None:
            root, keys = path
            full = reduce(joined, keys, root)
            found.setdefault(joined("", keys[-1]), set()).add(full)
    return found


def named_in_full(error: UndefinedError, paths: dict[str, set[str]]) -> UndefinedError:
    named = NAMED.match(str(error))
    candidates = paths.get(named.group(2), set()) if named else set()
    if len(candidates) != 1:
        return error
    return UndefinedError(f"{next(iter(candidates))!r} is undefined")


def rendered(template: Template, scope: dict[str, Any]) -> str:
    evaluation = Evaluation(scope, Missing, RULES)
    view = template.new_context({EVALUATION: evaluation})
    pieces: list[str] = []
    length = 0
    for piece in template.root_render_func(view):
        pieces.append(piece)
        length = fits(length + len(piece), "text")
    return "".join(pieces)


def with_bodies(render: Callable[[dict[str, Any]], str], scope: dict[str, Any]) -> str:
    """Render; where a reference was touched and its body is at hand, put it there and try again."""
    while True:
        try:
            return render(scope)
        except NeedsBody as needs:
            bodies = scope.get(BODIES) or {}
            if needs.reference.key not in bodies:
                raise
            body = bodies[needs.reference.key]
            scope = {
                name: value if name == BODIES else replaced(value, needs.reference, body)
                for name, value in scope.items()
            }


def replaced(value: Any, reference: Reference, body: Any) -> Any:
    if type(value) is Reference:
        return body if value.key == reference.key else value
    if type(value) is dict:
        return {key: replaced(child, reference, body) for key, child in value.items()}
    if type(value) is list:
        return [replaced(child, reference, body) for child in value]
    return value
