"""Whatever is loaded: findings or a playbook, never an exception (DOC-7, VAL)."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.support.searching import examples

from noetl.playbook.blocks import BLOCKS
from noetl.playbook.codes import CODES
from noetl.playbook.load import Loaded, load

ACCEPTED = sorted((Path(__file__).parents[1] / "conformance/playbooks/accepted").glob("*.yaml"))
TEXTS = [path.read_text() for path in ACCEPTED]
WORDS = sorted({word for block in BLOCKS.values() for word in block.fields})

bounded = examples(120)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([*WORDS, "{{ a.b }}", "{{", "{% if %}", "start", "noop", "http", "", "<<"])
    | st.text(max_size=8)
)
keys = st.sampled_from([*WORDS, "work", "start"]) | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=25,
)


def assert_told(loaded: Loaded) -> None:
    """What every answer of `load` must be, whatever the text was."""
    places = [(finding.line, finding.column, finding.code) for finding in loaded.findings]
    assert places == sorted(places)
    for finding in loaded.findings:
        assert finding.line >= 1
        assert finding.column >= 1
        assert finding.severity == CODES[finding.code].severity
        assert finding.message
        assert finding.hint
    errors = [finding for finding in loaded.findings if finding.severity == "error"]
    assert (loaded.playbook is None) == bool(errors)


@pytest.mark.rule("DOC-7")
@bounded
@given(st.binary(max_size=200))
def test_any_bytes(source: bytes) -> None:
    assert_told(load(source))


@pytest.mark.rule("DOC-7")
@bounded
@given(st.text(alphabet="ab:-?[]{}&*!|>'\"%@` \n\t#,.~<0", max_size=60))
def test_any_text_of_yaml_signs(source: str) -> None:
    assert_told(load(source))


@pytest.mark.rule("DOC-7")
@bounded
@given(values)
def test_any_structure(value: Any) -> None:
    assert_told(load(json.dumps(value)))


@bounded
@given(st.dictionaries(st.sampled_from(sorted(BLOCKS["playbook"].fields)), values, max_size=8))
def test_any_structure_below_the_root_keys(value: Any) -> None:
    head = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "a", "path": "b"}}
    assert_told(load(yaml.safe_dump({**head, **value})))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid playbook in which one value, wherever it stands, is another or is gone."""
    document = yaml.safe_load(draw(st.sampled_from(TEXTS)))
    node = document
    while True:
        key = draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        child = node[key]
        if isinstance(child, dict | list) and child and draw(st.integers(0, 4)):
            node = child
            continue
        if draw(st.booleans()):
            node[key] = draw(values)
        elif isinstance(node, dict):
            node[draw(keys)] = node.pop(key)
        else:
            del node[key]
        return yaml.safe_dump(document)


@bounded
@given(mutated())
def test_a_playbook_with_one_value_changed(text: str) -> None:
    assert_told(load(text))


@bounded
@given(st.sampled_from(TEXTS), st.data())
def test_a_playbook_cut_and_joined(text: str, draw: st.DataObject) -> None:
    lines = text.splitlines()
    begin = draw.draw(st.integers(0, len(lines)))
    end = draw.draw(st.integers(begin, len(lines)))
    assert_told(load("\n".join(lines[:begin] + lines[end:])))


names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@st.composite
def valid(draw: st.DrawFn) -> dict[str, Any]:
    """A playbook that is valid by its making: every step is reached from the one before it."""
    steps = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    workflow = []
    for number, name in enumerate(steps):
        labels = draw(st.lists(names, min_size=1, max_size=3, unique=True))
        later = [{"step": other} for other in steps[number + 1 : number + 2]]
        back = [{"step": draw(st.sampled_from(steps)), "when": "{{ event.error }}"}]
        workflow.append(
            {
                "step": name,
                "tool": [{label: draw(valid_task(labels))} for label in labels],
                "next": {"arcs": back + later, "spec": {"mode": "inclusive"}},
            }
        )
    head = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "a", "path": "b"}}
    spec = {"entry_step": steps[0]}
    workload = {"url": "http://localhost"}
    return {**head, "executor": {"spec": spec}, "workload": workload, "workflow": workflow}


def valid_task(labels: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    then = st.one_of(
        st.builds(lambda n: {"do": "retry", "attempts": n}, st.integers(1, 9)),
        st.builds(lambda to: {"do": "jump", "to": to}, st.sampled_from(labels)),
        st.builds(lambda name, value: {"set_ctx": {name: value}}, names, st.integers()),
        st.sampled_from([{"do": "break"}, {"do": "fail"}, {}]),
    )
    rules = st.lists(st.builds(lambda t: {"when": "{{ outcome.error }}", "then": t}, then))
    inputs = st.sampled_from(
        [
            {"kind": "noop"},
            {"kind": "http", "url": "{{ workload.url }}", "params": {"page": 1}},
            {"kind": "python", "code": "result = 1", "args": {"a": ["{{ _prev }}"]}},
            {"kind": "postgres", "auth": "db", "query": "SELECT %s", "params": [1]},
        ]
    )
    return st.builds(lambda i, r: {**i, "spec": {"policy": {"rules": r}}}, inputs, rules)


@pytest.mark.rule("VAL-1", "VAL-2")
@bounded
@given(valid())
def test_a_valid_playbook_stays_valid(document: dict[str, Any]) -> None:
    loaded = load(yaml.safe_dump(document, sort_keys=False))
    assert loaded.findings == ()
    assert loaded.document == document
    assert loaded.playbook is not None
    assert [step.name for step in loaded.playbook.steps] == [
        s["step"] for s in document["workflow"]
    ]
