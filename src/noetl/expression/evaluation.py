"""One evaluation of one template: its counted turns, its loaded bodies, its undefined."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from jinja2.exceptions import TemplateRuntimeError
from jinja2.nodes import EvalContext

from noetl.expression.limits import (
    CHARACTERS_PER_TURN,
    SCALARS,
    WEIGHT_OF_A_NODE,
    fits,
    measure,
    weight,
)
from noetl.expression.lookup import attribute, body_of, member
from noetl.expression.meter import METER, Meter
from noetl.expression.missing import Missing
from noetl.messages.reference import Reference

CONTAINERS: Final = frozenset({dict, list, tuple})
DEEPEST_LAZY: Final = 30


class Rules(EvalContext):
    """How filters escape: not at all. The environment is there for the few that ask for it."""

    def __init__(self) -> None:
        self.autoescape = self.volatile = False

    def __getattr__(self, name: str) -> Any:
        if name != "environment":
            raise AttributeError(name)
        from noetl.expression.sandbox import SANDBOX

        self.environment = SANDBOX
        return SANDBOX


RULES: Final = Rules()


class ChargedSequence:
    """A lazy sequence whose turns are charged as they are taken."""

    __slots__ = ("depth", "evaluation", "size", "values")

    def __init__(self, evaluation: "Evaluation", values: Iterable[Any], depth: int) -> None:
        self.evaluation = evaluation
        self.values = iter(values)
        self.depth = depth  # how many lazies stand on one another: Python's stack is finite
        self.size = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        value = next(self.values)
        self.evaluation.charge(1)
        if isinstance(value, str):
            self.size += len(value)
        elif type(value) in CONTAINERS:
            self.size += WEIGHT_OF_A_NODE * len(value)
        fits(self.size, "a sequence")
        return value


class Evaluation:
    """
    Stock filters see it in the place of Jinja2's environment and of its context, so that what
    they look up goes through our lookup and what they iterate is counted.
    """

    __slots__ = ("eval_ctx", "meter", "scope", "undefined")
    is_async = False

    def __init__(
        self, scope: Mapping[str, Any], undefined: type[Missing], eval_ctx: EvalContext
    ) -> None:
        self.scope = scope
        self.undefined = undefined
        self.eval_ctx = eval_ctx
        meter: Meter | None = scope.get(METER)
        self.meter = Meter() if meter is None else meter.of_evaluation()

    @property
    def evaluation(self) -> "Evaluation":
        return self

    @property
    def environment(self) -> "Evaluation":
        return self

    @property
    def policies(self) -> dict[str, Any]:
        return self.eval_ctx.environment.policies

    @property
    def newline_sequence(self) -> str:
        return self.eval_ctx.environment.newline_sequence

    def charge(self, turns: int) -> None:
        meter = self.meter
        meter.turns += turns
        if meter.turns > meter.most:
            meter.exceed()

    def charge_text(self, text: str) -> None:
        """Working through a text, or making it."""
        self.charge(1 + weight(text) // CHARACTERS_PER_TURN)

    def getitem(self, value: Any, key: Any) -> Any:
        """Asked by filters, for each element and step of their `attribute`."""
        self.charge(self.meter.prices.member)
        return member(value, key, self.scope, self.undefined)

    def getattr(self, value: Any, name: str) -> Any:
        return member(value, name, self.scope, self.undefined)

    def method(self, value: Any, name: str) -> Any:
        return attribute("", self.body(value), name, self.undefined)

    def body(self, value: Any) -> Any:
        return body_of(self.scope, value) if type(value) is Reference else value

    def whole(self, value: Any, times: int = 1) -> Any:
        """`value` with the bodies of all references inside, measured and charged."""
        if type(value) in SCALARS:
            return value
        if isinstance(value, str):
            fits(len(value), "text")
            self.charge_text(value)
            return value
        value = self.body(value)
        references = charge_size(self, value, times)
        return self.filled(value) if references else value

    def built(self, value: Any) -> Any:
        """A container that the template has just built: measured, else as it is."""
        if type(value) in CONTAINERS:
            charge_size(self, value)
        return value

    def search(self, element: Any, container: Any) -> None:
        """Comparing `element` with everything in a list: a turn each, more if it is large."""
        times = 1
        if isinstance(element, str):
            times += weight(element) // CHARACTERS_PER_TURN
        elif type(element) in CONTAINERS:
            prices = self.meter.prices
            times += measure(element, prices.heavy)[0] // (WEIGHT_OF_A_NODE * prices.nodes)
        self.charge(times * len(container))

    def filled(self, value: Any) -> Any:
        """A copy with each reference replaced by its body."""
        value = self.body(value)
        if type(value) is dict:
            return {key: self.filled(child) for key, child in value.items()}
        if type(value) is list or type(value) is tuple:
            return type(value)(self.filled(child) for child in value)
        return value

    def counted(self, values: Iterable[Any], below: Any = None) -> "ChargedSequence":
        """
        The values one by one, each a turn, and together no larger than a value may be. They draw on
        `below`, if that is lazy too; a tall pile of lazies is taken down by listing it.
        """
        source = values if below is None else below
        depth = source.depth + 1 if type(source) is ChargedSequence else 0
        if depth > DEEPEST_LAZY:
            values, depth = self.listed(values), 0
        return ChargedSequence(self, values, depth)

    def listed(self, values: Iterable[Any]) -> list[Any]:
        return list(ChargedSequence(self, values, 0))

    def call_filter(self, name: str, value: Any, args: Any, kwargs: Any, context: Any) -> Any:
        return self.applied("filter", self.eval_ctx.environment.filters, name)(
            context, value, *args, **kwargs
        )

    def call_test(self, name: str, value: Any, args: Any, kwargs: Any, context: Any) -> Any:
        return self.applied("test", self.eval_ctx.environment.tests, name)(
            context, value, *args, **kwargs
        )

    def applied(self, kind: str, known: Mapping[str, Any], name: str) -> Any:
        """The filter or test that a name given as a value means."""
        self.charge(1)
        if name not in known or name.startswith("$"):
            raise TemplateRuntimeError(f"No {kind} named {name!r} found.")
        return known[name]


def charge_size(evaluation: Evaluation, value: Any, times: int = 1) -> bool:
    """Charge what it takes to go through a value so many times; does it hold references?"""
    prices = evaluation.meter.prices
    size, references = measure(value, prices.heavy)
    evaluation.charge(times * (1 + size // (WEIGHT_OF_A_NODE * prices.nodes)))
    return references
