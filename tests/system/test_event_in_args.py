"""What an arc tells the next step about the event that fired it (NEXT-2, NEXT-4)."""

import asyncio
from pathlib import Path

import pytest
from tests.support.one_run import run_file

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: told, path: tests/told }
workflow:
  - step: start
    tool: [{ rest: { kind: noop } }]
    next: { arcs: [{ step: next, when: "{{ event.name == 'step.done' }}", args: %s }] }
  - step: next
    tool:
      - note:
          kind: noop
          spec:
            policy: { rules: [{ else: { then: { set_ctx: { told: "{{ args.told }}" } } } }] }
"""
WHOLE = {"name": "step.done", "step": "start", "result": None, "error": None, "loop": None}


@pytest.mark.rule("NEXT-4")
@pytest.mark.parametrize(
    ("args", "told"),
    [
        ('{ told: "{{ event.name }}" }', "step.done"),
        ('{ told: "{{ event }}" }', WHOLE),
        ('{ told: ["{{ event }}", 1] }', [WHOLE, 1]),
        ('{ told: "after {{ event.name }}" }', "after step.done"),
    ],
)
def test_an_arc_may_hand_on_the_event(args: str, told: object, tmp_path: Path) -> None:
    file = tmp_path / "playbook.yaml"
    file.write_text(PLAYBOOK % args)
    run, _ = asyncio.run(run_file(file, tmp_path))
    assert (run.status, run.ctx) == ("completed", {"told": told})
