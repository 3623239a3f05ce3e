"""What TOOL and SCOPE ask of `transform`, in a playbook that runs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.one_run import OneRun, run_file

from noetl.kinds.table import KINDS

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: t, path: t }}
workload: {{ rows: [{{ n: 1 }}, {{ n: 2 }}] }}
workflow:
  - step: start
    tool:
      - first: {{ kind: transform, value: "{{{{ workload.rows }}}}" }}
      - second: {{ kind: transform, {second} }}
"""


def run(second: str, folder: Path) -> OneRun:
    file = folder / "playbook.yaml"
    file.write_text(TEXT.format(second=second))
    return asyncio.run(run_file(file, folder))[0]


@pytest.mark.rule("TOOL-0")
@pytest.mark.parametrize(
    ("second", "result"),
    [
        ("value: { sum: '{{ _prev | sum(attribute=\"n\") }}', rows: '{{ _prev }}' }", None),
        ('jq: "map(.n)"', [1, 2]),
        ('jq: ".[]"', [{"n": 1}, {"n": 2}]),
        ("jq: \".a\", input: { a: '{{ _prev | length }}' }", 2),
    ],
)
def test_values_are_made_from_the_one_before(second: str, result: Any, tmp_path: Path) -> None:
    whole = {"sum": 3, "rows": [{"n": 1}, {"n": 2}]}
    ran = run(second, tmp_path)
    assert (ran.status, ran.result) == ("completed", whole if result is None else result)


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize(("program", "kind"), [(".a", "template"), ("'.['", "input")])
def test_a_program_that_fails_has_its_kind(program: str, kind: str, tmp_path: Path) -> None:
    ran = run(f"jq: {program}", tmp_path)
    assert (ran.status, (ran.error or {})["kind"]) == ("failed", kind)


@pytest.mark.rule("TOOL-0")
def test_it_touches_nothing_outside() -> None:
    assert KINDS["transform"].effect is False
