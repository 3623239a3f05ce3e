"""What a guard and a list of rules cost, beside stock Jinja2 in the same run."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from jinja2.sandbox import SandboxedEnvironment

from bench.figure import Figure
from bench.size import sized
from noetl.expression.template import compile_guard, compile_rules

GUARD: Final = (
    "{{ outcome.status == 'error' and outcome.http.status in [429, 500, 502, 503, 504] }}"
)
RULES: Final = (
    "{{ outcome.status == 'ok' }}",
    "{{ outcome.error.kind == 'timeout' and _attempt < 3 }}",
    GUARD,
)
SCOPE: Final[dict[str, Any]] = {
    "workload": {"url": "http://127.0.0.1"},
    "ctx": {"total": 3},
    "outcome": {"status": "error", "http": {"status": 503}, "error": {"kind": "http"}},
    "_attempt": 1,
}
REPEATS: Final = sized(15, small=1)
CALLS: Final = sized(2_000)


def figures() -> list[Figure]:
    """A guard, and three rules of which the last one matches."""
    stock = [stock_guard(rule) for rule in RULES]
    guard = compile_guard(GUARD)
    choose = compile_rules(RULES)
    return [
        compared("guard", lambda: guard(SCOPE), lambda: stock[-1](**SCOPE), target=0.2),
        compared(
            "three rules",
            lambda: choose(SCOPE),
            lambda: [expression(**SCOPE) for expression in stock],
            target=0.1,
        ),
    ]


def stock_guard(text: str) -> Callable[..., Any]:
    return SandboxedEnvironment().compile_expression(text.removeprefix("{{").removesuffix("}}"))


def compared(
    name: str, ours: Callable[[], Any], reference: Callable[[], Any], *, target: float
) -> Figure:
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(REPEATS):  # in turns, so that a busy machine slows both alike
        mine.append(microseconds(ours))
        theirs.append(microseconds(reference))
    return Figure.of(f"template: {name}", mine, theirs, target, "µs")


def microseconds(call: Callable[[], Any]) -> float:
    start = perf_counter()
    for _ in range(CALLS):
        call()
    return (perf_counter() - start) / CALLS * 1e6
