"""Expressions of Jinja2's syntax tree, written down as plain Python code (TPL-4)."""

from collections.abc import Mapping
from typing import Any, Final

from jinja2 import nodes

from noetl.errors import TemplateFault
from noetl.expression import lookup, operators
from noetl.expression.grammar import COMPARISONS, known
from noetl.expression.limits import DEEPEST_TEMPLATE, LONGEST_PATH
from noetl.expression.syntax import path_of
from noetl.expression.writer import FunctionWriter, Visitor

COMPARED: Final = {name: sign for sign, name in COMPARISONS.items()}
ORDERED: Final = frozenset({"lt", "lteq", "gt", "gteq"})
MEMBERSHIP: Final = {"in": "", "notin": "not "}
SIMPLE: Final = (nodes.Const, nodes.TemplateData)
LONGEST_CHAIN: Final = 20  # subscripts in one line of code; longer paths are walked
LITERAL: Final = (str, int, bool, type(None))


def write_const(writer: FunctionWriter, node: nodes.Const) -> str:
    value = node.value
    return repr(value) if isinstance(value, LITERAL) else writer.bind(value)


def write_path(writer: FunctionWriter, node: nodes.Node) -> str:
    path = path_of(node)
    if path is None:
        return write_member(writer, node)
    root, keys = path
    if len(keys) > LONGEST_PATH:
        raise TemplateFault(f"a path has more than {LONGEST_PATH} steps")
    known = (root, *((type(key), key) for key in keys))
    if known in writer.loaded:
        return writer.loaded[known]
    name = writer.variable()
    if root in lookup.NAMESPACES and len(keys) < LONGEST_CHAIN:
        steps = "".join(f"[{key!r}]" for key in keys)
        writer.write(f"try: {name} = s[{root!r}]{steps}")
        writer.write(
            f"except (LookupError, TypeError): {name} = walk(s, missing, {root!r}, {keys!r})"
        )
    elif keys:
        writer.write(f"{name} = walk(s, missing, {root!r}, {keys!r})")
    else:
        writer.write(f"{name} = named(s, missing, {root!r})")
    writer.loaded[known] = name
    return name


def write_member(writer: FunctionWriter, node: nodes.Node) -> str:
    assert isinstance(node, nodes.Getattr | nodes.Getitem)
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
        return write_slice(writer, node.node, node.arg)
    value = writer.value(node.node)
    key = repr(node.attr) if isinstance(node, nodes.Getattr) else writer.touched(node.arg)
    writer.risky = True
    return writer.keep(f"member({value}, {key}, s, missing)")


def write_slice(writer: FunctionWriter, node: nodes.Node, part: nodes.Slice) -> str:
    value = writer.value(node)
    bounds = [
        "None" if bound is None else writer.touched(bound)
        for bound in (part.start, part.stop, part.step)
    ]
    return writer.keep(f"cut({writer.evaluation()}, {value}, {', '.join(bounds)})")


def write_dict(writer: FunctionWriter, node: nodes.Dict) -> str:
    writer.risky = True  # an undefined key
    pairs = [f"{writer.touched(pair.key)}: {writer.value(pair.value)}" for pair in node.items]
    return writer.keep(f"{{{', '.join(pairs)}}}")


def write_choice(writer: FunctionWriter, node: nodes.And | nodes.Or) -> str:
    result = writer.variable()
    condition = "if {}:" if isinstance(node, nodes.And) else "if not {}:"
    writer.write(f"{result} = {writer.touched(node.left)}")
    with writer.under(condition.format(result)):
        writer.write(f"{result} = {writer.touched(node.right)}")
    return result


def write_condition(writer: FunctionWriter, node: nodes.CondExpr) -> str:
    result = writer.variable()
    with writer.under(f"if {writer.touched(node.test)}:"):
        writer.write(f"{result} = {writer.value(node.expr1)}")
    with writer.under("else:"):
        otherwise = "NO_ELSE" if node.expr2 is None else writer.value(node.expr2)
        writer.write(f"{result} = {otherwise}")
    return result


def write_compare(writer: FunctionWriter, node: nodes.Compare) -> str:
    if len(node.ops) > DEEPEST_TEMPLATE:
        raise TemplateFault(f"more than {DEEPEST_TEMPLATE} comparisons in one chain")
    left_node: nodes.Node = node.expr
    left = writer.touched(left_node)
    if len(node.ops) == 1:
        link = node.ops[0]
        return writer.keep(comparison(writer, link.op, left_node, left, link.expr)[0])
    result = writer.variable()
    depth, before = writer.depth, dict(writer.loaded)
    for position, link in enumerate(node.ops):
        if position:
            writer.write(f"if {result}:")
            writer.depth += 1
        code, right = comparison(writer, link.op, left_node, left, link.expr)
        writer.write(f"{result} = {code}")
        left_node, left = link.expr, right
        if not position:
            before = dict(writer.loaded)
    writer.depth, writer.loaded = depth, before
    return result


def comparison(
    writer: FunctionWriter, op: str, left_node: nodes.Node, left: str, right_node: nodes.Node
) -> tuple[str, str]:
    """The code of one comparison and its right side; plain operators where one side is constant."""
    members = constants_of(right_node)
    if op in MEMBERSHIP and members is not None:
        return f"{left} {COMPARED[op]} {members}", members
    right = writer.touched(right_node)
    if op in MEMBERSHIP:
        code = f"contains({writer.evaluation()}, {left}, {right})"
        if writer.lenient and not is_value(right_node):
            code = f"{right} is not None and {code}"
        return f"{MEMBERSHIP[op]}({code})", right
    if isinstance(left_node, SIMPLE) or isinstance(right_node, SIMPLE):
        code = f"{left} {COMPARED[op]} {right}"
    else:
        evaluation = writer.evaluation()
        sides = [f"comparable({evaluation}, {side})" for side in (left, right)]
        code = f"{sides[0]} {COMPARED[op]} {sides[1]}"
    if writer.lenient and op in ORDERED:  # TPL-3: in a guard, null is a value that is not there
        nodes_of = {left: left_node, right: right_node}
        asked = [f"{side} is not None" for side, node in nodes_of.items() if not is_value(node)]
        code = " and ".join([*asked, code])
    return code, right


def is_value(node: nodes.Node) -> bool:
    """A literal that is not null."""
    return isinstance(node, SIMPLE) and getattr(node, "value", "") is not None


def constants_of(node: nodes.Node) -> str | None:
    """A list of literals as a constant tuple: `in` asks nothing more of it."""
    if not isinstance(node, nodes.List | nodes.Tuple):
        return None
    values = [child.value for child in node.items if isinstance(child, nodes.Const)]
    if len(values) != len(node.items) or not all(isinstance(value, LITERAL) for value in values):
        return None
    return repr(tuple(values))


def write_concat(writer: FunctionWriter, node: nodes.Concat) -> str:
    parts = writer.values(node.nodes)
    return writer.keep(f"concatenate({writer.evaluation()}, ({parts}))")


def write_binary(writer: FunctionWriter, node: nodes.BinExpr) -> str:
    left, right = writer.touched(node.left), writer.touched(node.right)
    operation = writer.bind(operators.BINARY[node.operator])
    return writer.keep(f"{operation}({writer.evaluation()}, {left}, {right})")


def write_unary(writer: FunctionWriter, node: nodes.UnaryExpr) -> str:
    writer.risky = True
    return writer.keep(f"{node.operator}{writer.touched(node.node)}")


def write_filter(writer: FunctionWriter, node: nodes.Filter) -> str:
    assert node.node is not None  # only a `{% filter %}` block has none
    return write_applied(writer, node, "filter", known()[0])


def write_test(writer: FunctionWriter, node: nodes.Test) -> str:
    if node.name in PRESENCE and not node.args:
        return writer.keep(f"{PRESENCE[node.name]}isinstance({writer.value(node.node)}, Undefined)")
    return write_applied(writer, node, "test", known()[1])


PRESENCE: Final = {"defined": "not ", "undefined": ""}


def write_applied(
    writer: FunctionWriter, node: Any, kind: str, functions: Mapping[str, Any]
) -> str:
    if node.name not in functions:
        from noetl.expression.filters import unavailable

        raise TemplateFault(unavailable(kind, node.name))
    value = writer.value(node.node)
    function = writer.bind(functions[node.name])
    arguments = writer.arguments(node)
    return writer.keep(f"{function}({writer.evaluation()}, {value}{arguments})")


def write_call(writer: FunctionWriter, node: nodes.Call) -> str:
    function = writer.touched(node.node)
    arguments = writer.arguments(node)
    return writer.keep(f"call({writer.evaluation()}, {function}{arguments})")


VISITORS: Final[dict[type, Visitor]] = {
    nodes.Const: write_const,
    nodes.TemplateData: lambda _, node: repr(node.data),
    nodes.Name: write_path,
    nodes.Getattr: write_path,
    nodes.Getitem: write_path,
    nodes.List: lambda writer, node: writer.keep(f"[{writer.values(node.items)}]"),
    nodes.Tuple: lambda writer, node: writer.keep(f"({writer.values(node.items)})"),
    nodes.Dict: write_dict,
    nodes.And: write_choice,
    nodes.Or: write_choice,
    nodes.Not: lambda writer, node: writer.keep(f"not {writer.touched(node.node)}"),
    nodes.CondExpr: write_condition,
    nodes.Compare: write_compare,
    nodes.Concat: write_concat,
    nodes.Filter: write_filter,
    nodes.Test: write_test,
    nodes.Call: write_call,
    **dict.fromkeys(
        (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow),
        write_binary,
    ),
    nodes.Neg: write_unary,
    nodes.Pos: write_unary,
}
