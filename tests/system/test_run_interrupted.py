"""Runs that are interrupted, killed, cancelled, and how they go on."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.system.program import HELLO, NOETL, Answer, noetl
from tests.system.run_playbooks import GATED
from tests.system.running import Running, running

AT_THE_GATE = "gated | at the gate"


class Gate:
    """A playbook that stands before a pipe until the test opens it, and what it has done."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.file = folder / "gated.yaml"
        self.file.write_text(GATED)
        self.ledger = folder / "ledger"
        self.pipe = folder / "gate"
        os.mkfifo(self.pipe)

    @property
    def words(self) -> list[str | Path]:
        return ["run", self.file, "--set", f"gate={self.pipe}", "--set", f"ledger={self.ledger}"]

    def open(self) -> None:
        """Let the task go on; blocks until it stands there."""
        with self.pipe.open("w") as pipe:
            pipe.write("go\n")

    def leave_open(self) -> None:
        """From now on there is no gate."""
        self.pipe.unlink()
        self.pipe.write_text("go\n")

    def done(self) -> list[str]:
        return self.ledger.read_text().split()

    def noetl(self, *words: str) -> Answer:
        return noetl(*words, NOETL_HOME=str(self.home))


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def standing(gate: Gate) -> Iterator[Running]:
    """A run that stands at the gate."""
    with running(*gate.words, home=gate.home) as process:
        process.wait_for(AT_THE_GATE)
        yield process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_goes_on_where_it_stood(
    gate: Gate, standing: Running, number: signal.Signals
) -> None:
    standing.send(number)
    assert standing.end() == 130
    name = standing.execution_id
    assert standing.lines[-1] == f"interrupted; continue with: noetl resume {name}"
    status = gate.noetl("status", name)
    assert f"interrupted; resume with: noetl resume {name}" in status.out
    gate.leave_open()
    answer = gate.noetl("resume", name, "--json")
    assert answer.code == 0
    [told] = answer.objects()
    assert (told["execution_id"], told["status"]) == (name, "completed")
    assert told["ctx"] == {"passed": True}
    assert gate.done() == ["first", "before", "through"], "a recorded task is never run again"
    assert gate.noetl("replay", name, "--verify").code == 0


@pytest.mark.rule("TASK-9")
def test_a_killed_run_goes_on_where_it_stood(gate: Gate, standing: Running) -> None:
    standing.send(signal.SIGKILL)
    standing.end()
    name = standing.execution_id
    [told] = gate.noetl("status", name, "--json").objects()
    assert (told["status"], told["interrupted"], told["owner"]) == ("running", True, None)
    gate.leave_open()
    answer = gate.noetl("resume", name)
    assert answer.code == 0
    assert gate.done() == ["first", "before", "through"]
    assert answer.out.splitlines()[-1].startswith("completed in ")
    assert gate.noetl("replay", name, "--verify").code == 0


def test_a_second_signal_leaves_at_once(gate: Gate, standing: Running) -> None:
    for _ in range(2):
        standing.send(signal.SIGINT)
    assert standing.end() == 130
    gate.leave_open()
    assert gate.noetl("resume", standing.execution_id).code == 0


def test_json_is_empty_when_interrupted(gate: Gate) -> None:
    with running(*gate.words, "--json", home=gate.home) as process:
        process.wait_for(AT_THE_GATE)
        process.send(signal.SIGINT)
        assert process.end() == 130
        assert process.lines[-1].startswith("interrupted; continue with: noetl resume ")
        assert not [line for line in process.lines if line.startswith("{")]


def test_what_another_process_runs_cannot_be_resumed(gate: Gate, standing: Running) -> None:
    answer = gate.noetl("resume", standing.execution_id, "--json")
    assert answer.code == 3
    pid = standing.process.pid
    assert f"is run by process {pid}" in answer.objects()[0]["error"]
    gate.open()
    assert standing.end() == 0


def test_of_two_resumes_at_once_one_is_refused(gate: Gate, standing: Running) -> None:
    standing.send(signal.SIGKILL)
    standing.end()
    name = standing.execution_id
    with running("resume", name, home=gate.home) as first:
        first.wait_for(AT_THE_GATE)
        second = gate.noetl("resume", name)
        assert second.code == 3
        assert f"is run by process {first.process.pid}" in second.err
        gate.open()
        assert first.end() == 0
    again = gate.noetl("resume", name, "--json")
    assert (again.code, again.objects()[0]["status"]) == (0, "completed")
    assert gate.done() == ["first", "before", "through"]


def cancel_by_another(gate: Gate, standing: Running) -> None:
    answer = gate.noetl("cancel", standing.execution_id, "--reason", "enough")
    assert (answer.code, answer.out) == (0, f"execution {standing.execution_id}: cancelled\n")
    assert standing.end() == 1
    assert standing.lines[-1].startswith("cancelled after ")


def cancel_what_nobody_runs(gate: Gate, standing: Running) -> None:
    standing.send(signal.SIGKILL)
    standing.end()
    answer = gate.noetl("cancel", standing.execution_id, "--reason", "enough", "--json")
    assert answer.code == 0
    assert answer.objects() == [{"execution_id": standing.execution_id, "status": "cancelled"}]


@pytest.mark.rule("NEXT-8")
@pytest.mark.parametrize("cancel", [cancel_by_another, cancel_what_nobody_runs])
def test_cancel(gate: Gate, standing: Running, cancel: Callable[[Gate, Running], None]) -> None:
    cancel(gate, standing)
    name = standing.execution_id
    names = [event["name"] for event in gate.noetl("events", name, "--json").objects()]
    assert names[-1] == "playbook.processed"
    assert names.count("execution.cancelled") == 1
    assert "it was cancelled on request: enough" in gate.noetl("explain", name).out
    again = gate.noetl("resume", name, "--json")
    assert (again.code, again.objects()[0]["status"]) == (1, "cancelled")
    assert gate.noetl("cancel", name).code == 0
    assert gate.noetl("replay", name, "--verify").code == 0
    assert gate.done() == ["first", "before"]


def test_events_are_followed_to_the_end(gate: Gate, standing: Running) -> None:
    name = standing.execution_id
    with running("events", name, "--follow", "--name", "step.*", home=gate.home) as reader:
        reader.wait_for("step.started                 gated")
        gate.open()
        assert reader.end() == 0
        assert "step.done" in reader.lines[-1]
        assert "last" in reader.lines[-1]
    assert standing.end() == 0


def test_following_can_be_interrupted(gate: Gate, standing: Running) -> None:
    with running("events", standing.execution_id, "--follow", home=gate.home) as reader:
        reader.wait_for("step.done")
        reader.send(signal.SIGINT)
        assert reader.end() == 130
        assert reader.lines[-1] == "interrupted"
    gate.open()
    assert standing.end() == 0


def test_a_running_execution_says_what_it_does(gate: Gate, standing: Running) -> None:
    name = standing.execution_id
    with running("events", name, "--follow", "--name", "task.started", home=gate.home) as reader:
        reader.wait_for("task=wait")
    [told] = gate.noetl("status", name, "--json").objects()
    assert (told["interrupted"], told["owner"]) == (False, str(standing.process.pid))
    [wait] = told["waits"]
    assert (wait["step"], wait["kind"], wait["task"]) == ("gated", "task", "wait")
    assert "at task 'wait'" in gate.noetl("explain", name).out
    gate.open()
    assert standing.end() == 0


EARLY = """
import os, signal, sys

class Hook:
    def find_spec(self, name, path=None, target=None):
        if name == "noetl.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Hook())
from noetl.__main__ import start
sys.exit(start())
"""


def test_ctrl_c_while_modules_are_read_says_so_and_no_more() -> None:
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"interrupted\n")


def test_an_output_that_cannot_be_written_does_not_stop_the_run(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [NOETL, "run", HELLO],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "NOETL_HOME": str(tmp_path)},
        )
    assert done.returncode == 3
    *_, shown, last = done.stderr.splitlines()
    assert shown.startswith("progress can no longer be shown")
    assert "the execution is completed: noetl status " in last
    assert noetl("status", last.split()[-1], NOETL_HOME=str(tmp_path)).code == 0
