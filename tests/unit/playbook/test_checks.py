"""Checks over the whole playbook: what they tell, and what they leave alone."""

import json
from typing import Any

import pytest

from noetl.playbook.load import load

HEAD = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "a", "path": "b"}}
NOOP = [{"work": {"kind": "noop"}}]


def codes(document: dict[str, Any]) -> list[str]:
    return [finding.code for finding in load(json.dumps({**HEAD, **document})).findings]


def guarded(when: str, *, loop: bool) -> dict[str, Any]:
    step: dict[str, Any] = {"step": "start", "tool": NOOP}
    if loop:
        step["loop"] = {"in": [1], "iterator": "x"}
    return {"workflow": [{**step, "next": {"arcs": [{"step": "start", "when": when}]}}]}


@pytest.mark.parametrize(
    ("when", "on_step", "on_loop"),
    [
        ("{{ event.name == 'step.done' }}", 0, 1),
        ("{{ event.name == 'loop.done' }}", 1, 0),
        ("{{ event.name == 'step.failed' }}", 0, 0),
        ("{{ 'loop.done' == event.name }}", 1, 0),
        ('{{ event.name == "StepDone" }}', 0, 1),
        ("{{ event.name == 'LoopDone' }}", 1, 0),
        ("{{ event.name == 'step.exit' }}", 0, 1),
        ("{{ event.name == 'call.error' }}", 0, 0),
        ("{{ event.name == 'task.done' }}", 1, 1),
        ("{{ event.name in ['step.done', 'loop.done'] }}", 1, 1),
        ("{{ event.name == 'step.done' or event.name == 'loop.done' }}", 1, 1),
        ("{{ event.name != 'loop.done' }}", 0, 0),
        ("{{ event.error and event.step == 'loop.done' }}", 0, 0),
    ],
)
def test_guards_on_events(when: str, on_step: int, on_loop: int) -> None:
    assert codes(guarded(when, loop=False)) == ["impossible-event"] * on_step
    assert codes(guarded(when, loop=True)) == ["impossible-event"] * on_loop


@pytest.mark.rule("VAL-3")
@pytest.mark.parametrize(
    "when",
    [
        "\"{{ outcome.status == 'failed' }}\"",
        '"{{ outcome.status == \\"failed\\" }}"',
        "'{{ outcome.status == ''failed'' }}'",
        ">\n                    {{ outcome.status ==\n                    'failed' }}",
    ],
)
def test_a_status_that_no_outcome_has_is_found_however_it_is_quoted(when: str) -> None:
    text = f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: a, path: b }}
workflow:
  - step: start
    tool:
      - work:
          kind: noop
          spec:
            policy:
              rules:
              - when: "{{{{ outcome.status == 'error' and outcome.status != 'ok' }}}}"
                then: {{ do: fail }}
              - when: {when}
                then: {{ do: fail }}
"""
    assert [finding.code for finding in load(text).findings] == ["impossible-status"]


@pytest.mark.parametrize(
    ("key", "value", "suspect"),
    [
        ("password", "correct horse", True),
        ("db_password", "hunter2", True),
        ("API_KEY", "abcdef123", True),
        ("client_secret", "abcdef", True),
        ("token", "abcdef", True),
        ("password", "{{ ctx.password }}", False),
        ("password", "", False),
        ("password", None, False),
        ("max_token", 4000, False),
        ("token_url", "https://example.com/token", False),
        ("secret_name", "database", False),
        ("note", "the password is in the keychain", False),
        ("url", "https://anna:secret1@example.com/", True),
        ("url", "https://{{ ctx.user }}:{{ ctx.word }}@example.com/", False),
        ("url", "https://example.com:8080/a@b", False),
        ("key", "AKIAIOSFODNN7EXAMPLE", True),
        ("key", "-----BEGIN PRIVATE KEY-----", True),
        ("header", "Bearer abcdefghijklmnop1234", True),
        ("header", "Bearer {{ _prev }}", False),
        ("key", "ghp_" + "a1" * 18, True),
    ],
)
def test_secrets_in_the_text(key: str, value: Any, suspect: bool) -> None:
    workflow = [{"step": "start", "tool": NOOP}]
    document = {"workload": {"deep": [{key: value}]}, "workflow": workflow}
    loaded = load(json.dumps({**HEAD, **document}))
    expected = [("secret-literal", f"workload.deep[0].{key}")] if suspect else []
    found = [(one.code, one.path) for one in loaded.findings if one.code == "secret-literal"]
    assert found == expected
    assert all(str(value) not in one.message + one.hint for one in loaded.findings)


def test_every_pipeline_has_labels_of_its_own() -> None:
    jump = {"policy": {"rules": [{"when": True, "then": {"do": "jump", "to": "inner"}}]}}
    inner = [{"inner": {"kind": "noop", "spec": jump}}]
    tool = [
        {"outer": {"kind": "iterator", "in": [1], "iterator": "x", "tool": inner}},
        {"after": {"kind": "noop", "spec": jump}},
    ]
    loaded = load(json.dumps({**HEAD, "workflow": [{"step": "start", "tool": tool}]}))
    assert [(one.code, one.path) for one in loaded.findings] == [
        ("jump-target", "workflow[0].tool[1].after.spec.policy.rules[0].then.to")
    ]


def test_a_workbook_task_is_a_pipeline_of_one() -> None:
    def again(to: str) -> dict[str, Any]:
        rules = [{"when": True, "then": {"do": "jump", "to": to}}]
        return {"kind": "noop", "spec": {"policy": {"rules": rules}}}

    workflow = [{"step": "start", "tool": [{"call": {"kind": "workbook", "name": "a"}}]}]
    tasks = {"a": again("a"), "b": again("a")}
    loaded = load(json.dumps({**HEAD, "workflow": workflow, "workbook": {"tasks": tasks}}))
    assert [(one.code, one.path) for one in loaded.findings] == [
        ("jump-target", "workbook.tasks.b.spec.policy.rules[0].then.to")
    ]


def test_calls_inside_an_iterator_close_a_circle() -> None:
    def each(name: str) -> dict[str, Any]:
        inner = [{"call": {"kind": "workbook", "name": name}}]
        return {"kind": "iterator", "in": [1], "iterator": "x", "tool": inner}

    tasks = {"a": each("b"), "b": each("c"), "c": each("b")}
    workflow = [{"step": "start", "tool": NOOP}]
    loaded = load(json.dumps({**HEAD, "workflow": workflow, "workbook": {"tasks": tasks}}))
    assert [(one.code, one.message) for one in loaded.findings] == [
        ("workbook-cycle", "workbook tasks call each other in a circle: b → c → b")
    ]


def test_unreached_steps_are_told_only_where_the_arcs_are_sound() -> None:
    lost = {"step": "lost", "tool": NOOP}
    arcs = {"arcs": [{"step": "start"}]}
    assert codes({"workflow": [{"step": "start", "next": arcs}, lost]}) == ["unreachable-step"]
    broken = {"arcs": [{"step": "nowhere"}]}
    assert codes({"workflow": [{"step": "start", "next": broken}, lost]}) == ["unknown-step"]


def test_sql_is_checked_in_every_database_kind_and_nowhere_else() -> None:
    tool = [
        {"a": {"kind": "postgres", "auth": "db", "command": "SELECT {{ workload.x }}"}},
        {"b": {"kind": "duckdb", "query": "SELECT {% if workload.x %} 1 {% endif %}"}},
        {
            "c": {
                "kind": "postgres",
                "auth": "db",
                "command": "SELECT %s",
                "params": ["{{ workload.x }}"],
            }
        },
    ]
    workflow = [{"step": "start", "tool": tool}]
    loaded = load(json.dumps({**HEAD, "workload": {"x": 1}, "workflow": workflow}))
    assert [(one.code, one.path) for one in loaded.findings] == [
        ("sql-template", "workflow[0].tool[0].a.command"),
        ("sql-template", "workflow[0].tool[1].b.query"),
    ]


def test_code_is_checked_in_every_kind_that_runs_some() -> None:
    x = "{{ workload.x }}"
    tool = [
        {"a": {"kind": "shell", "command": f"echo {x}"}},
        {"b": {"kind": "shell", "command": 'echo "$X"', "env": {"X": x}}},
        {"c": {"kind": "python", "code": f"result = '{x}'"}},
        {"d": {"kind": "python", "code": "result = x", "args": {"x": x}}},
        {"e": {"kind": "script", "interpreter": "sh", "code": f"echo {x}", "args": [x]}},
        {"f": {"kind": "container", "image": "alpine", "command": f"echo {x}"}},
        {"g": {"kind": "container", "image": "alpine", "command": ["echo", x], "args": [x]}},
    ]
    workflow = [{"step": "start", "tool": tool}]
    loaded = load(json.dumps({**HEAD, "workload": {"x": 1}, "workflow": workflow}))
    assert [(one.path.rpartition(".")[0][-1], one.hint[:19]) for one in loaded.findings] == [
        ("a", "pass it: env: { NAM"),
        ("c", "pass it: args: { na"),
        ("e", "pass it: env: { NAM"),
        ("f", "pass it: env: { NAM"),
    ]
    assert {one.code for one in loaded.findings} == {"code-template"}


@pytest.mark.parametrize(("count", "told"), [(20, 20), (400, 0)])
def test_races_are_looked_for_where_that_takes_no_time(count: int, told: int) -> None:
    rules = [{"else": {"then": {"set_ctx": {"n": "{{ ctx.n | default(0) + 1 }}"}}}}]
    tool = [{"add": {"kind": "noop", "spec": {"policy": {"rules": rules}}}}]
    steps = [
        {
            "step": f"s{number}",
            "tool": tool,
            "next": {
                "spec": {"mode": "inclusive"},
                "arcs": [{"step": f"s{(number + far) % count}"} for far in (1, 7)],
            },
        }
        for number in range(count)
    ]
    assert codes({"workflow": steps}) == ["racing-write"] * told
