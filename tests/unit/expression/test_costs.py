"""A turn of any filter takes about as long as one of any other: a million stay within seconds."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from noetl.errors import TemplateError
from noetl.expression.evaluation import RULES, Evaluation
from noetl.expression.filters import FILTERS
from noetl.expression.limits import MOST_TURNS
from noetl.expression.meter import METER, Meter
from noetl.expression.missing import Missing
from noetl.expression.operators import concatenate
from noetl.expression.template import compile_guard, compile_text

SIZE = 6_000
ARGUMENTS = {
    "attr": "('upper')",
    "batch": "(3, 'x')",
    "center": "(99999)",
    "format": "('a')",
    "groupby": "('a')",
    "indent": "(4, true, true)",
    "join": "(', ')",
    "map": "('upper')",
    "reject": "('none')",
    "rejectattr": "('a')",
    "replace": "('a', 'bb')",
    "round": "(2)",
    "select": "('string')",
    "selectattr": "('a')",
    "slice": "(3)",
    "truncate": "(100)",
    "wordwrap": "(20)",
}
VALUES: dict[str, Any] = {
    "letters": "a" * SIZE,
    "wide": "é€😀" * (SIZE // 3),
    "tags": "<a>" * (SIZE // 3),
    "comments": "<!--a-->" * (SIZE // 8),
    "words": "ab " * (SIZE // 3),
    "lines": "\n" * SIZE,
    "spaces": " " * SIZE,
    "links": "http://a.b " * (SIZE // 11),
    "brackets": "(" * SIZE,
    "entities": "&lt;" * (SIZE // 4),
    "integers": list(range(SIZE)),
    "numbers": [10**4000 + n for n in range(50)],
    "fractions": [n / 7 for n in range(SIZE)],
    "texts": [str(n) for n in range(SIZE)],
    "rows": [{"a": n, "b": str(n)} for n in range(SIZE // 4)],
    "mapping": {str(n): n for n in range(SIZE)},
    "lists": [[n] for n in range(SIZE)],
    "nested": [[["x"] * 10] * 10] * 200,
}
SHORTEST = 0.004
"""Seconds: what is over sooner is not worth a measurement."""
FACTOR = 30
"""How much longer a turn of a filter may take than one of an empty loop (0.1 µs)."""
LOOP = "{% for n in range(50000) %}{% set x = n %}{% endfor %}"
ATTEMPTS = 8
"""What is dear is so each time; the first may import, any may be disturbed."""


def measured(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[float, int]:
    """Seconds of the processor, and turns; refused or not."""
    turns = 0
    charge = Evaluation.charge

    def counted(evaluation: Evaluation, more: int) -> None:
        nonlocal turns
        turns += more
        charge(evaluation, more)

    evaluate = compile_text(text)
    with monkeypatch.context() as patched, unhindered():
        patched.setattr(Evaluation, "charge", counted)
        before = time.process_time()
        with suppress(TemplateError):
            evaluate({"workload": VALUES})
        return time.process_time() - before, max(turns, 1)


@contextmanager
def unhindered() -> Iterator[None]:
    """Without a collection of garbage, which other tests left and which costs no turns."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


MORE = [
    *("map('tojson')", "map('replace', 'a', 'b')", "map('batch', 2)", "map(attribute='a')"),
    *("sort(attribute='a,b')", "selectattr('a', 'gt', 3)", "unique(attribute='b')"),
    *("groupby('b')", "sum(attribute='a')", "join(', ', attribute='b')", "max(attribute='a')"),
]
"""Filters over filters, and over attributes."""


@pytest.mark.rule("TPL-5")
@pytest.mark.parametrize(
    "applied", [*(f"{name}{ARGUMENTS.get(name, '')}" for name in sorted(FILTERS)), *MORE]
)
def test_a_turn_of_a_filter_takes_no_longer_than_others(
    applied: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dear = {}
    for value in VALUES:
        text = f"{{{{ workload.{value} | {applied} }}}}"
        for _ in range(ATTEMPTS):
            seconds, turns = measured(text, monkeypatch)
            if seconds < SHORTEST:
                break
            # Beside each attempt: the processor is quicker at one moment than at another.
            empty, empty_turns = measured(LOOP, monkeypatch)
            times = seconds / turns / (empty / empty_turns)
            if times <= FACTOR:
                break
        else:
            dear[value] = f"{times:.0f} times, {turns} turns"
    assert dear == {}


@pytest.mark.rule("TPL-5")
@pytest.mark.parametrize(
    "guard",
    [
        *("workload.text is lower", "workload.list is upper", "workload.text == workload.other"),
        *("workload.text is eq(workload.other)", "workload.map.copy() == 1"),
    ],
)
def test_what_looks_at_all_of_a_value_costs_turns(guard: str) -> None:
    """A router has room for thousands of such guards: for nothing each, they stop a server."""
    text = "a" * 8_000_000
    held = {"text": text, "other": f"{text[:-1]}b", "list": [text[:9]] * 200_000}
    meter = Meter(shared=True)
    compile_guard(f"{{{{ {guard} }}}}")(
        {"workload": {**held, "map": dict.fromkeys(map(str, range(10_000)))}, METER: meter}
    )
    assert meter.turns > 500


TAGS = ["<a>" * 33_000] * 90


@pytest.mark.rule("TPL-5")
@pytest.mark.parametrize(
    "text",
    [
        "{{ workload.texts | map('striptags') | list | length }}",
        "{{ workload.texts | map('urlize') | list | length }}",
        "{{ workload.texts | map('wordwrap', 2) | list | length }}",
        "{{ workload.texts | striptags }}",
        "{{ (workload.texts | join | safe).striptags() }}",
        "{% for text in workload.texts %}{{ (text | safe).striptags() }}{% endfor %}",
        "{{ workload.numbers | map('string') | list | length }}",
        "{{ workload.rows | groupby('a') | length }}",
        "{{ workload.rows | groupby('a.b') | map(attribute='list') | list | length }}",
    ],
)
def test_what_is_slow_is_stopped_by_its_cost(text: str) -> None:
    evaluate = compile_text(text)
    numbers, rows = [10**4000] * (MOST_TURNS // 99), [{"a": {"b": n}} for n in range(99_999)]
    scope = {"workload": {"texts": TAGS, "numbers": numbers, "rows": rows}}
    with pytest.raises(TemplateError, match=r"would take more than|takes at most|would exceed"):
        evaluate(scope)


@pytest.mark.parametrize(
    ("texts", "turns"),
    [
        (("a" * 300, "b" * 300), 1 + 600 // 250),
        (("é" * 300, "b" * 300), 1 + (4 * 300 + 300) // 250),
        (("", ""), 1),
    ],
)
def test_joined_texts_cost_what_each_of_them_weighs(texts: tuple[str, ...], turns: int) -> None:
    meter = Meter(shared=True)
    evaluation = Evaluation({METER: meter}, Missing, RULES)
    assert concatenate(evaluation, texts) == "".join(texts)
    assert meter.turns == turns
