"""Generated Python code: its lines, its variables, and the function they make (TPL-4)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType
from typing import Any, Final

from jinja2 import nodes
from jinja2.exceptions import UndefinedError
from jinja2.runtime import Undefined

from noetl.errors import TemplateFault
from noetl.expression import calls, lookup, operators, output
from noetl.expression.evaluation import RULES, Evaluation
from noetl.expression.failure import failure
from noetl.expression.limits import DEEPEST_TEMPLATE, SCALARS
from noetl.expression.missing import NO_ELSE, Missing
from noetl.expression.remembered import remembered
from noetl.messages.reference import Reference

PATHS = nodes.Name | nodes.Getattr | nodes.Getitem
FORWARDING = nodes.CondExpr | nodes.Filter | nodes.Call | nodes.And | nodes.Or


def settled(scope: Mapping[str, Any], value: Any) -> Any:
    """What a path led to, if it is no plain value at first sight: an error, a number, a lazy."""
    return output.handed_out(Evaluation(scope, Missing, RULES), value)


# What the generated code may call, by the name it uses.
RUNTIME: Final[dict[str, Any]] = {
    "NO_ELSE": NO_ELSE,
    "PLAIN": frozenset({*SCALARS - {float}, str, list, dict, Reference}),
    "R": Reference,
    "Undefined": Undefined,
    "UndefinedError": UndefinedError,
    "body_of": lookup.body_of,
    "call": calls.call,
    "comparable": operators.comparable,
    "concatenate": operators.concatenate,
    "contains": operators.contains,
    "cut": operators.cut,
    "failure": failure,
    "member": lookup.member,
    "named": lookup.named,
    "handed_out": output.handed_out,
    "settled": settled,
    "turned": calls.turned,
    "walk": lookup.walk,
    "missing": Missing,
}
PER_EVALUATION: Final = (
    "e"  # the variable that holds the Evaluation, made only if something needs it
)

ROOM: Final = 1_000_000  # characters of code that is kept compiled

Visitor = Callable[["FunctionWriter", Any], str]


@remembered(ROOM)
def compiled(source: str) -> CodeType:
    """Playbooks have most guards in common: the same lines are compiled once."""
    return compile(source, "<template>", "exec")


class FunctionWriter:
    """
    Collects the lines of one function. Every subexpression becomes a variable or a literal, so
    that the code stays flat; what is evaluated only at times stands below an `if`.
    """

    def __init__(self, visitors: Mapping[type, Visitor], *, lenient: bool) -> None:
        self.visitors = visitors
        self.lines: list[str] = []
        self.names: dict[str, Any] = dict(RUNTIME)
        self.lenient = lenient  # a guard, for which null has no order
        self.depth = 1
        self.variables = 0
        self.levels = 0
        self.loaded: dict[tuple[Any, ...], str] = {}  # paths whose variable is surely set
        self.evaluates = False
        self.risky = False  # may it raise UndefinedError?

    # -- lines and variables ---------------------------------------------------------------

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def variable(self) -> str:
        self.variables += 1
        return f"v{self.variables}"

    def keep(self, code: str) -> str:
        """A variable that holds what `code` gives."""
        name = self.variable()
        self.write(f"{name} = {code}")
        return name

    def bind(self, value: Any) -> str:
        """A name by which the code reaches a Python object."""
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def evaluation(self) -> str:
        self.evaluates = True
        self.risky = True
        return PER_EVALUATION

    @contextmanager
    def under(self, line: str) -> Iterator[None]:
        """Lines that run only at times: what they load is not surely loaded after them."""
        self.write(line)
        self.depth += 1
        before = dict(self.loaded)
        yield
        self.loaded = before
        self.depth -= 1

    def function(self, name: str) -> Any:
        """Compile what was written."""
        head = [f"def {name}(s):"]
        if self.evaluates:
            self.names["Evaluation"] = Evaluation
            self.names["RULES"] = RULES
            head.append(f"    {PER_EVALUATION} = Evaluation(s, missing, RULES)")
        source = "\n".join([*head, *self.lines])
        scope = dict(self.names)
        exec(compiled(source), scope)
        return scope[name]

    # -- expressions -----------------------------------------------------------------------

    def value(self, node: nodes.Node) -> str:
        """The variable or literal that holds the value of `node`."""
        self.levels += 1
        if self.levels > DEEPEST_TEMPLATE:
            raise TemplateFault(f"the template is nested deeper than {DEEPEST_TEMPLATE} levels")
        written = self.visitors[type(node)](self, node)
        self.levels -= 1
        return written

    def values(self, nodes: Iterable[nodes.Node]) -> str:
        """Those of several, each with a comma after it."""
        return "".join([f"{self.value(node)}, " for node in nodes])

    def touched(self, node: nodes.Node) -> str:
        """Like `value`, with the body of a reference in its place."""
        name = self.value(node)
        if isinstance(node, PATHS | FORWARDING) and name.isidentifier():
            self.write(f"if {name}.__class__ is R: {name} = body_of(s, {name})")
        return name

    def arguments(self, node: Any) -> str:
        """The arguments of a call, a filter or a test, each with a comma before it."""
        parts = [self.value(argument) for argument in node.args]
        if node.dyn_args is not None:
            parts.append(f"*turned({self.evaluation()}, {self.value(node.dyn_args)})")
        parts += [f"**{{{kw.key!r}: {self.value(kw.value)}}}" for kw in node.kwargs]
        if node.dyn_kwargs is not None:
            parts.append(f"**{self.touched(node.dyn_kwargs)}")
        return "".join(f", {part}" for part in parts)
