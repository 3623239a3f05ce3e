"""Steps that can run again are found by their arcs."""

import pytest

from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.eval_vars import steps_on_circles
from noetl.playbook.dialects.tree_reading import read_tree
from noetl.playbook.yaml_text import read_yaml

CASES = {
    "a chain": ("a>b b>c c", ""),
    "a step that leads to itself": ("a>b b>b,c c", "b"),
    "a circle with a tail on either side": ("a>b b>c c>b,d d", "b c"),
    "what lies between two circles": ("a>b b>a,c c>d d>e e>d", "a b c d e"),
    "two circles that do not meet": ("a>b b>a c>d d>c e>a", "a b c d"),
    "arcs to nowhere": ("a>b,gone b>gone", ""),
}


@pytest.mark.parametrize(("arcs", "found"), CASES.values(), ids=CASES)
def test_steps_on_circles(arcs: str, found: str) -> None:
    text = "workflow:\n"
    for step in arcs.split():
        name, _, targets = step.partition(">")
        listed = "".join(f"\n      - step: {target}" for target in targets.split(",") if target)
        text += f"  - step: {name}\n    next:{listed or ' []'}\n"
    assert steps_on_circles(Draft(read_tree(read_yaml(text)))) == set(found.split())


def test_a_long_chain_takes_no_stack() -> None:
    steps = [f"  - step: s{n}\n    next:\n      - step: s{n + 1}\n" for n in range(5_000)]
    assert steps_on_circles(Draft(read_tree(read_yaml("workflow:\n" + "".join(steps))))) == set()
