"""
The everyday grammar of expressions, read several times faster than by Jinja2's own parser.

It gives the very nodes that Jinja2 gives, or it gives up (`Unusual`), and Jinja2 decides: it is a
short cut, never a second opinion. Property tests hold the two together.
"""

from collections.abc import Callable
from typing import Any, Final

from jinja2 import nodes

from noetl.expression.filters import FILTERS, TESTS
from noetl.expression.tokens import END, FLOAT, INTEGER, NAME, STRING, Unusual, tokens_from

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
    "<": "lt",
    "<=": "lteq",
    ">": "gt",
    ">=": "gteq",
}
SUMS: Final[dict[str, type]] = {"+": nodes.Add, "-": nodes.Sub}
PRODUCTS: Final[dict[str, type]] = {
    "*": nodes.Mul,
    "/": nodes.Div,
    "//": nodes.FloorDiv,
    "%": nodes.Mod,
}
SIGNS: Final[dict[str, type]] = {"-": nodes.Neg, "+": nodes.Pos}
ARGUMENT_STARTS: Final = frozenset({NAME, STRING, INTEGER, FLOAT, "[", "{"})
AFTER_A_TEST: Final = frozenset({"else", "or", "and"})
STEERING: Final = frozenset("-+")
SPECIAL: Final = ("{%", "{#", "\r")
Arguments = tuple[list[Any], list[Any], Any, Any]


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
        if self.kinds[self.at] == NAME and self.values[self.at] == word:
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

    def either(self) -> Any:
        left = self.both()
        while self.word("or"):
            left = node(nodes.Or, left=left, right=self.both())
        return left

    def both(self) -> Any:
        left = self.negation()
        while self.word("and"):
            left = node(nodes.And, left=left, right=self.negation())
        return left

    def negation(self) -> Any:
        if self.word("not"):
            return node(nodes.Not, node=self.negation())
        return self.comparison()

    def comparison(self) -> Any:
        left = self.sum()
        links = []
        while True:
            kind = self.kinds[self.at]
            if kind in COMPARISONS:
                self.at += 1
                operation = COMPARISONS[kind]
            elif kind != NAME:
                break
            elif self.word("in"):
                operation = "in"
            elif self.values[self.at] == "not" and self.values[self.at + 1] == "in":
                if self.kinds[self.at + 1] != NAME:
                    break
                self.at += 2
                operation = "notin"
            else:
                break
            links.append(node(nodes.Operand, op=operation, expr=self.sum()))
        return node(nodes.Compare, expr=left, ops=links) if links else left

    def sum(self) -> Any:
        left = self.joined()
        while self.kinds[self.at] in SUMS:
            kind = SUMS[self.kinds[self.at]]
            self.at += 1
            left = node(kind, left=left, right=self.joined())
        return left

    def joined(self) -> Any:
        first = self.product()
        if self.kinds[self.at] != "~":
            return first
        parts = [first]
        while self.kinds[self.at] == "~":
            self.at += 1
            parts.append(self.product())
        return node(nodes.Concat, nodes=parts)

    def product(self) -> Any:
        left = self.power()
        while self.kinds[self.at] in PRODUCTS:
            kind = PRODUCTS[self.kinds[self.at]]
            self.at += 1
            left = node(kind, left=left, right=self.power())
        return left

    def power(self) -> Any:
        left = self.filtered(self.signed())
        while self.kinds[self.at] == "**":
            self.at += 1
            left = node(nodes.Pow, left=left, right=self.filtered(self.signed()))
        return left

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
        if kind != NAME or name.startswith("__"):
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
            elif kind == NAME and self.values[self.at] == "is":
                self.at += 1
                value = self.test(value)
            else:
                return value

    def filter(self, value: Any) -> Any:
        name = self.expect(NAME)
        if name not in FILTERS or self.kinds[self.at] == ".":
            raise Unusual
        arguments = self.arguments() if self.kinds[self.at] == "(" else ([], [], None, None)
        return applied(nodes.Filter, value, name, arguments)

    def test(self, value: Any) -> Any:
        negated = self.word("not")
        name = self.expect(NAME)
        if name not in TESTS or self.kinds[self.at] == ".":
            raise Unusual
        arguments: Arguments = ([], [], None, None)
        kind, following = self.kinds[self.at], self.values[self.at]
        if kind == "(":
            arguments = self.arguments()
        elif kind in ARGUMENT_STARTS and not (kind == NAME and following in AFTER_A_TEST):
            if kind == NAME and following == "is":
                raise Unusual
            arguments = ([self.postfixed(self.primary())], [], None, None)
        test = applied(nodes.Test, value, name, arguments)
        return node(nodes.Not, node=test) if negated else test

    def call(self, value: Any) -> Any:
        args, kwargs, _, _ = self.arguments()
        return node(
            nodes.Call, node=value, args=args, kwargs=kwargs, dyn_args=None, dyn_kwargs=None
        )

    def arguments(self) -> Arguments:
        self.at += 1
        args: list[Any] = []
        named: list[Any] = []
        while self.kinds[self.at] != ")":
            if args or named:
                self.expect(",")
                if self.kinds[self.at] == ")":
                    break
            if self.kinds[self.at] == NAME and self.kinds[self.at + 1] == "=":
                name = self.values[self.at]
                self.at += 2
                named.append(node(nodes.Keyword, key=name, value=self.condition()))
            elif named:
                raise Unusual
            else:
                args.append(self.condition())
        self.at += 1
        if len({given.key for given in named}) != len(named):
            raise Unusual
        return args, named, None, None


def applied(kind: type, value: Any, name: str, arguments: Arguments) -> Any:
    args, kwargs, dyn_args, dyn_kwargs = arguments
    return node(
        kind,
        node=value,
        name=name,
        args=args,
        kwargs=kwargs,
        dyn_args=dyn_args,
        dyn_kwargs=dyn_kwargs,
    )


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
    parts: list[Any] = []
    while reader.kinds[reader.at] != "]":
        if parts:
            reader.expect(",")
            if reader.kinds[reader.at] == "]":
                break
        parts.append(reader.condition())
    reader.at += 1
    return node(nodes.List, items=parts)


def read_dict(reader: ExpressionReader, _: str) -> Any:
    pairs: list[Any] = []
    while reader.kinds[reader.at] != "}":
        if pairs:
            reader.expect(",")
            if reader.kinds[reader.at] == "}":
                break
        key = reader.condition()
        reader.expect(":")
        pairs.append(node(nodes.Pair, key=key, value=reader.condition()))
    reader.at += 1
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
