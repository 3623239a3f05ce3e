"""
Templates of the reference model: the small part of the language that random playbooks use.

Written from TPL-1 to TPL-3 alone, over Python's own parser: names, attributes, comparisons,
arithmetic, conditions and `default(…)`. It shares no code with the templates of the product.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Names = Mapping[str, Any]

BARE = ("args", "ctx", "iter", "workload")
"""Where a name without a namespace is looked for, in this order (TPL-2)."""

EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


class Undefined:
    """What a name stands for that nothing defines; it is equal to nothing and never true."""


UNDEFINED = Undefined()


class TemplateFault(Exception):
    """A template that cannot be evaluated, or an undefined value that would reach the output."""


@cache
def parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def render(value: Any, names: Names) -> Any:
    """A value of the document with its templates filled in (TPL-1); undefined is a fault."""
    if isinstance(value, dict):
        return {key: render(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [render(inner, names) for inner in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    whole = EXPRESSION.fullmatch(value.strip())
    if whole is not None:
        return defined(parsed(whole[1]), names)
    return EXPRESSION.sub(lambda found: str(defined(parsed(found[1]), names)), value)


def defined(tree: ast.expr, names: Names) -> Any:
    value = evaluate(tree, names)
    if value is UNDEFINED:
        raise TemplateFault(ast.unparse(tree))
    return value


def holds(when: Any, names: Names) -> bool:
    """A guard: an undefined value is false (TPL-3)."""
    if isinstance(when, bool):
        return when
    found = EXPRESSION.fullmatch(when.strip())
    assert found is not None, "a guard is one expression"
    value = evaluate(parsed(found[1]), names)
    return value is not UNDEFINED and bool(value)


def reads(when: Any, scope: str = "ctx") -> set[str]:
    """The keys of a scope that a guard names."""
    if not isinstance(when, str):
        return set()
    found = EXPRESSION.fullmatch(when.strip())
    assert found is not None
    return {
        part.attr
        for part in ast.walk(parsed(found[1]))
        if isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id == scope
    }


# ── one expression ───────────────────────────────────────────────────────────────────────────


def equal(left: Any, right: Any) -> bool:
    return UNDEFINED not in (left, right) and bool(left == right)


def ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """`<` and its like: false where a side is undefined or null."""

    def asked(left: Any, right: Any) -> bool:
        if any(side is UNDEFINED or side is None for side in (left, right)):
            return False
        return compare(left, right)

    return asked


def within(left: Any, right: Any) -> bool:
    if right is None or left is UNDEFINED or right is UNDEFINED:
        return False
    return left in right


COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: equal,
    ast.NotEq: lambda left, right: not equal(left, right),
    ast.Lt: ordered(operator.lt),
    ast.Gt: ordered(operator.gt),
    ast.LtE: ordered(operator.le),
    ast.GtE: ordered(operator.ge),
    ast.In: within,
}
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
}


def evaluate(tree: ast.expr, names: Names) -> Any:
    try:
        return EVALUATE[type(tree)](tree, names)
    except (TypeError, ZeroDivisionError) as fault:
        raise TemplateFault(str(fault)) from fault


def named(tree: Any, names: Names) -> Any:
    if tree.id in names:
        return names[tree.id]
    for scope in BARE:
        if tree.id in names.get(scope, {}):
            return names[scope][tree.id]
    return UNDEFINED


def attribute(tree: Any, names: Names) -> Any:
    value = evaluate(tree.value, names)
    return value.get(tree.attr, UNDEFINED) if isinstance(value, dict) else UNDEFINED


def compared(tree: Any, names: Names) -> bool:
    left = evaluate(tree.left, names)
    for how, side in zip(tree.ops, tree.comparators, strict=True):
        right = evaluate(side, names)
        if not COMPARE[type(how)](left, right):
            return False
        left = right
    return True


def true(value: Any) -> bool:
    return value is not UNDEFINED and bool(value)


def combined(tree: Any, names: Names) -> Any:
    value: Any = UNDEFINED
    stops = isinstance(tree.op, ast.Or)
    for part in tree.values:
        value = evaluate(part, names)
        if true(value) is stops:
            break
    return value


def computed(tree: Any, names: Names) -> Any:
    left = evaluate(tree.left, names)
    if isinstance(tree.op, ast.BitOr):  # the one filter: default(…)
        return evaluate(tree.right.args[0], names) if left is UNDEFINED else left
    right = evaluate(tree.right, names)
    if UNDEFINED in (left, right):
        raise TemplateFault(ast.unparse(tree))
    return ARITHMETIC[type(tree.op)](left, right)


EVALUATE: dict[type[ast.expr], Callable[[Any, Names], Any]] = {
    ast.Constant: lambda tree, _: tree.value,
    ast.Name: named,
    ast.Attribute: attribute,
    ast.Compare: compared,
    ast.BoolOp: combined,
    ast.BinOp: computed,
    ast.UnaryOp: lambda tree, names: not true(evaluate(tree.operand, names)),
    ast.IfExp: lambda tree, names: evaluate(
        tree.body if true(evaluate(tree.test, names)) else tree.orelse, names
    ),
    ast.List: lambda tree, names: [evaluate(part, names) for part in tree.elts],
    ast.Dict: lambda tree, names: {
        evaluate(key, names): evaluate(value, names)
        for key, value in zip(tree.keys, tree.values, strict=True)
    },
}
