"""Random playbooks of the case dialect become what they mean, and keep their comments."""

import re
from copy import deepcopy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.migrations import cases, refused_cases, whole
from tests.property.case_model import Step, playbooks, written
from tests.property.test_migration import Flat, Indented, dumped, meaning, styles

from noetl.playbook.dialects.migrate import migrate
from noetl.playbook.load import load_valid

TREES = [
    yaml.safe_load(whole(text))
    for text in (
        *(case.before for case in cases("case")),
        *(case.text for case in refused_cases("case_refused")),
    )
]
ODD: list[Any] = [None, [], {}, "x", 3, True, [None], [[]], {"a": None}, "{{ result.a }}", "{{ a"]


@pytest.mark.rule("DIA-S2")
@given(playbooks(), styles)
def test_the_case_dialect_is_translated_to_the_same_plan(
    model: tuple[Step, ...], style: dict[str, Any]
) -> None:
    wanted = load_valid(dumped(written(model, "canonical"), {}))
    older = dumped(written(model, "case"), style)
    migrated = migrate(older)
    assert [one for one in migrated.findings if one.severity == "error"] == [], older
    assert meaning(load_valid(migrated.text)) == meaning(wanted), f"{older}\n---\n{migrated.text}"
    again = migrate(migrated.text)
    assert (again.text, again.changed) == (migrated.text, False)


@given(playbooks(), st.sampled_from([Indented, Flat]), st.data())
def test_no_comment_is_lost(model: tuple[Step, ...], dumper: Any, data: st.DataObject) -> None:
    lines = dumped(written(model, "case"), {"Dumper": dumper, "width": 1000}).splitlines()
    chosen = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=8))
    text = ""
    for number, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip())]
        above = f"{indent}# above {number}\n" if number in chosen else ""
        beside = f"  # beside {number}" if number in chosen else ""
        text += f"{above}{line}{beside}\n"
    migrated = migrate(text)
    noted = sorted(re.findall(r"# \w+ \d+", text))
    assert sorted(re.findall(r"# \w+ \d+", migrated.text)) == noted, f"{text}\n---\n{migrated.text}"
    assert migrated.complete, migrated.findings


@given(playbooks(), styles)
def test_a_canonical_text_is_left_alone(model: tuple[Step, ...], style: dict[str, Any]) -> None:
    text = dumped(written(model, "canonical"), style)
    migrated = migrate(text)
    assert (migrated.text, migrated.rewrites, migrated.changed) == (text, (), False)


def places_in(tree: Any) -> list[tuple[Any, Any]]:
    """Every place of a tree: what holds it, and its key or number."""
    found: list[tuple[Any, Any]] = []
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in list(keys):
        found += [(tree, key), *places_in(tree[key])]
    return found


@given(st.data())
def test_what_is_misshapen_is_told_and_never_breaks(data: st.DataObject) -> None:
    tree = deepcopy(data.draw(st.sampled_from(TREES)))
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places_in(tree)))
        holder[key] = deepcopy(data.draw(st.sampled_from(ODD)))
    text = dumped(tree, {"Dumper": Indented, "width": 1000})
    migrated = migrate(text)
    assert all(1 <= one.line <= text.count("\n") for one in migrated.findings), text
    again = migrate(migrated.text)
    if migrated.complete:
        assert (again.text, again.changed) == (migrated.text, False), text
