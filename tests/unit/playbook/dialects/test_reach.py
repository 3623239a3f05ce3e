"""Which steps have surely run where another one begins."""

import pytest

from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.reach import Reach
from noetl.playbook.dialects.tree_reading import read_tree
from noetl.playbook.yaml_text import read_yaml

TEXT = """
workflow:
  - step: start
    next: { arcs: [ { step: fork } ] }
  - step: fork
    next:
      arcs:
        - { step: left, when: "{{ event.name == 'step.done' and workload.go }}" }
        - { step: right, when: "{{ event.name == 'step.failed' }}" }
  - step: left
    next: { arcs: [ { step: end }, { step: fork } ] }
  - step: right
    next: { arcs: [ { step: end }, { step: nowhere } ] }
  - step: end
  - step: alone
"""


def draft(text: str) -> Draft:
    return Draft(read_tree(read_yaml(text)))


@pytest.mark.parametrize(
    ("name", "reader", "certain"),
    [
        ("start", "fork", True),
        ("start", "end", True),
        ("fork", "left", True),
        ("fork", "right", False),  # which runs after its failure
        ("fork", "end", False),
        ("left", "end", False),
        ("left", "fork", False),
        ("left", "alone", True),  # which never runs
        ("start", "start", False),
    ],
)
def test_what_has_run_where_a_step_begins(name: str, reader: str, certain: bool) -> None:
    made = draft(TEXT)
    step = next(step for step in made.steps() if step.text("step") == reader)
    assert Reach(made).has_run(name, step) is certain


def test_the_first_step_is_the_one_that_the_executor_names() -> None:
    made = draft(TEXT + "executor: { spec: { entry_step: right } }\n")
    end = made.steps()[4]
    reach = Reach(made)
    assert (reach.has_run("right", end), reach.has_run("start", end)) == (True, False)


@pytest.mark.parametrize(
    ("listed", "empty"), [('"{{ workload.rows }}"', True), ("[]", True), ("[ 1 ]", False)]
)
def test_a_loop_may_run_over_nothing(listed: str, empty: bool) -> None:
    made = draft(f"workflow:\n  - step: a\n    loop: {{ in: {listed}, iterator: n }}\n")
    assert Reach(made).may_be_empty(made.steps()[0]) is empty
