"""Iterations that run at once and write different values to one key of ctx (LOOP-5)."""

import asyncio
from pathlib import Path

import pytest
from tests.support.one_run import run_file

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: collide, path: tests/collide }
workflow:
  - step: start
"""
WRITE = """\
kind: noop, spec: { policy: { rules: [{ else: { then: { set_ctx: { x: "{{ iter.i }}" } } } }] } }"""
LOOP = f"""\
    loop: {{ in: [1, 2, 2], iterator: i, spec: {{ mode: parallel, policy: {{ exec: %s }} }} }}
    tool: [{{ write: {{ {WRITE} }} }}]
"""
INNER = f"""\
    tool:
      - each:
          kind: iterator
          in: [1, 2, 2]
          iterator: i
          spec: {{ mode: parallel }}
          tool: [{{ write: {{ {WRITE} }} }}]
"""


@pytest.mark.rule("LOOP-5")
@pytest.mark.parametrize(
    "body", [LOOP % "distributed", LOOP % "local", INNER], ids=["distributed", "local", "inner"]
)
def test_the_second_value_fails_its_iteration(body: str, tmp_path: Path) -> None:
    """Though the writes of all iterations may be reported together."""
    file = tmp_path / "playbook.yaml"
    file.write_text(HEAD + body)
    run, _ = asyncio.run(run_file(file, tmp_path))
    assert (run.status, run.ctx) == ("failed", {"x": 1})
    assert run.error is not None
    assert (run.error["kind"], run.error["index"]) == ("loop", 1)
    assert run.error["cause"]["kind"] == "ctx_conflict"
