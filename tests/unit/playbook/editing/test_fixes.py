"""The edits that hints describe, carried out: afterwards the finding is gone."""

import pytest
from tests.unit.playbook.editing.test_answers import TEXT

from noetl.playbook.editing.fixes import Fix, fix_of
from noetl.playbook.load import load


def edited(text: str, fix: Fix) -> str:
    lines = text.split("\n")
    row = lines[fix.line]
    lines[fix.line] = row[: fix.start] + fix.text + row[fix.end :]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("old", "new", "code", "title"),
    [
        ("url:", "ulr:", "unknown-input", "Replace 'ulr' by 'url'"),
        ("- step: end\n          a", "- step: ned\n          a", "unknown-step",
         "Replace 'ned' by 'end'"),
        ("kind: http", "kind: htpt", "unknown-kind", "Replace 'htpt' by 'http'"),
        ("do: jump", "do: jmup", "wrong-value", "Replace 'jmup' by 'jump'"),
        ("to: ask", "to: aks", "jump-target", "Replace 'aks' by 'ask'"),
        ("workload.name", "workload.nmae", "unbound-name",
         "Replace 'workload.nmae' by 'workload.name'"),
        ("name: greet", "name: 5", "wrong-type", "Replace '5' by '\"5\"'"),
        ("kind: Playbook\n", "", "missing-key", "Add 'kind'"),
        ("    next:\n", "    netx:\n", "unknown-key", "Replace 'netx' by 'next'"),
    ],
)  # fmt: skip
def test_the_fix_of_a_finding(old: str, new: str, code: str, title: str) -> None:
    text = TEXT.replace(old, new, 1)
    [finding] = [one for one in load(text).findings if one.code == code]
    fix = fix_of(finding, text.split("\n"))
    assert fix is not None
    assert fix.title == title
    assert [one.code for one in load(edited(text, fix)).findings if one.code == code] == []


def test_a_key_that_is_missing_gets_its_line() -> None:
    text = TEXT.replace("  path: examples/greet\n", "")
    [finding] = load(text).findings
    assert fix_of(finding, text.split("\n")) == Fix("Add 'path'", 3, 13, 13, "\n  path:")


def test_what_a_hint_does_not_say_is_not_guessed() -> None:
    text = TEXT.replace("kind: http", "kind: nothing-alike")
    findings = load(text).findings
    assert findings
    assert [fix_of(one, text.split("\n")) for one in findings] == [None] * len(findings)
