"""Random playbooks of an older dialect become what they mean, and keep their comments."""

import re
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.property.eval_model import Step, playbooks, written

from noetl.playbook.dialects.migrate import migrate
from noetl.playbook.load import load, load_valid
from noetl.playbook.model import Playbook


class Indented(yaml.SafeDumper):
    """Lists stand below their keys with an indent."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        del indentless
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


class Flat(Indented):
    """Lists stand below their keys without."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return yaml.SafeDumper.increase_indent(self, flow, indentless)


styles = st.fixed_dictionaries(
    {
        "Dumper": st.sampled_from([Indented, Flat]),
        "default_flow_style": st.sampled_from([False, None]),
        "indent": st.sampled_from([2, 4]),
        "default_style": st.sampled_from([None, '"', "'"]),
        "width": st.sampled_from([40, 1000]),
    }
)


def dumped(tree: Any, style: dict[str, Any]) -> str:
    return str(yaml.dump(tree, sort_keys=False, **style))


def meaning(playbook: Playbook) -> Any:
    """Everything but the places, and the order of what has none."""

    def without_places(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_places(one) for key, one in value.items() if key != "place"}
        if isinstance(value, list | tuple):
            return [without_places(one) for one in value]
        return value

    return without_places(msgspec.to_builtins(playbook))


@pytest.mark.rule("DIA-S4")
@given(playbooks(), styles)
def test_the_eval_dialect_is_translated_to_the_same_plan(
    model: tuple[Step, ...], style: dict[str, Any]
) -> None:
    wanted = load_valid(dumped(written(model, "canonical"), {}))
    older = dumped(written(model, "eval"), style)
    migrated = migrate(older)
    assert [one for one in migrated.findings if one.severity == "error"] == [], older
    assert meaning(load_valid(migrated.text)) == meaning(wanted), f"{older}\n---\n{migrated.text}"
    again = migrate(migrated.text)
    assert (again.text, again.changed) == (migrated.text, False)


@given(playbooks(), st.sampled_from([Indented, Flat]), st.data())
def test_no_comment_is_lost(model: tuple[Step, ...], dumper: Any, data: st.DataObject) -> None:
    lines = dumped(written(model, "eval"), {"Dumper": dumper, "width": 1000}).splitlines()
    chosen = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=8))
    text = ""
    for number, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip())]
        above = f"{indent}# above {number}\n" if number in chosen else ""
        beside = f"  # beside {number}" if number in chosen else ""
        text += f"{above}{line}{beside}\n"
    before = load(text)
    migrated = migrate(text)
    noted = sorted(re.findall(r"# \w+ \d+", text))
    assert sorted(re.findall(r"# \w+ \d+", migrated.text)) == noted, f"{text}\n---\n{migrated.text}"
    assert migrated.complete, (before.findings, migrated.findings)


@given(playbooks(), styles)
def test_a_canonical_text_is_left_alone(model: tuple[Step, ...], style: dict[str, Any]) -> None:
    text = dumped(written(model, "canonical"), style)
    migrated = migrate(text)
    assert (migrated.text, migrated.rewrites, migrated.changed) == (text, (), False)
