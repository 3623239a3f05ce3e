"""Jinja2's sandbox with our lookup, limits and undefined: what runs templates with statements."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import pass_context

from noetl.errors import NeedsBody
from noetl.expression import calls, operators, output
from noetl.expression.evaluation import Evaluation
from noetl.expression.filters import FILTERS, TESTS, Filter
from noetl.expression.limits import LARGEST_VALUE, fits
from noetl.expression.lookup import GLOBALS, member, named
from noetl.expression.missing import Missing
from noetl.messages.reference import Reference

EVALUATION: Final = "$evaluation"


def touched(value: Any) -> Any:
    """Statements touch whatever they read: their result is text."""
    if type(value) is Reference:
        raise NeedsBody(value)
    return value


class ScopeView(Context):
    """How compiled statements see a scope: names as TPL-2 says, and one evaluation."""

    @property
    def evaluation(self) -> Evaluation:
        return cast(Evaluation, self.parent[EVALUATION])

    def resolve_or_missing(self, key: str) -> Any:
        if key in self.vars:
            return self.vars[key]
        return touched(named(self.evaluation.scope, Missing, key))


@pass_context
def written(context: ScopeView, value: Any) -> Any:
    return output.text(context.evaluation, value) if not isinstance(value, str) else value


def counted(context: ScopeView, values: Any, weight: int) -> Any:
    turns = calls.turned(context.evaluation, values)
    context.evaluation.charge((weight - 1) * len(turns))
    for value in turns:
        touched(value)
    return turns


COMPARED: Final = (str, list, tuple, dict)


def weighed(context: ScopeView, value: Any) -> Any:
    return context.evaluation.whole(value) if isinstance(value, COMPARED) else value


def concatenated(context: ScopeView, values: tuple[Any, ...]) -> str:
    return operators.concatenate(context.evaluation, values, bool(context.eval_ctx.autoescape))


def bounded_text(parts: Iterable[str]) -> str:
    pieces = list(parts)
    fits(sum(map(len, pieces)), "text")
    return "".join(pieces)


# Filters that only `statements.py` writes into a template; no template can spell their names.
INNER: Final[Mapping[str, Filter]] = {
    "$counted": counted,
    "$built": lambda context, value: context.evaluation.built(value),
    "$concat": concatenated,
    "$weighed": weighed,
    "$charged": lambda context, turns: context.evaluation.charge(turns),
    "$cut": lambda context, *part: operators.cut(context.evaluation, *part),
}


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of all templates: key before method, few attributes, counted turns."""

    context_class = ScopeView
    concat = staticmethod(bounded_text)
    intercepted_binops = frozenset(operators.BINARY)
    intercepted_unops = frozenset()

    def getattr(self, obj: Any, attribute: str) -> Any:
        return touched(member(obj, attribute, {}, Missing))

    def getitem(self, obj: Any, argument: Any) -> Any:
        return touched(member(obj, argument, {}, Missing))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        return operators.BINARY[operator](cast(ScopeView, context).evaluation, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("_loop_vars", None)  # what Jinja2's compiler adds for functions that ask for it
        kwargs.pop("_block_vars", None)
        return calls.call(cast(ScopeView, __context).evaluation, __obj, *args, **kwargs)


class BoundedFormatter(SandboxedFormatter):
    """`str.format` without private attributes and without huge widths."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__(evaluation)  # type: ignore[arg-type]
        self.evaluation = evaluation
        self.length = 0

    def format_field(self, value: Any, format_spec: str) -> Any:
        value = output.plain(self.evaluation, self.evaluation.whole(value), tuples=True)
        figures = "".join(sign if sign.isdigit() else " " for sign in format_spec).split()
        for figure in figures:
            fits(int(figure) if len(figure) < 9 else LARGEST_VALUE + 1, "formatted text")
        written = super().format_field(value, format_spec)
        self.evaluation.charge(1)
        self.length = fits(self.length + len(written), "formatted text")
        return written


def sandbox() -> Sandbox:
    made = Sandbox(undefined=Missing, optimized=False, finalize=written, cache_size=0)
    made.filters = {**FILTERS, **{name: pass_context(inner) for name, inner in INNER.items()}}
    made.tests = dict(TESTS)
    made.globals = dict(GLOBALS)
    return made


SANDBOX: Final = sandbox()
