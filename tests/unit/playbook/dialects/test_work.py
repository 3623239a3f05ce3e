"""Migration does work that grows with the length of a text, and no faster (DIA)."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from noetl.expression.syntax import parse
from noetl.playbook.dialects import code, guards, names
from noetl.playbook.dialects.migrate import migrate
from noetl.playbook.load import load

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: long, path: tests/long }
workload: { go: true }
workflow:
"""
STEPS = {
    "public": """\
  - step: s{n}
    tool:
      kind: python
      input: {{ a: "{{{{ s{before}.n }}}}", go: "{{{{ go }}}}" }}
      code: |
        a = input_data.get('a')
        return {{"n": 1}}
    set: {{ ctx.k{n}: "{{{{ output.data.n }}}}" }}
    next: {{ arcs: [ {{ step: s{after}, when: "{{{{ s{n}.n == 1 }}}}" }} ] }}
""",
    "case": """\
  - step: s{n}
    tool: {{ kind: python, args: {{ a: "{{{{ s{before}.n }}}}" }}, code: "result = {{'n': 1}}" }}
    vars: {{ k{n}: "{{{{ result.n }}}}" }}
    case:
      - when: "{{{{ event.name == 'step.exit' and response.data.n == 1 }}}}"
        then: {{ next: [ {{ step: s{after} }} ] }}
""",
    "eval": """\
  - step: s{n}
    when: "{{{{ workload.go }}}}"
    tool:
      - one:
          kind: python
          args: {{ a: "{{{{ vars.x | default({n}) }}}}" }}
          code: result = 1
          eval:
            - expr: "{{{{ outcome.status == 'success' and workload.go != {n} }}}}"
              do: continue
              set_vars: {{ x: "{{{{ outcome.result }}}}" }}
    next:
      - step: s{after}
        when: "{{{{ vars.x == {n} }}}}"
""",
}
MOST = 7
"""Calls of migration for each call of validation; what it costs in time is less (a call of it is
smaller), and a busy machine cannot change the number."""


def calls_of(work: Callable[[], Any]) -> int:
    """How many functions of ours are called: a measure that no machine changes."""
    for cached in (parse, names.reads_of, names.tokens_of, guards.settled, code.read_code):
        cached.cache_clear()
    count = 0

    def counted(_frame: FrameType, event: str, _value: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def text_of(dialect: str, count: int) -> str:
    steps = [STEPS[dialect].format(n=n, before=max(0, n - 1), after=n + 1) for n in range(count)]
    return (
        HEAD + "".join(steps) + f"  - step: s{count}\n    tool: [ {{ one: {{ kind: noop }} }} ]\n"
    )


@pytest.mark.parametrize("dialect", STEPS)
def test_twice_the_steps_are_twice_the_work(dialect: str) -> None:
    migrate(text_of(dialect, 5))
    once = calls_of(lambda: migrate(text_of(dialect, 60)))
    twice = calls_of(lambda: migrate(text_of(dialect, 120)))
    assert twice <= once * 2.1


@pytest.mark.parametrize("dialect", STEPS)
def test_migration_is_a_few_times_the_work_of_validation(dialect: str) -> None:
    text = text_of(dialect, 60)
    made = migrate(text)
    assert made.complete
    validated = calls_of(lambda: load(made.text))
    assert calls_of(lambda: migrate(text)) <= validated * MOST
