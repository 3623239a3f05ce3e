"""Loading as a whole: order, bounds, and what the model remembers."""

import pytest

from noetl.errors import PlaybookRejected
from noetl.playbook.finding import Place
from noetl.playbook.load import load, load_valid
from noetl.playbook.model import Inner, Join, Then
from noetl.playbook.reader import MOST_MERGED, MOST_SUGGESTIONS

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: case, path: tests/case }
"""
WORKFLOW = """\
workflow:
  - step: start
    tool: [ { work: { kind: noop } } ]
"""


def test_findings_are_sorted_by_place() -> None:
    text = f"{HEAD}{WORKFLOW}    nxt: 1\nworkbok: 1\nworkload: {{ b: .nan, a: '{{{{' }}\n"
    findings = load(text).findings
    assert [(one.line, one.code) for one in findings] == [
        (7, "unknown-key"),
        (8, "unknown-key"),
        (9, "number-range"),
        (9, "template-syntax"),
    ]


def test_a_valid_text_gives_the_playbook_and_keeps_its_warnings() -> None:
    text = f"{HEAD}{WORKFLOW}  - step: lost\n    tool: [ {{ work: {{ kind: noop }} }} ]\n"
    loaded = load(text)
    assert [one.code for one in loaded.findings] == ["unreachable-step"]
    assert loaded.playbook is not None
    assert load_valid(text) == loaded.playbook == load(text.encode()).playbook


@pytest.mark.parametrize(
    ("count", "template", "told"),
    [
        (1_500, "{{ a%d + }}", "more than 1,000 templates do not parse; the rest is not checked"),
        (
            700,
            "{%% set a = %d %%}",
            "templates with statements take more than 65,536 characters; the rest is not checked",
        ),
        (
            9_000,
            "{{ 1 }}{# %d #}",
            "templates of rare syntax take more than 131,072 characters; the rest is not checked",
        ),
    ],
)
def test_checking_templates_comes_to_an_end(count: int, template: str, told: str) -> None:
    values = ", ".join(f"'{template % n}'" for n in range(count))
    findings = load(f"{HEAD}{WORKFLOW}workload: {{ all: [ {values} ] }}\n").findings
    last = findings[-1]
    assert (last.code, last.line, last.message) == ("too-many-templates", 7, told)
    assert [one.code for one in findings[:-1]] == ["template-syntax"] * min(len(findings) - 1, 1000)
    assert load(f"{HEAD}{WORKFLOW}workload: {{ all: [ '{template % 1}' ] }}\n").findings[1:] == ()


@pytest.mark.parametrize(
    ("tool", "codes"),
    [
        ("{ kind: noop }", ["retired-word"]),
        ("{ work: { kind: noop } }", ["retired-word"]),  # labels, but no list: one fault
        ("{ kind: htp }", ["retired-word", "unknown-kind"]),
    ],
)
def test_a_pipeline_that_is_no_list(tool: str, codes: list[str]) -> None:
    text = f"{HEAD}workflow:\n  - step: start\n    tool: {tool}\n"
    assert [one.code for one in load(text).findings] == codes


@pytest.mark.parametrize(
    "template",
    [
        "{{ 1" + " + 1" * 100 + " }}",
        "{{ 1" + " < 1" * 100 + " }}",
        "{% for a in b %}" * 25 + "{% endfor %}" * 25,
        "{% block a %}{% endblock %}{% block a %}{% endblock %}",
    ],
)
def test_what_cannot_be_compiled_is_found(template: str) -> None:
    [finding] = load(f'{HEAD}{WORKFLOW}workload: {{ a: "{template}" }}\n').findings
    assert (finding.code, finding.line, finding.column) == ("template-syntax", 7, 16)


def test_an_invalid_text_is_refused_with_all_findings() -> None:
    with pytest.raises(PlaybookRejected, match=r"1 error$") as refused:
        load_valid("")
    assert refused.value.findings == load("").findings


def test_parts_know_their_places() -> None:
    text = f"""{HEAD}
workflow:
  - step: start
    loop: {{ in: [1], iterator: x }}
    tool:
      - work:
          kind: noop
          spec:
            policy:
              rules:
                - else: {{ then: {{ do: break }} }}
    next:
      arcs:
        - step: start
"""
    (step,) = load_valid(text).steps
    assert step.loop is not None
    assert step.router is not None
    (task,) = step.tasks
    assert task.spec.rules is not None
    places = [
        step.place,
        step.loop.place,
        task.place,
        task.spec.rules[0].place,
        step.router.place,
        step.router.arcs[0].place,
    ]
    assert places == [
        Place("workflow[0]", 6, 5),
        Place("workflow[0].loop", 7, 5),
        Place("workflow[0].tool[0].work", 9, 9),
        Place("workflow[0].tool[0].work.spec.policy.rules[0]", 14, 19),
        Place("workflow[0].next", 15, 5),
        Place("workflow[0].next.arcs[0]", 17, 11),
    ]


def test_numbers_and_templates_reach_the_model() -> None:
    text = f"""{HEAD}
workflow:
  - step: start
    spec: {{ join: {{ from: [start], mode: 1 }} }}
    tool:
      - each:
          kind: iterator
          in: "{{{{ _prev }}}}"
          iterator: x
          tool:
            - work:
                kind: noop
                spec:
                  policy:
                    rules:
                      - when: "{{{{ outcome.error }}}}"
                        then: {{ do: retry, attempts: 3.0, delay: 2, jitter: 1, set_prev: null }}
                      - when: false
                        then: {{ do: jump, to: work, delay: "{{{{ _attempt }}}}" }}
    next: {{ arcs: [ {{ step: start }} ] }}
executor: {{ spec: {{ entry_step: other }} }}
"""
    text = text.replace("workflow:", "workflow:\n  - step: other\n    next: { arcs: [] }")
    _, step = load_valid(text).steps
    assert step.join == Join(
        place=Place("workflow[1].spec.join", 9, 13), sources=("start",), mode=1
    )
    (each,) = step.tasks
    assert isinstance(each.inner, Inner)
    assert each.inner.loop.items == "{{ _prev }}"
    rules = each.inner.tasks[0].spec.rules
    assert rules is not None
    assert [rule.when for rule in rules] == ["{{ outcome.error }}", False]
    assert [rule.then for rule in rules] == [
        Then(do="retry", attempts=3, delay=2.0, jitter=1.0, set_prev=None),
        Then(do="jump", to="work", delay="{{ _attempt }}"),
    ]


def test_a_text_full_of_faults_gets_them_all_but_not_all_suggestions() -> None:
    count = 3 * MOST_SUGGESTIONS
    text = f"{HEAD}{WORKFLOW}" + "".join(f"workflo{n}: 1\n" for n in range(count))
    findings = load(text).findings
    assert len(findings) == count
    near = [one for one in findings if one.hint == "did you mean 'workflow'?"]
    assert len(near) == MOST_SUGGESTIONS


def test_defaults_that_make_too_much_are_refused_once() -> None:
    rules = ", ".join(["{ when: true, then: { do: fail } }"] * 2000)
    tasks = "".join(f"      - t{n}: {{ kind: noop }}\n" for n in range(100))
    policy = f"policy: {{ rules: [{rules}] }}"
    text = (
        f"{HEAD}executor: {{ spec: {{ defaults: {{ task: {{ {policy} }} }} }} }}\n"
        f"workflow:\n  - step: start\n    tool:\n{tasks}"
    )
    (finding,) = load(text).findings
    assert (finding.code, finding.path) == ("too-many-nodes", "executor.spec.defaults.task")
    assert str(MOST_MERGED) in finding.message


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a", "workload.a"),
        ("a-b", "workload.a-b"),
        ("a.b", 'workload["a.b"]'),
        ("a b", 'workload["a b"]'),
        ("ä", "workload.ä"),
    ],
)
def test_paths_of_keys(key: str, path: str) -> None:
    text = f'{HEAD}workload: {{ "{key}": "{{{{" }}\n{WORKFLOW}'
    (finding,) = load(text).findings
    assert finding.path == path


def test_a_fault_behind_an_alias_is_told_where_it_stands() -> None:
    text = f"{HEAD}workload:\n  a: &a [ {{ b: '{{{{' }} ]\n  c: *a\n{WORKFLOW}"
    (finding,) = load(text).findings
    assert (finding.line, finding.column, finding.path) == (5, 16, "workload.a[0].b")


def test_an_empty_block_is_as_if_it_were_left_out() -> None:
    text = f"{HEAD}keychain:\nexecutor:\nworkload:\nworkbook:\n{WORKFLOW}    spec:\n    loop:\n"
    playbook = load_valid(text + "    desc:\n    next:\n")
    assert playbook == load_valid(text) != load_valid(f"{HEAD}{WORKFLOW}")
    step = playbook.steps[0]
    assert (playbook.workload, playbook.keychain, step.loop, step.router) == ({}, (), None, None)
