"""DIA-S4: the eval dialect becomes canonical, with the meaning that it had."""

import pytest
from tests.conformance.cases import FOLDER as PLAYBOOKS
from tests.conformance.migrations import (
    HEAD,
    Case,
    RefusedCase,
    assert_migrates,
    assert_refused,
    assert_settled,
    cases,
    refused_cases,
)
from tests.house.markdown import blocks_of
from tests.house.tree import ROOT

from noetl.playbook.dialects.migrate import migrate


@pytest.mark.rule("DIA-S4")
@pytest.mark.parametrize("case", cases("eval"), ids=str)
def test_the_eval_dialect_becomes_canonical(case: Case) -> None:
    assert_migrates(case)


@pytest.mark.rule("DIA-S4")
@pytest.mark.parametrize("case", refused_cases("eval_refused"), ids=str)
def test_what_has_no_counterpart_is_refused(case: RefusedCase) -> None:
    assert_refused(case)


@pytest.mark.rule("DIA-S4")
def test_the_complete_example_becomes_canonical() -> None:
    made = migrate((PLAYBOOKS / "older" / "eval_dialect.yaml").read_bytes())
    assert made.findings == ()
    assert_settled(made)


@pytest.mark.rule("DIA-S4")
def test_the_page_shows_what_becomes_of_its_example() -> None:
    page = ROOT / "docs" / "learn" / "migrating.md"
    before, after = [block.text for block in blocks_of(page) if block.language == "yaml"]
    rest = "- step: store\n  tool:\n    - one: { kind: noop }\n"
    head = f"{HEAD}workflow:\n"
    assert migrate(f"{head}{before}{rest}").text == f"{head}{after}{rest}"
