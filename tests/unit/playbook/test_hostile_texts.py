"""Texts that are made to cost much, or to break who reads them: a finding each, and soon."""

import pytest

from noetl.kinds.table import KINDS
from noetl.playbook.dialects.migrate import migrate
from noetl.playbook.load import load
from noetl.playbook.visible import KeysAbove, spots

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t}\n"
TASK = "workflow: [{step: start, tool: [{a: {%s}}]}]\n"
RULE = "kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {k: %s}}}}]}}"
PLACES = {
    "an input": TASK % "kind: transform, value: %s",
    "a write": TASK % RULE,
    "a key": TASK % "kind: http, url: x, spec: {cache: {key: %s, ttl: 5}}",
    "an arc": "workflow: [{step: start, tool: [{a: {kind: noop}}], next: {arcs: [{step: start, "
    "when: %s}]}}]\n",
    "the workload": "workload: {k: %s}\n" + TASK % "kind: noop",
}
DEEP = {
    "filters": "k" + " | upper" * 3000,
    "sums": "1" + "+1" * 3000,
    "powers": "1" + "**1" * 3000,
    "conditions": "1" + " or 1" * 3000,
    "pieces": "k" + "[1:2]" * 3000,
    "calls": "k" + ".items()" * 3000,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("deep", DEEP)
def test_a_deep_template_is_a_finding_wherever_it_stands(place: str, deep: str) -> None:
    text = HEAD + PLACES[place] % f'"{{{{ {DEEP[deep]} }}}}"'
    found = load(text).findings
    assert [one.code for one in found if one.severity == "error"] == ["template-syntax"], found
    assert not migrate(text.encode()).complete


def test_many_keys_of_the_workload_are_not_copied_for_each_of_them() -> None:
    """40,000 of them took 20 seconds."""
    keys = "".join(f"  k{number}: 1\n" for number in range(1_000))
    playbook = load(f"{HEAD}{TASK % 'kind: noop'}workload:\n{keys}  last: {{a: 1}}\n").playbook
    assert playbook is not None
    seen = [
        spot.seen["workload"] for spot in spots(playbook, KINDS, {}) if spot.place == "workload"
    ]
    views = [one for one in seen if isinstance(one, KeysAbove)]
    assert len(views) == 1_001
    assert [len(one) for one in (views[0], views[500], views[-1])] == [0, 500, 1_001]
    assert ("k499" in views[500], "k500" in views[500]) == (True, False)
    assert list(views[2]) == ["k0", "k1"]
    assert views[-1]["last"] is None
