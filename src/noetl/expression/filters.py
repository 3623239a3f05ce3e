"""The filters and tests of templates: Jinja2's own, each within the limits (TPL-5)."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS as STOCK_FILTERS
from jinja2.filters import _GroupTuple
from jinja2.runtime import Undefined
from jinja2.tests import TESTS as STOCK_TESTS
from jinja2.utils import pass_context

from noetl.expression.calls import join_fits, replacement_fits, spread, turned, width_fits
from noetl.expression.costs import charge_compared, charge_number, charge_slow, charged_elements
from noetl.expression.evaluation import Evaluation
from noetl.expression.formatting import printf
from noetl.expression.limits import (
    DEEPEST_VALUE,
    LONGEST_PATH,
    MOST_BITS,
    MOST_DIGITS,
    SCALARS,
    LimitExceeded,
    bounded_integer,
    fits,
    measure,
    weight,
)
from noetl.expression.lookup import METHODS, words
from noetl.expression.operators import add, contains
from noetl.expression.output import LAZY, text
from noetl.messages.reference import Reference

Filter = Callable[..., Any]
REMOVED: Final = frozenset({"random"})  # chance: a decision must be the same when replayed


# -- filters of our own: they need no more than the evaluation ---------------------------------


def default(_: Any, value: Any, fallback: Any = "", boolean: bool = False) -> Any:
    return fallback if isinstance(value, Undefined) or (boolean and not value) else value


def length(context: Any, value: Any) -> int:
    return len(context.evaluation.body(value))


def string(context: Any, value: Any) -> str:
    return value if isinstance(value, str) else text(context.evaluation, value)


def join(context: Any, value: Any, d: str = "", attribute: str | int | None = None) -> Any:
    evaluation = context.evaluation
    parts = [evaluation.body(part) for part in turned(evaluation, value)]
    if attribute is not None:
        path = path_to(attribute)
        parts = [follow(evaluation, part, path) for part in parts]
    if context.eval_ctx.autoescape:
        return STOCK_FILTERS["join"](context.eval_ctx, parts, d)
    texts = [string(context, part) for part in parts]
    separator = string(context, d)
    join_fits(separator, texts)
    return str(separator).join(texts)


def path_to(attribute: Any) -> list[str]:
    """The steps of `attribute='a.b,c'`: few, as they are walked for each element."""
    steps = str(attribute).split(".")
    if len(steps) + str(attribute).count(",") > LONGEST_PATH:
        raise LimitExceeded(f"an attribute has more than {LONGEST_PATH} steps")
    return steps


def follow(evaluation: Evaluation, value: Any, path: list[str]) -> Any:
    for key in path:
        value = evaluation.getitem(value, int(key) if key.isdigit() else key)
    return value


def total(context: Any, value: Any, attribute: str | int | None = None, start: Any = 0) -> Any:
    evaluation = context.evaluation
    path = [] if attribute is None else path_to(attribute)
    result = start
    for part in turned(evaluation, value):
        result = add(evaluation, result, follow(evaluation, evaluation.body(part), path))
        if isinstance(result, list | tuple):
            evaluation.charge(len(result))
    return result


def attr(context: Any, value: Any, name: Any) -> Any:
    if str(name).startswith("_"):
        raise SecurityError(f"access to attribute {name!r} is not allowed")
    return context.evaluation.method(value, str(name))


def formatted(context: Any, value: Any, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        return STOCK_FILTERS["format"](value, *args, **kwargs)  # type: ignore[no-any-return]
    return printf(context.evaluation, string(context, value), kwargs or args)


def unique(
    context: Any, value: Any, case_sensitive: bool = False, attribute: str | int | None = None
) -> Any:
    """Each value once, in the order of the first ones."""
    evaluation: Evaluation = context.evaluation
    path = [] if attribute is None else path_to(attribute)
    seen: set[Any] = set()
    kept = []
    for element in turned(evaluation, value):
        mark = evaluation.whole(follow(evaluation, evaluation.body(element), path))
        if isinstance(mark, str) and not case_sensitive:
            mark = mark.lower()
        if type(mark) is int:
            charge_number(evaluation, mark)
        mark = spread(mark)
        if mark not in seen:
            seen.add(mark)
            kept.append(element)
    return evaluation.counted(kept)


def bigint(context: Any, value: Any) -> int:
    """A number for a column that holds no text: the same text always gives the same one."""
    value = context.evaluation.body(value)
    if isinstance(value, int):
        return bounded_integer(int(value))
    digest = hashlib.sha256(string(context, value).encode()).digest()
    return int.from_bytes(digest[:8]) >> 1  # of 64 bits, the first is SQL's sign


OWN: Final[Mapping[str, Filter]] = {
    "bigint": bigint,
    "default": default,
    "d": default,
    "length": length,
    "count": length,
    "string": string,
    "join": join,
    "sum": total,
    "unique": unique,
    "attr": attr,
    "format": formatted,
}

# -- what must hold before a stock filter runs -------------------------------------------------


def walked(given: "Given") -> None:
    for argument in (*given.args, *given.kwargs.values()):
        if isinstance(argument, str):
            path_to(argument)


class Given:
    """The arguments of a filter, by place or by name."""

    __slots__ = ("args", "evaluation", "kwargs", "value")

    def __init__(self, evaluation: Evaluation, value: Any, args: Any, kwargs: Any) -> None:
        self.evaluation = evaluation
        self.value = value
        self.args = args
        self.kwargs = kwargs

    def argument(self, place: int, name: str, otherwise: Any = None) -> Any:
        return self.args[place] if place < len(self.args) else self.kwargs.get(name, otherwise)

    def count(self, place: int, name: str, otherwise: int = 0) -> int:
        value = self.argument(place, name, otherwise)
        return max(value, 0) if isinstance(value, int) else 0


def wrapped_lines(given: Given) -> None:
    between = given.argument(2, "wrapstring") or "\n"
    fits(len(str(given.value)) * (1 + len(between)), "wrapped text")


def indented(given: Given) -> None:
    width = given.argument(0, "width", 4)
    step = width if isinstance(width, int) else len(str(width))
    value = str(given.value)
    fits(len(value) + (value.count("\n") + 1) * step, "indented text")


def json_indented(given: Given) -> None:
    indent = given.argument(0, "indent")
    if indent is not None and (not isinstance(indent, int) or indent > DEEPEST_VALUE):
        raise LimitExceeded(f"tojson takes an indent of at most {DEEPEST_VALUE}")


def rounded(given: Given) -> None:
    precision = given.argument(0, "precision", 0)
    if isinstance(precision, int) and abs(precision) > MOST_DIGITS:
        raise LimitExceeded(f"round takes a precision of at most {MOST_DIGITS:,}")


def quoted(given: Given) -> None:
    prices = given.evaluation.meter.prices
    if isinstance(given.value, str):
        given.evaluation.charge(fits(weight(given.value), "quoted text") // prices.quoted)
    elif prices.broad and type(given.value) not in SCALARS:
        given.evaluation.charge(measure(given.value, prices.heavy)[0] // prices.quoted)


def batched(given: Given) -> None:
    if given.argument(1, "fill_with") is not None:
        given.evaluation.charge(given.count(0, "linecount"))


def replaced(given: Given) -> None:
    replacement_fits(str(given.value), str(given.argument(0, "old")), str(given.argument(1, "new")))


def parsed_integer(given: Given) -> None:
    if isinstance(given.value, str) and len(given.value) > 2 * MOST_BITS:
        raise LimitExceeded(f"an integer would exceed {MOST_DIGITS:,} digits")


BEFORE: Final[Mapping[str, Callable[[Given], object]]] = {
    "wordwrap": wrapped_lines,
    "indent": indented,
    "tojson": json_indented,
    "round": rounded,
    "urlencode": quoted,
    "batch": batched,
    "slice": lambda given: given.evaluation.charge(given.count(0, "slices")),
    "center": lambda given: width_fits(str(given.value), given.argument(0, "width", 80)),
    "replace": replaced,
    "int": parsed_integer,
    # Where the attribute stands: always by its name, at any place, or first.
    "map": lambda given: path_to(given.kwargs.get("attribute", "")),
    **dict.fromkeys(("sort", "min", "max"), walked),
    **dict.fromkeys(
        ("selectattr", "rejectattr", "groupby"),
        lambda given: path_to(given.argument(0, "attribute", "")),
    ),
}
# They go through a sequence, each element a turn.
ITERATING: Final = frozenset(
    {
        *("batch", "dictsort", "first", "groupby", "items", "last", "list", "map", "max", "min"),
        *("reject", "rejectattr", "reverse", "select", "selectattr", "slice", "sort"),
    }
)
# They hand elements on untouched, so references inside stay references.
PASSING: Final = frozenset({"first", "last", "list", "reverse", "map", "select", "reject"})


def bounded(name: str, stock: Filter) -> Filter:
    """A stock filter that takes measured input, gives counted output, and sees our lookup."""
    passed = getattr(stock, "jinja_pass_arg", None)
    leading = passed.name if passed is not None else ""
    before = BEFORE.get(name)
    passing, iterating = name in PASSING, name in ITERATING

    def apply(context: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        evaluation: Evaluation = context.evaluation
        value = taken(evaluation, value, passing=passing, iterating=iterating)
        args = tuple(evaluation.whole(argument) for argument in args)
        charge_slow(evaluation, name, value)
        value = charged_elements(evaluation, name, value)
        if before is not None:
            before(Given(evaluation, value, args, kwargs))
        if leading == "eval_context":
            result = stock(context.eval_ctx, value, *args, **kwargs)
        elif leading:  # the environment or the context: the evaluation stands for both
            result = stock(evaluation, value, *args, **kwargs)
        else:
            result = stock(value, *args, **kwargs)
        return handed_on(evaluation, value, result)

    return apply


def taken(evaluation: Evaluation, value: Any, *, passing: bool, iterating: bool) -> Any:
    if isinstance(value, LAZY):
        return evaluation.counted(cast("Iterable[Any]", value))
    value = evaluation.body(value)
    if type(value) is int:
        charge_number(evaluation, value)
    if iterating and isinstance(value, str | list | tuple | dict | range):
        evaluation.charge(len(value))
    if passing:
        return value
    return evaluation.whole(value, 1 if iterating else evaluation.meter.prices.writing)


def handed_on(evaluation: Evaluation, value: Any, result: Any) -> Any:
    kind = type(result)
    if kind is int:
        return bounded_integer(result)
    if kind in SCALARS or kind is Reference:
        return result
    if isinstance(result, str):
        fits(len(result), "text")
        evaluation.charge_text(result)
    elif kind is list or kind is tuple:
        evaluation.charge(len(result))
    elif isinstance(result, LAZY):
        return evaluation.counted(cast("Iterable[Any]", result), below=value)
    return result


FILTERS: Final[Mapping[str, Filter]] = {
    name: pass_context(OWN[name] if name in OWN else bounded(name, stock))
    for name, stock in {**STOCK_FILTERS, **OWN}.items()
    if name not in REMOVED
}

METHODS[_GroupTuple] = words("grouper list index count")  # what `groupby` gives

# -- tests ---------------------------------------------------------------------------------------

UNTOUCHED: Final = frozenset({"defined", "undefined"})  # they look at the name, not at the value


WRITTEN: Final = frozenset({"lower", "upper"})  # they make text of whatever they get
OWN_TESTS: Final[Mapping[str, Filter]] = {
    "filter": lambda context, name: name in context.evaluation.eval_ctx.environment.filters,
    "test": lambda context, name: name in context.evaluation.eval_ctx.environment.tests,
    "in": lambda context, value, container: contains(context.evaluation, value, container),
}


def bounded_test(name: str, stock: Filter) -> Filter:
    def apply(context: Any, value: Any, *args: Any) -> Any:
        if name in UNTOUCHED:
            return stock(value, *args)
        evaluation: Evaluation = context.evaluation
        if type(value) in (dict, list, tuple, Reference) and args:
            value = evaluation.whole(value)
        elif type(value) is Reference:
            value = evaluation.body(value)
        prices = evaluation.meter.prices
        if name in WRITTEN and prices.broad:
            value = evaluation.whole(value, prices.writing)
        elif args:
            charge_compared(evaluation, value)
        return stock(value, *(evaluation.body(argument) for argument in args))

    return apply


TESTS: Final[Mapping[str, Filter]] = {
    name: pass_context(OWN_TESTS[name] if name in OWN_TESTS else bounded_test(name, stock))
    for name, stock in cast("Mapping[str, Filter]", STOCK_TESTS).items()
}


def unavailable(kind: str, name: str) -> str:
    """Why a filter or test cannot be used."""
    if name in REMOVED:
        return f"the {kind} {name!r} is not available: templates have no randomness"
    return f"there is no {kind} named {name!r}"
