"""DIA-S2: the case dialect becomes canonical, with the meaning that it had."""

import pytest
from tests.conformance.cases import FOLDER as PLAYBOOKS
from tests.conformance.migrations import (
    Case,
    RefusedCase,
    assert_migrates,
    assert_refused,
    assert_settled,
    cases,
    refused_cases,
    whole,
)

from noetl.playbook.dialects.migrate import migrate


@pytest.mark.rule("DIA-S2")
@pytest.mark.parametrize("case", cases("case"), ids=str)
def test_the_case_dialect_becomes_canonical(case: Case) -> None:
    assert_migrates(case)


@pytest.mark.rule("DIA-S2")
@pytest.mark.parametrize("case", refused_cases("case_refused"), ids=str)
def test_what_has_no_counterpart_is_refused(case: RefusedCase) -> None:
    assert_refused(case)


@pytest.mark.rule("DIA-S2")
def test_the_complete_example_becomes_canonical() -> None:
    made = migrate((PLAYBOOKS / "older" / "case_dialect.yaml").read_bytes())
    # S2 builds its SQL by template, names no credential, and takes `user_id` from the request.
    assert [finding.code for finding in made.findings] == [
        "missing-auth",
        "sql-template",
        "unbound-name",
    ]
    assert_settled(made)


WARNED = """
workflow:
  - step: start
    args: {{ unused: 1 }}
    tool: {{ kind: {kind} }}
    vars: {{ a: 1 }}
workbook:
  - name: ask
    desc: asks
    tool: {{ kind: python, code: "result = 1" }}
"""


@pytest.mark.rule("DIA-S2")
def test_what_is_left_out_is_warned_of() -> None:
    made = migrate(whole(WARNED.format(kind='http, url: "http://127.0.0.1"')))
    assert made.complete
    assert [(one.line - 3, one.code, one.message) for one in made.findings] == [
        (4, "changed-meaning", "nothing in the step reads the argument 'unused'"),
        (9, "changed-meaning", "a task of the workbook has no description"),
    ]


MIXED = """
workflow:
  - step: eval_step
    tool:
      - one:
          kind: python
          code: result = 1
          eval:
            - else: { do: continue, set_vars: { n: "{{ outcome.result }}" } }
      - two: { kind: python, args: { n: "{{ vars.n }}" }, code: "result = n" }
    next:
      - step: case_step
        when: "{{ event.name == 'step.done' }}"
  - step: case_step
    tool: { kind: python, code: "result = {'n': 2}" }
    vars: { m: "{{ result.n }}" }
    next: [ left, right ]
  - step: left
    tool: { kind: python, args: { m: "{{ vars.m }}" }, code: "result = m" }
  - step: right
"""


@pytest.mark.rule("DIA-S2", "DIA-S4")
def test_each_step_is_read_in_its_own_dialect() -> None:
    made = migrate(whole(MIXED))
    assert made.complete, made.findings
    assert_settled(made)
    assert 'args: { n: "{{ iter.n }}" }' in made.text
    assert 'args: { m: "{{ ctx.m }}" }' in made.text
    assert made.text.count("mode: inclusive") == 1
