"""
The everyday grammar of expressions, read several times faster than by Jinja2's own parser.

It gives the very nodes that Jinja2 gives, or it gives up (`Unusual`), and Jinja2 decides: it is a
short cut, never a second opinion. Property tests hold the two together.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from jinja2 import nodes

from noetl.expression.tokens import (
    END,
    FLOAT,
    INTEGER,
    KEYWORDS,
    NAME,
    STRING,
    Unusual,
    tokens_from,
)

CONSTANTS: Final = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "none": None,
    "None": None,
}
COMPARISONS: Final = {
    "==": "eq",
    "!=": "ne",
    ">": "gt",
    ">=": "gteq",
    "<": "lt",
    "<=": "lteq",
    "in": "in",
    "not in": "notin",
}
EITHER: Final[dict[str, type]] = {"or": nodes.Or}
BOTH: Final[dict[str, type]] = {"and": nodes.And}
SUMS: Final[dict[str, type]] = {"+": nodes.Add, "-": nodes.Sub}
PRODUCTS: Final[dict[str, type]] = {
    "*": nodes.Mul,
    "/": nodes.Div,
    "//": nodes.FloorDiv,
    "%": nodes.Mod,
}
POWERS: Final[dict[str, type]] = {"**": nodes.Pow}
SIGNS: Final[dict[str, type]] = {"-": nodes.Neg, "+": nodes.Pos}
# Most operands have no such sign behind them, and their levels of precedence are stepped over.
LOGIC: Final = EITHER.keys() | BOTH.keys()
ARITHMETIC: Final = SUMS.keys() | PRODUCTS.keys() | POWERS.keys() | {"~"}
ARGUMENT_STARTS: Final = frozenset({NAME, STRING, INTEGER, FLOAT, "[", "{"})
AFTER_A_TEST: Final = frozenset({"else", "or", "and"})
STEERING: Final = frozenset("-+")
SPECIAL: Final = ("{%", "{#", "\r")


def node(kind: type, **fields: Any) -> Any:
    """A node of Jinja2's tree, without the ceremony of its constructor."""
    made: Any = object.__new__(kind)
    fields["lineno"] = 1  # lines matter in faults only, and those Jinja2 words
    fields["environment"] = None
    made.__dict__ = fields
    return made


def quick_tree(text: str) -> nodes.Template:
    """The tree of a template without statements and comments; `Unusual` if it is anything else."""
    if any(sign in text for sign in SPECIAL):
        raise Unusual
    if text.endswith("\n"):  # as Jinja2 does, once
        text = text[:-1]
    parts: list[Any] = []
    position = 0
    while True:
        start = text.find("{{", position)
        literal = text[position:] if start < 0 else text[position:start]
        if literal:
            parts.append(node(nodes.TemplateData, data=literal))
        if start < 0:
            break
        if text[start + 2 : start + 3] in STEERING:
            raise Unusual
        kinds, values, position = tokens_from(text, start + 2)
        parts.append(ExpressionReader(kinds, values).whole())
    tree: nodes.Template = node(nodes.Template, body=[node(nodes.Output, nodes=parts)])
    return tree


class ExpressionReader:
    """Reads one expression from its tokens, by recursive descent, in Jinja2's precedence."""

    __slots__ = ("at", "kinds", "values")

    def __init__(self, kinds: list[str], values: list[Any]) -> None:
        self.kinds = kinds
        self.values = values
        self.at = 0

    def whole(self) -> Any:
        expression = self.tuple_until(END)
        if self.kinds[self.at] != END or expression is None:
            raise Unusual
        return expression

    def word(self, word: str) -> bool:
        """Step over a keyword, if it is the next token."""
        if self.kinds[self.at] == word:
            self.at += 1
            return True
        return False

    def expect(self, kind: str) -> Any:
        if self.kinds[self.at] != kind:
            raise Unusual
        self.at += 1
        return self.values[self.at - 1]

    def tuple_until(self, end: str) -> Any:
        """One expression, or several with commas: a tuple. `None` for nothing at all."""
        parts = []
        is_tuple = False
        while self.kinds[self.at] != end:
            parts.append(self.condition())
            if self.kinds[self.at] != ",":
                break
            is_tuple = True
            self.at += 1
        if is_tuple:
            return node(nodes.Tuple, items=parts, ctx="load")
        return parts[0] if parts else None

    def condition(self) -> Any:
        value = self.either()
        while self.word("if"):
            test = self.either()
            otherwise = self.condition() if self.word("else") else None
            value = node(nodes.CondExpr, test=test, expr1=value, expr2=otherwise)
        return value

    def chain(self, operations: Mapping[str, type], operand: Callable[[], Any], left: Any) -> Any:
        """Operations of one precedence, from left to right; `left` is read already."""
        while (kind := operations.get(self.kinds[self.at])) is not None:
            self.at += 1
            left = node(kind, left=left, right=operand())
        return left

    def either(self) -> Any:
        first = self.negation()
        if self.kinds[self.at] not in LOGIC:
            return first
        return self.chain(EITHER, self.both, self.chain(BOTH, self.negation, first))

    def both(self) -> Any:
        return self.chain(BOTH, self.negation, self.negation())

    def negation(self) -> Any:
        if self.word("not"):
            return node(nodes.Not, node=self.negation())
        return self.comparison()

    def comparison(self) -> Any:
        left = self.sum()
        links = []
        while True:
            sign = self.kinds[self.at]
            if sign == "not" and self.kinds[self.at + 1] == "in":
                sign = "not in"
            if sign not in COMPARISONS:
                break
            self.at += 2 if sign == "not in" else 1
            links.append(node(nodes.Operand, op=COMPARISONS[sign], expr=self.sum()))
        return node(nodes.Compare, expr=left, ops=links) if links else left

    def sum(self) -> Any:
        first = self.operand()
        if self.kinds[self.at] not in ARITHMETIC:
            return first
        return self.chain(SUMS, lambda: self.joined(self.operand()), self.joined(first))

    def joined(self, first: Any) -> Any:
        product = self.product(first)
        if self.kinds[self.at] != "~":
            return product
        parts = [product]
        while self.kinds[self.at] == "~":
            self.at += 1
            parts.append(self.product(self.operand()))
        return node(nodes.Concat, nodes=parts)

    def product(self, first: Any) -> Any:
        return self.chain(PRODUCTS, lambda: self.power(self.operand()), self.power(first))

    def power(self, first: Any) -> Any:
        return self.chain(POWERS, self.operand, first)

    def operand(self) -> Any:
        return self.filtered(self.signed())

    def signed(self) -> Any:
        kind = self.kinds[self.at]
        if kind in SIGNS:
            self.at += 1
            return self.postfixed(node(SIGNS[kind], node=self.signed()))
        return self.postfixed(self.primary())

    def primary(self) -> Any:
        kind, value = self.kinds[self.at], self.values[self.at]
        reads = PRIMARIES.get(kind)
        if reads is None:
            raise Unusual
        self.at += 1
        return reads(self, value)

    def postfixed(self, value: Any) -> Any:
        while True:
            kind = self.kinds[self.at]
            if kind == ".":
                self.at += 1
                value = self.attribute(value)
            elif kind == "[":
                self.at += 1
                value = self.subscript(value)
            elif kind == "(":
                value = self.call(value)
            else:
                return value

    def attribute(self, value: Any) -> Any:
        kind, name = self.kinds[self.at], self.values[self.at]
        self.at += 1
        if kind == INTEGER:
            return node(nodes.Getitem, node=value, arg=node(nodes.Const, value=name), ctx="load")
        if (kind != NAME and kind not in KEYWORDS) or name.startswith("__"):
            raise Unusual
        return node(nodes.Getattr, node=value, attr=name, ctx="load")

    def subscript(self, value: Any) -> Any:
        key = None if self.kinds[self.at] == ":" else self.condition()
        if self.kinds[self.at] == ":":
            key = self.slice(key)
        self.expect("]")
        return node(nodes.Getitem, node=value, arg=key, ctx="load")

    def slice(self, start: Any) -> Any:
        bounds = [start]
        for _ in range(2):
            if self.kinds[self.at] != ":":
                bounds.append(None)
                continue
            self.at += 1
            bounds.append(None if self.kinds[self.at] in (":", "]") else self.condition())
        return node(nodes.Slice, start=bounds[0], stop=bounds[1], step=bounds[2])

    def filtered(self, value: Any) -> Any:
        while True:
            kind = self.kinds[self.at]
            if kind == "|":
                self.at += 1
                value = self.filter(value)
            elif kind == "(":
                value = self.call(value)
            elif kind == "is":
                self.at += 1
                value = self.test(value)
            else:
                return value

    def filter(self, value: Any) -> Any:
        name = self.expect(NAME)
        if name not in known()[0] or self.kinds[self.at] == ".":
            raise Unusual
        given = self.arguments() if self.kinds[self.at] == "(" else fields_of([], [])
        return node(nodes.Filter, node=value, name=name, **given)

    def test(self, value: Any) -> Any:
        negated = self.word("not")
        name = self.expect("in" if self.kinds[self.at] == "in" else NAME)
        if name not in known()[1] or self.kinds[self.at] == ".":
            raise Unusual
        given = fields_of([], [])
        kind = self.kinds[self.at]
        if kind == "(":
            given = self.arguments()
        elif kind in ARGUMENT_STARTS:
            given = fields_of([self.postfixed(self.primary())], [])
        elif kind in KEYWORDS - AFTER_A_TEST:
            raise Unusual
        test = node(nodes.Test, node=value, name=name, **given)
        return node(nodes.Not, node=test) if negated else test

    def call(self, value: Any) -> Any:
        return node(nodes.Call, node=value, **self.arguments())

    def arguments(self) -> dict[str, Any]:
        self.at += 1
        args: list[Any] = []
        named: list[Any] = []
        for _ in self.parts(")"):
            if self.kinds[self.at] == NAME and self.kinds[self.at + 1] == "=":
                name = self.values[self.at]
                self.at += 2
                named.append(node(nodes.Keyword, key=name, value=self.condition()))
            elif named:
                raise Unusual
            else:
                args.append(self.condition())
        if len({given.key for given in named}) != len(named):
            raise Unusual
        return fields_of(args, named)

    def parts(self, end: str) -> Iterator[None]:
        """Once for each part before the bracket that closes, commas stepped over; then over it."""
        first = True
        while self.kinds[self.at] != end:
            if not first:
                self.expect(",")
                if self.kinds[self.at] == end:
                    break
            first = False
            yield
        self.at += 1


@cache
def known() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The filters and the tests that there are: imported with the first that a template has."""
    from noetl.expression.filters import FILTERS, TESTS

    return FILTERS, TESTS


def fields_of(args: list[Any], named: list[Any]) -> dict[str, Any]:
    """The arguments of a call, a filter or a test, as fields of its node."""
    return {"args": args, "kwargs": named, "dyn_args": None, "dyn_kwargs": None}


def read_name(_: ExpressionReader, name: str) -> Any:
    if name in CONSTANTS:
        return node(nodes.Const, value=CONSTANTS[name])
    return node(nodes.Name, name=name, ctx="load")


def read_number(_: ExpressionReader, value: float) -> Any:
    return node(nodes.Const, value=value)


def read_string(reader: ExpressionReader, value: str) -> Any:
    while reader.kinds[reader.at] == STRING:  # strings side by side are one
        value += reader.values[reader.at]
        reader.at += 1
    return node(nodes.Const, value=value)


def read_brackets(reader: ExpressionReader, _: str) -> Any:
    inside = reader.tuple_until(")")
    reader.expect(")")
    return node(nodes.Tuple, items=[], ctx="load") if inside is None else inside


def read_list(reader: ExpressionReader, _: str) -> Any:
    return node(nodes.List, items=[reader.condition() for _part in reader.parts("]")])


def read_dict(reader: ExpressionReader, _: str) -> Any:
    pairs = []
    for _part in reader.parts("}"):
        key = reader.condition()
        reader.expect(":")
        pairs.append(node(nodes.Pair, key=key, value=reader.condition()))
    return node(nodes.Dict, items=pairs)


PRIMARIES: Final[dict[str, Callable[[ExpressionReader, Any], Any]]] = {
    NAME: read_name,
    STRING: read_string,
    INTEGER: read_number,
    FLOAT: read_number,
    "(": read_brackets,
    "[": read_list,
    "{": read_dict,
}
