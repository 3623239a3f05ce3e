"""A run that a limit holds back says who has the places and what to do (LIMIT-2)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.steps import playbook, step
from tests.support.waiting import waits
from tests.system.program import noetl
from tests.system.running import running
from tests.system.servers import NEUTRAL, node

LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "playbook": (
        {"limit": {"at_once": 1}},
        {},
        "start: place 1 in the queue: the limit of playbook 'tests/scenario' (at_once: 1) is "
        "reached; held by {holder}; wait until it ends, or end it: `noetl cancel {holder}`",
    ),
    "total": (
        {"limit": {"at_once": 1, "total": 1, "key": "{{ execution_id }}"}},
        {},
        "start: place 1 in the queue: the limit of playbook 'tests/scenario' (at_once: 1, "
        "total: 1) is reached for '{me}'; held by {holder}; wait until it ends, or end it: "
        "`noetl cancel {holder}`",
    ),
    "step": (
        {},
        {"limit": {"at_once": 1}},
        "start: place 1 in the queue: the limit of step 'start' (at_once: 1) is reached; held by "
        "{holder}; wait until it ends, or end it: `noetl cancel {holder}`",
    ),
}
"""What is limited → the spec of the executor, that of the step, and what is said."""


def limited(executor: dict[str, Any], spec: dict[str, Any]) -> str:
    return playbook(step("start", waits("w", signal="go"), **spec), executor={"spec": executor})


@pytest.mark.rule("LIMIT-2", "CLI-1")
@pytest.mark.parametrize(("executor", "spec", "said"), LIMITS.values(), ids=LIMITS)
def test_who_holds_the_places_is_named_with_what_to_do(
    executor: dict[str, Any], spec: dict[str, Any], said: str, tmp_path: Path
) -> None:
    home, file = tmp_path / "home", tmp_path / "limited.yaml"
    file.write_text(limited(executor, spec))
    with running("run", file, home=home) as first:
        first.wait_for("waits for signal 'go'")
        holder = first.execution_id
        with running("run", file, home=home) as second:
            shown = second.wait_for("the limit of")
            me = second.execution_id
            assert shown == said.format(holder=holder, me=me)
            assert noetl("cancel", holder, NOETL_HOME=str(home)).code == 0
            second.wait_for("waits for signal 'go'")
            assert noetl("signal", me, "go", NOETL_HOME=str(home)).code == 0
            assert second.end() == 0
        assert first.end() == 1


@pytest.mark.rule("LIMIT-2", "CLI-1")
def test_whoever_waits_at_a_server_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "limited.yaml"
    executor, spec, said = LIMITS["playbook"]
    file.write_text(limited(executor, spec))
    with node(tmp_path / "home") as server:
        assert server.there("register", file).code == 0
        [first] = server.there("execute", "tests/scenario", "--json").objects()
        for name, value in {**NEUTRAL, "NOETL_SERVER": server.url}.items():
            monkeypatch.setenv(name, value)
        words = ("execute", "tests/scenario", "--wait")
        with running(*words, home=server.home) as second:
            shown = second.wait_for("the limit of")
            assert shown == said.format(holder=first["execution_id"])
            assert server.there("cancel", first["execution_id"]).code == 0
            second.wait_for("waits for signal 'go'")
            assert server.there("signal", second.execution_id, "go").code == 0
            assert second.end() == 0
