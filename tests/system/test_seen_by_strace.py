"""What the kernel sees of a run: syncs before answers and effects, and code in its own process."""

import re
import shutil
from typing import NamedTuple

import pytest
from tests.system.program import noetl

WITHOUT = "strace is not installed (as root: sh tests/support/install.sh)"
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
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: seen, path: seen }\nworkflow:\n"
CALL = re.compile(r"^(?P<pid>\d+) +(?:(?P<name>\w+)\(|<\.\.\. (?P<over>\w+) resumed>)(?P<rest>.*)$")
SYNCS = ("fsync", "fdatasync")


class Seen(NamedTuple):
    """A system call of one of the processes."""

    pid: int
    name: str
    rest: str
    over: bool
    """Whether it had returned; of one in the middle of which another process was seen, later."""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[Seen]:
    """Of `noetl run` and all that it starts, in order."""
    assert shutil.which("strace"), WITHOUT
    folder = tmp_path_factory.mktemp("seen")
    arcs = [ARC.format(n=n) for n in range(1, STEPS)]
    steps = [STEP.format(n=n) + arc for n, arc in enumerate([*arcs, ""])]
    (folder / "playbook.yaml").write_text(HEAD + "".join(steps))
    seen = "trace=execve,pwrite64,fsync,fdatasync,sendto,write,rmdir"
    log = str(folder / "calls")
    strace = ("strace", "-f", "--seccomp-bpf", "-y", "-s", "4096", "-e", seen, "-o", log)
    home = str(folder / "home")
    answer = noetl("run", folder / "playbook.yaml", before=strace, NOETL_HOME=home)
    assert answer.code == 0, answer.err
    lines = (folder / "calls").read_text("utf-8", "replace").splitlines()
    found: list[Seen] = []
    begun: dict[int, str] = {}
    for line in lines:
        if match := CALL.match(line):
            pid, rest = int(match["pid"]), match["rest"]
            over = not rest.endswith("<unfinished ...>")
            if not over:
                begun[pid] = rest
            elif match["over"]:
                rest = begun.pop(pid, "") + rest
            found.append(Seen(pid, match["name"] or f"end of {match['over']}", rest, over))
    return found


def unsafe_at(calls: list[Seen], says: str, names: tuple[str, ...]) -> list[bool]:
    """For each call that says this: whether the journal had been written and not synced."""
    found, dirty = [], False
    for call in calls:
        journal = "-wal>" in call.rest
        if journal and call.name in ("pwrite64", "write"):
            dirty = True
        elif journal and call.over and call.name.rpartition(" ")[2] in SYNCS:
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
