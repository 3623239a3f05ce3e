"""Every word of an older dialect is told, wherever it may stand, with its replacement."""

import json
from typing import Any

import pytest

from noetl.playbook.load import load
from noetl.playbook.retired import MIGRATE, OLDER_NAMES, RETIRED, RETIRED_VALUES

HEAD = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "a", "path": "b"}}
NOOP = {"kind": "noop"}


def step(**keys: Any) -> dict[str, Any]:
    return {"workflow": [{"step": "start", "tool": [{"work": NOOP}], **keys}]}


def task(**keys: Any) -> dict[str, Any]:
    return step(tool=[{"work": {"kind": "noop", **keys}}])


def rule(**keys: Any) -> dict[str, Any]:
    return task(spec={"policy": {"rules": [keys]}})


# By block: a document in which the block holds this key.
PLACES: dict[str, Any] = {
    "playbook": lambda key: {key: 1, **step()},
    "executor": lambda key: {"executor": {key: 1}, **step()},
    "step": lambda key: step(**{key: 1}),
    "step spec": lambda key: step(spec={key: 1}),
    "task": lambda key: task(**{key: 1}),
    "task spec": lambda key: task(spec={key: 1}),
    "rule": lambda key: rule(**{key: 1}),
    "else": lambda key: rule(**{"else": {key: 1}}),
    "then": lambda key: rule(when=True, then={key: 1}),
    "loop": lambda key: step(loop={key: 1}),
    "next": lambda key: step(next={key: 1}),
    "next spec": lambda key: step(next={"arcs": [], "spec": {key: 1}}),
    "arc": lambda key: step(next={"arcs": [{key: 1}]}),
}


@pytest.mark.parametrize(
    ("block", "key"), [(block, key) for block, words in RETIRED.items() for key in words]
)
def test_an_older_word_is_told_once_and_with_its_replacement(block: str, key: str) -> None:
    loaded = load(json.dumps({**HEAD, **PLACES[block](key)}))
    expected = RETIRED[block][key]
    said = [(one.code, one.message, one.hint) for one in loaded.findings]
    assert said == [(expected.code, expected.message, expected.hint)]
    assert expected.hint.endswith(MIGRATE)
    assert f"'{key}'" in expected.message


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (rule(when=True, then={"do": "retry", "attempts": 2, "backoff": "fixed"}), "retired-word"),
        (step(loop={"in": [1], "iterator": "x", "spec": {"mode": "async"}}), "retired-word"),
        (step(tool={"kind": "noop"}), "retired-word"),
    ],
)
def test_an_older_value_is_told(document: dict[str, Any], code: str) -> None:
    (finding,) = load(json.dumps({**HEAD, **document})).findings
    known = [word for words in RETIRED_VALUES.values() for word in words.values()]
    assert (finding.code, finding.message, finding.hint) in [
        (word.code, word.message, word.hint) for word in known
    ]
    assert finding.code == code


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{{ vars.email }}", "vars"),
        ("{{ token.args.page }}", "token"),
        ("{{ loop_index + 1 }}", "loop_index"),
        ("{{ output.status }}", "output"),
        ("{{ outcome.status != 'success' }}", "outcome.status == 'success'"),
        ("{{ outcome.py.exception }}", "outcome.py.exception"),
        ("{{ ctx.vars.email }}", None),
        ("vars.email in plain text", None),
        ("{{ outcome.py.exception_type }}", None),
        ("{{ my_loop_index }}", None),
        ("{{ outcome.status == 'ok' and ctx.success }}", None),
    ],
)
def test_an_older_name_in_a_template_is_warned_of(text: str, name: str | None) -> None:
    rules = [{"else": {"then": {"set_ctx": {"a": [text], "vars": 1, "success": 1}}}}]
    task = {"kind": "python", "code": "result = 1", "spec": {"policy": {"rules": rules}}}
    document = {**HEAD, "workload": {"my_loop_index": 1}, **step(tool=[{"work": task}])}
    loaded = load(json.dumps(document))
    expected = [one.message for one in OLDER_NAMES if one.name == name]
    assert [finding.message for finding in loaded.findings] == expected
    assert loaded.playbook is not None


def test_an_older_name_that_the_workload_declares_is_the_authors_own() -> None:
    arcs = [{"step": "start", "args": {"a": "{{ vars.email }}"}}]
    document = {**HEAD, "workload": {"vars": {"email": "a"}}, **step(next={"arcs": arcs})}
    assert load(json.dumps(document)).findings == ()
