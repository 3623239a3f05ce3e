"""The words of a document tell which dialects it speaks, and how its lists were meant."""

import pytest

from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.shapes import list_mode
from noetl.playbook.dialects.tree_reading import read_tree
from noetl.playbook.yaml_text import read_yaml

EVAL = "- one: { kind: noop, eval: [] }"
CASE = "- one: { kind: noop, sink: {} }"
PLAIN = "- one: { kind: noop }"
ARCS = "[ { step: x }, { step: y } ]"
GUARDED = "[ { step: x, when: true }, { step: y } ]"


def draft(*steps: str) -> Draft:
    text = "workflow:\n" + "".join(steps)
    return Draft(read_tree(read_yaml(text)))


def step(name: str, tool: str, more: str = "") -> str:
    return f"  - step: {name}\n    tool:\n      {tool}\n{more}"


DIALECTS = {
    "canonical": (step("a", PLAIN, "    next: { arcs: [ { step: x, when: true } ] }\n"), set()),
    "a task's eval": (step("a", EVAL), {"eval"}),
    "a step's guard": (step("a", PLAIN, "    when: true\n"), {"eval"}),
    "a mode of the step": (step("a", PLAIN, "    spec: { next_mode: inclusive }\n"), {"eval"}),
    "guarded arcs in a list": (step("a", PLAIN, f"    next: {GUARDED}\n"), {"eval"}),
    "a token in a template": (
        step("a", '- one: { kind: noop, x: "{{ token.args.a }}" }'),
        {"eval"},
    ),
    "a case": (step("a", PLAIN, "    case: []\n"), {"case"}),
    "a sink": (step("a", CASE), {"case"}),
    "one tool": ("  - step: a\n    tool: { kind: noop }\n", {"case"}),
    "output": (step("a", '- one: { kind: noop, x: "{{ output.data }}" }'), {"upstream"}),
    "a mix": (step("a", EVAL) + step("b", CASE), {"eval", "case"}),
    "a list alone": (step("a", PLAIN, f"    next: {ARCS}\n"), set()),
}


@pytest.mark.parametrize(("text", "found"), DIALECTS.values(), ids=DIALECTS)
def test_words_tell_the_dialects(text: str, found: set[str]) -> None:
    assert draft(text).dialects == found


LISTS = {
    "of the eval dialect": (step("a", EVAL, f"    next: {ARCS}\n"), "exclusive"),
    "of the case dialect": (step("a", CASE, f"    next: {ARCS}\n"), "inclusive"),
    "with guards": (step("a", CASE, f"    next: {GUARDED}\n"), "exclusive"),
    "with a mode": (
        step("a", CASE, f"    next: {ARCS}\n    spec: {{ next_mode: inclusive }}\n"),
        "exclusive",  # as far as the list goes; the mode itself is moved
    ),
    "of one arc": (step("a", CASE, "    next: [ { step: x } ]\n"), "exclusive"),
    "of names": (step("a", EVAL, "    next: [x, y]\n"), "inclusive"),
    "of one name": (step("a", CASE, "    next: [x]\n"), "exclusive"),
    "beside the eval dialect": (
        step("a", PLAIN, f"    next: {ARCS}\n") + step("b", EVAL),
        "exclusive",
    ),
    "beside the case dialect": (
        step("a", PLAIN, f"    next: {ARCS}\n") + step("b", CASE),
        "inclusive",
    ),
    "beside both": (
        step("a", PLAIN, f"    next: {ARCS}\n") + step("b", CASE) + step("c", EVAL),
        "open",
    ),
    "beside neither": (step("a", PLAIN, f"    next: {ARCS}\n"), "inclusive"),
}


@pytest.mark.parametrize(("text", "mode"), LISTS.values(), ids=LISTS)
def test_how_a_list_of_arcs_was_meant(text: str, mode: str) -> None:
    made = draft(text)
    assert list_mode(made, made.steps()[0]) == mode
