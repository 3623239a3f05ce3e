"""
`kill -9` at many points, each time followed by `noetl resume` (T3): 72, in `make faults` over 200.

The point is a fact (the n-th effect comes, or is answered; the n-th row of the log is there) or
a moment. `NOETL_TEST_SEED=n` runs one seed again.
"""

import os
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.support.deaths import told
from tests.support.disturbed import ENDS, PLAYBOOKS, child
from tests.support.ledger import Ledger, keeping
from tests.support.processes import Home, Running
from tests.support.steps import Tree, arc, loop, playbook, step, task, when
from tests.support.trial import sized

from noetl.messages import events as e

NAMES = [name for name in PLAYBOOKS if name != "patient"]
"""Long pauses are the simulation's: it has time."""
KILLS = sized(6, 18)
"""Per playbook; twelve playbooks."""
KILLS_PER_RUN = 4
MOST_IDLE = 2
"""Deaths without a recorded outcome: the third would be taken for the task's own doing (T11)."""
COMPARED = ("status", "ctx", "result", "steps")


class Story:
    """One execution with its deaths."""

    def __init__(self, name: str, folder: Path, ledger: Ledger, seed: int) -> None:
        self.chance = random.Random(f"{name} {seed}")
        self.file = folder / "playbook.yaml"
        self.file.write_text(PLAYBOOKS[name]())
        (folder / "child.yaml").write_text(child())
        self.home = Home(folder / "home")
        self.ledger = ledger
        self.kills = 0
        self.recorded: set[tuple[str, int]] = set()
        self.wrong: list[str] = []

    def run(self, kills: int) -> dict[str, Any]:
        idle = 0
        for _ in range(kills):
            before = self.recorded
            if self._die():
                break
            idle = 0 if self.recorded != before else idle + 1
            if idle == MOST_IDLE:
                break
        answer = self._start().answer()
        return {key: sorted_steps(answer[key]) for key in COMPARED}

    def _start(self) -> Running:
        """The next process: the first runs, all others resume."""
        roots = self.home.roots()
        if roots:
            return Running(self.home.folder, "resume", roots[0], "--json")
        words = ("run", self.file, "--set", f"url={self.ledger.url}", "--json")
        return Running(self.home.folder, *words)

    def _die(self) -> bool:
        """One process that is killed somewhere; True if it had ended before."""
        first = len(self.ledger.effects)
        running = self._start()
        self._arm(running, first)
        running.waits(60)
        self.ledger.came = self.ledger.went = lambda _: None
        ended = running.process.exitcode != -9
        self.kills += not ended
        again = set(self.ledger.effects[first:]) & self.recorded
        self.wrong += [f"run again though it was recorded: {effect}" for effect in again]
        self.recorded = set(self.home.recorded())
        return ended

    def _arm(self, running: Running, first: int) -> None:
        """Choose the moment of death."""
        last = first + self.chance.randint(1, 6)

        def at(number: int) -> None:
            if number >= last:
                running.kill()

        way = self.chance.choice(["comes", "went", "row", "moment"])
        if way == "comes":
            self.ledger.came = at
        elif way == "went":
            self.ledger.went = at
        elif way == "row":
            rows = self.home.decisions() + self.chance.randint(1, 8)
            while running.waits(0.002) and self.home.decisions() < rows:
                pass
            running.kill()
        else:
            running.waits(self.chance.uniform(0, 0.2))
            running.kill()

    def check(self) -> None:
        """The oracle: one end, no outcome twice, every outcome's effect happened, all follows."""
        assert self.wrong == []
        recorded = self.home.recorded()
        assert len(recorded) == len(set(recorded))
        assert set(self.ledger.effects) <= set(recorded)
        for name in self.home.names():
            ends = [type(event) for event in self.home.events(name)][-2:]
            assert ends == [e.WorkflowFinished, e.PlaybookProcessed]
            proof = Running(self.home.folder, "replay", name, "--verify")
            assert proof.ended() == 0, proof.err


def sorted_steps(value: Any) -> Any:
    """Steps are listed as they first ran; branches that run at once have no order."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "step" in value[0]:
        return sorted(value, key=lambda row: str(row["step"]))
    return value


@cache
def undisturbed(name: str, folder: Path) -> dict[str, Any]:
    with keeping() as ledger:
        story = Story(name, folder, ledger, 0)
        came = story.run(0)
        story.check()
        assert (came["status"], came["result"]["data"]) == ENDS[name]
        return came


def seeds() -> range:
    one = os.environ.get("NOETL_TEST_SEED")
    return range(int(one), int(one) + 1) if one else range(1000)


@pytest.mark.fault("T3")
@pytest.mark.rule("TASK-9", "EVT-5")
@pytest.mark.parametrize("name", NAMES)
def test_kill_and_resume_end_as_if_nothing_had_happened(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "undisturbed"
    folder.mkdir()
    expected = undisturbed(name, folder)
    kills = 0
    for seed in seeds():
        folder = tmp_path / str(seed)
        folder.mkdir()
        with told(seed), keeping() as ledger:
            story = Story(name, folder, ledger, seed)
            assert story.run(KILLS_PER_RUN) == expected
            story.check()
        kills += story.kills
        if kills >= KILLS:
            break


WRITES = """
import os
ledger = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(ledger, f"{key} {attempt}\\n".encode())
os.fsync(ledger)
if attempt < 2 and key.endswith("2"):
    raise RuntimeError("the second is always busy")
result = {"key": key, "attempt": attempt}
"""


def snakes(ledger: Path) -> str:
    """Python tasks in a parallel and in a sequential loop, each writing a line."""

    def write(label: str) -> Tree:
        again = when("outcome.status == 'error'", "retry", attempts=3)
        key = f"{label}-{{{{ iter.n }}}}"
        args = {"path": str(ledger), "key": key, "attempt": "{{ _attempt }}"}
        return task(label, "python", again, code=WRITES, args=args)

    steps = [
        step("start", write("a"), write("b"), loop=loop([1, 2, 3]), arcs=[arc("many")]),
        step("many", write("c"), write("d"), loop=loop([1, 2, 3, 4], mode="parallel", flight=2)),
    ]
    return playbook(*steps)


def lines_of(ledger: Path) -> list[str]:
    return ledger.read_text().splitlines() if ledger.exists() else []


def outcomes(home: Home) -> list[str]:
    """The lines of the ledger whose outcomes are recorded, as the log has them."""
    starts = {}
    found = []
    for name in home.names():
        for event in home.events(name):
            if isinstance(event, e.IterationStarted):
                starts[event.iteration_id] = event.index + 1
            elif isinstance(event, e.TaskDone):
                number = starts[event.task_run_id.rpartition(".")[0]]
                found.append(f"{event.task}-{number} {event.attempt}")
    return found


@pytest.mark.rule("TASK-9", "TOOL-3")
@pytest.mark.parametrize("seed", range(6))
def test_python_tasks_whose_outcome_is_recorded_never_run_again(seed: int, tmp_path: Path) -> None:
    ledger, file, home = tmp_path / "ledger", tmp_path / "playbook.yaml", Home(tmp_path / "home")
    file.write_text(snakes(ledger))
    chance, recorded = random.Random(seed), list[str]()
    with told(seed):
        for _ in range(4):
            known = len(lines_of(ledger))
            words = ("resume", home.roots()[0]) if home.roots() else ("run", file)
            running = Running(home.folder, *words)
            last = known + chance.randint(0, 6)
            while running.waits(0.001) and len(lines_of(ledger)) <= last:
                pass
            running.kill()
            running.ended()
            assert set(lines_of(ledger)[known:]) & set(recorded) == set()
            recorded = outcomes(home)
        running = Running(home.folder, "resume", home.roots()[0], "--json")
        assert running.answer()["status"] == "completed"
        done = outcomes(home)
        assert len(done) == len(set(done)) == 4 * 2 + 3 * 2 + 4
        assert set(lines_of(ledger)) == set(done)
