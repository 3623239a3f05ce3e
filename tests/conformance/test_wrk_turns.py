"""Pipelines that wait for nothing take turns with everybody else, however long they are."""

import pytest
from tests.support.scenario import scenario
from tests.support.steps import Tree, loop, nested, noop, otherwise, step, when

from noetl.messages.codec import decode_events
from noetl.pipeline.drive import BREATH

JUMPS = 1_000
AGAIN = when(f"iter.n < {JUMPS}", "jump", to="turn", set_iter={"n": "{{ iter.n + 1 }}"})


@pytest.mark.rule("TASK-9")
@pytest.mark.parametrize(
    "tasks",
    [
        pytest.param([noop("begin", otherwise(set_iter={"n": 0})), noop("turn", AGAIN)], id="jump"),
        pytest.param(
            [noop("turn", when(f"_attempt < {JUMPS}", "retry", attempts=JUMPS, delay=0))],
            id="retry",
        ),
        pytest.param([nested("inner", loop(list(range(JUMPS))), noop("turn"))], id="nested"),
        pytest.param(
            [nested("inner", loop(list(range(JUMPS)), mode="parallel"), noop("turn"))],
            id="nested-parallel",
        ),
    ],
)
def test_a_long_pipeline_is_told_in_pieces(tasks: list[Tree]) -> None:
    """One of 30,000 task runs was one decision of 60,000 events, and the server stood still."""
    ran = scenario(step("start", *tasks)).run()
    assert ran.status == "completed"

    told = [len(decode_events(row.events)) for row in ran.rows]
    assert sum(told) > 2 * JUMPS
    assert max(told) < 5 * BREATH
