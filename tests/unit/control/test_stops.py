"""What a decision does with tokens after it has stopped the execution."""

import pytest
from tests.support.scenario import scenario
from tests.support.steps import arc, call, loop, step

from noetl.messages import events as e


@pytest.mark.rule("NEXT-5", "NEXT-6")
def test_a_token_that_comes_after_a_failure_in_the_same_decision_fires_nothing() -> None:
    """The first arc leads to a step that fails as it begins; the second one to a step that may."""
    ran = scenario(
        step("start", arcs=[arc("broken"), arc("work")], mode="inclusive"),
        step("broken", call("never"), loop=loop("{{ 7 }}")),
        step("work", call("work")),
        executor={"spec": {"policy": {"fail_fast": True}}},
    ).run()
    assert (ran.status, ran.labels()) == ("failed", [])
    assert ran.one(e.TokenDropped).step == "work"
    assert ran.steps["broken"] == (1, 1, "failed")
