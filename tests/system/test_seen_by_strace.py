"""What the kernel sees of a run: syncs before answers and effects, and code in its own process."""

import pytest
from tests.support.strace import Seen, seen_in, strace
from tests.system.program import noetl

STEPS = 3
STEP = """  - step: s{n}
    tool:
      - look:
          kind: python
          code: |
            import os
            try:
                os.rmdir('/of-step-{n}')
            except OSError:
                result = 'nothing there'
"""
ARC = "    next: {{ arcs: [ {{ step: s{n} }} ] }}\n"
CALLS = ("execve", "pwrite64", "fsync", "fdatasync", "sendto", "write", "rmdir")
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: seen, path: seen }\nworkflow:\n"


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[Seen]:
    """Of `noetl run` and all that it starts, in order."""
    folder = tmp_path_factory.mktemp("seen")
    arcs = [ARC.format(n=n) for n in range(1, STEPS)]
    steps = [STEP.format(n=n) + arc for n, arc in enumerate([*arcs, ""])]
    (folder / "playbook.yaml").write_text(HEAD + "".join(steps))
    log = folder / "calls"
    traced = strace(log, *CALLS)
    home = str(folder / "home")
    answer = noetl("run", folder / "playbook.yaml", before=traced, NOETL_HOME=home)
    assert answer.code == 0, answer.err
    return seen_in(log)


def unsafe_at(calls: list[Seen], says: str, names: tuple[str, ...]) -> list[bool]:
    """For each call that says this: whether the journal had been written and not synced."""
    found, dirty = [], False
    for call in calls:
        journal = call.on_journal
        if journal and call.name in ("pwrite64", "write"):
            dirty = True
        elif call.is_sync:
            dirty = False
        elif call.name in names and says in call.rest and not journal:
            found.append(dirty)
    return found


@pytest.mark.rule("TASK-9", "EVT-3")
def test_the_order_of_each_step_is_synced_before_its_child_hears_of_it(calls: list[Seen]) -> None:
    for number in range(STEPS):
        asked = unsafe_at(calls, f"/of-step-{number}", ("sendto",))
        assert asked == [False], f"step {number}: asked once, after a sync; found {asked}"


@pytest.mark.rule("EVT-3")
def test_the_end_is_synced_before_it_is_said(calls: list[Seen]) -> None:
    assert unsafe_at(calls, "completed", ("write",)) == [False]


@pytest.mark.rule("TOOL-3")
def test_the_code_of_each_task_runs_in_a_process_of_its_own(calls: list[Seen]) -> None:
    worker = calls[0].pid
    for number in range(STEPS):
        looked = {
            call.pid
            for call in calls
            if call.name == "rmdir" and f'"/of-step-{number}"' in call.rest
        }
        assert len(looked) == 1, f"step {number} was run by {looked}"
        assert worker not in looked
