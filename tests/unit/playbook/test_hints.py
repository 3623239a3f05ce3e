"""Hints of findings: what the author meant, or what to do."""

import pytest

from noetl.playbook.load import load

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: a, path: b }\n"


def hints(workflow: str) -> list[tuple[str, str]]:
    return [(found.code, found.hint) for found in load(HEAD + workflow).findings]


@pytest.mark.rule("VAL-2")
def test_a_task_that_is_not_indented_below_its_label() -> None:
    [found] = load(
        HEAD + "workflow:\n  - step: start\n    tool:\n      - fetch:\n        kind: noop\n"
    ).findings
    assert (found.code, found.line) == ("task-shape", 8)
    assert found.message == "'kind' is at the level of the label 'fetch', expected below it"
    assert found.hint.startswith("indent it")


@pytest.mark.rule("VAL-3")
@pytest.mark.parametrize(
    ("name", "meant"),
    [("step.fialed", "step.failed"), ("step.dne", "step.done"), ("loop.done", "step.done")],
)
def test_the_nearest_event_that_a_step_ends_in(name: str, meant: str) -> None:
    workflow = (
        "workflow:\n  - step: start\n    tool:\n      - a: { kind: noop }\n"
        f"    next: {{ arcs: [ {{ step: start, when: \"{{{{ event.name == '{name}' }}}}\" }} ] }}\n"
    )
    assert hints(workflow) == [("impossible-event", f"did you mean '{meant}'?")]


def timed(timeout: str) -> str:
    return (
        "workload: { seconds: 3 }\nworkflow:\n  - step: start\n    tool:\n"
        f'      - a: {{ kind: http, url: "http://a", spec: {{ timeout: {timeout} }} }}\n'
    )


@pytest.mark.rule("TASK-7")
@pytest.mark.parametrize(
    ("timeout", "codes"),
    [
        ('"{{ workload.seconds }}"', []),
        ('"{{ workload.secnods }}"', ["unbound-name"]),
        ('"{{ workload. }}"', ["template-syntax"]),
        ("{ total: 3 }", []),
        ("soon", ["wrong-value"]),
    ],
)
def test_a_timeout_may_be_a_template(timeout: str, codes: list[str]) -> None:
    assert [code for code, _ in hints(timed(timeout))] == codes
