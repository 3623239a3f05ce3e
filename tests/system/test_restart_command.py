"""`noetl restart` and `noetl diff` on a home, as a user runs them (RST, CLI-1)."""

from pathlib import Path
from typing import Any

import pytest
from tests.system.program import ROOT, Answer, noetl
from tests.system.servers import FAILING, node

EXAMPLE = ROOT / "examples" / "32-restart" / "playbook.yaml"


RULED = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: ruled, path: tests/ruled }
workload: { limit: 9 }
workflow:
  - step: start
    tool:
      - check:
          kind: python
          code: "result = 5"
          spec:
            policy:
              rules:
                - when: "{{ outcome.result > workload.limit }}"
                  then: { do: fail }
      - probe:
          kind: python
          code: "1 / 0"
          spec: { policy: { rules: [ { else: { then: { do: continue } } } ] } }
"""


class Home:
    """A home with executions of the example in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def noetl(self, *words: str | Path, stdin: bytes = b"") -> Answer:
        return noetl(*words, stdin=stdin, NOETL_HOME=str(self.folder / "home"))

    def failed(self) -> str:
        answer = self.noetl("run", EXAMPLE, "--json")
        assert answer.code == 1, answer.err
        return str(answer.objects()[0]["execution_id"])

    def run(self, text: str, *words: str) -> str:
        (self.folder / "own.yaml").write_text(text)
        told = self.noetl("run", self.folder / "own.yaml", *words, "--json").objects()[0]
        return str(told["execution_id"])

    def restart(self, *words: str | Path, code: int = 0) -> dict[str, Any]:
        answer = self.noetl("restart", *words, "--json")
        assert answer.code == code, answer.err
        return answer.objects()[0]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.rule("RST-1", "RST-2", "RST-4", "CLI-1")
def test_the_failed_iterations_of_a_loop_are_run_again_and_no_other(home: Home) -> None:
    old = home.failed()
    told = home.restart(old, "--set", "away=[]")
    assert told["status"] == "completed"
    assert told["ctx"]["report"] == "5 customers paid 150"
    new = str(told["execution_id"])
    started = home.noetl("events", new, "--name", "loop.iteration.started", "--json").objects()
    assert sorted(event["data"]["index"] for event in started) == [1, 4]
    assert home.noetl("replay", new, "--verify").code == 0
    assert f"restarted from {old}" in home.noetl("status", new).out
    assert home.noetl("explain", new).code == 0
    export = home.noetl("export", new, "--format", "otlp", "-o", home.folder / "spans.json")
    assert export.code == 0, export.err


@pytest.mark.rule("RST-1", "CLI-1")
def test_a_diff_shows_the_tasks_that_parted(home: Home) -> None:
    old = home.failed()
    new = str(home.restart(old, "--set", "away=[]")["execution_id"])
    answer = home.noetl("diff", old, new)
    assert answer.code == 1
    assert answer.out.splitlines() == [
        "start:1.charge",
        "  - failed: python: ConnectionError: bob cannot be reached",
        '  + ok: {"customer":"bob","euros":30}',
        "start:4.charge",
        "  - failed: python: ConnectionError: eve cannot be reached",
        '  + ok: {"customer":"eve","euros":30}',
        "report.sum_up",
        "  - did not run",
        "  + ok: null",
        "3 tasks had the same outcome, 3 did not",
    ]
    [told] = home.noetl("diff", old, new, "--json").objects()
    assert (told["same"], told["parted"]) == (3, 3)
    assert home.noetl("diff", new, new).code == 0


@pytest.mark.rule("TASK-2", "CLI-1")
def test_a_diff_tells_failed_from_ok_and_from_what_went_on(home: Home) -> None:
    """A rule may fail what the tool did well, and go on after what it did not."""
    ids = [home.run(RULED, f"--set=limit={limit}") for limit in (9, 1)]
    assert home.noetl("diff", *ids).out.splitlines() == [
        "start.check",
        "  - ok: 5",
        "  + failed: policy: rule 1 of task 'check' ordered `fail` after an ok outcome",
        "start.probe",
        "  - went on after an error: python: ZeroDivisionError: division by zero",
        "  + did not run",
        "0 tasks had the same outcome, 2 did not",
    ]


@pytest.mark.rule("RST-1", "CLI-1")
def test_tolerated_iterations_are_run_again_by_the_command_that_is_told(home: Home) -> None:
    """`--failed` is what failed the execution; the rest is named, by the one name of a place."""
    text = EXAMPLE.read_text().replace("reduce:\n", "on_failure: continue\n          reduce:\n")
    (home.folder / "tolerant.yaml").write_text(text)
    ran = home.noetl("run", home.folder / "tolerant.yaml")
    assert ran.code == 0, ran.err
    old = home.noetl("list", "--json").objects()[0]["execution_id"]
    command = f"noetl restart {old} --from start:1,4"
    assert f"run the failed iterations again: {command}" in ran.out
    assert command in home.noetl("explain", old).out
    for words in ((), ("--failed",)):
        refused = home.noetl("restart", old, *words)
        assert refused.code == 3
        assert "went on after failed iterations" in refused.err
        assert "--from start:1,4" in refused.err
    again = home.noetl(*command.split()[1:], "--set", "away=[]")
    assert again.code == 0, again.err
    assert f"restarted from {old}; runs again: start:1,4" in again.out


@pytest.mark.rule("CLI-1", "NEXT-8", "WAIT-4")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["resume", "{id}"], 1),
        (["pause", "{id}"], 1),
        (["cancel", "{id}"], 1),
        (["signal", "{id}", "paid"], 3),
        (["approve", "{id}"], 3),
    ],
)
def test_an_order_to_what_has_ended_says_so_and_what_to_do(
    words: list[str], code: int, home: Home
) -> None:
    old = home.failed()
    ended = home.noetl("status", old, "--json").objects()[0]["finished_at"]
    answer = home.noetl(*(word.format(id=old) for word in words))
    assert answer.code == code
    said = answer.out + answer.err
    assert f"execution {old} failed at {ended}: there is nothing to " in said
    assert f"run again what failed: noetl restart {old}" in said
    assert "goes on" not in said


@pytest.mark.rule("LOOP-4", "CLI-1")
def test_an_iteration_has_one_name(home: Home) -> None:
    """What a run prints is what other commands show and take."""
    ran = home.noetl("run", EXAMPLE)
    old = home.noetl("list", "--json").objects()[0]["execution_id"]
    assert "start:1: failed: python: ConnectionError: bob cannot be reached" in ran.out
    for command in ("status", "explain"):
        assert "start:1.charge (python)" in home.noetl(command, old).out
    events = home.noetl("events", old).out.splitlines()
    assert any("loop.iteration.failed" in line and " start:4 " in line for line in events)
    assert not any("index=" in line for line in events)
    everything = ran.out + home.noetl("status", old).out + home.noetl("explain", old).out
    assert "start[" not in everything


@pytest.mark.rule("RST-4")
def test_a_corrected_file_is_followed(home: Home) -> None:
    old = home.failed()
    fixed = home.folder / "fixed.yaml"
    fixed.write_text(EXAMPLE.read_text().replace("away: [bob, eve]", "away: []"))
    assert home.restart(old, "--file", fixed, code=1)["status"] == "failed"  # the workload is kept
    fixed.write_text(EXAMPLE.read_text().replace("customer in away", "customer in []"))
    assert home.restart(old, "--file", fixed)["status"] == "completed"
    fixed.write_text(EXAMPLE.read_text().replace("mode: parallel", "mode: sequential"))
    refused = home.noetl("restart", old, "--file", fixed)
    assert refused.code == 3
    assert "the loop of step 'start'" in refused.err


@pytest.mark.rule("RST-1")
def test_many_are_restarted_after_their_number_was_shown(home: Home) -> None:
    ids = [home.failed(), home.failed()]
    many = ("restart", "--failed", "--path", "examples/*", "--since", "1h", "--set", "away=[]")
    declined = home.noetl(*many, stdin=b"n\n")
    assert declined.code == 3
    assert "2 failed executions to restart: go on? (--yes does not ask)" in declined.err
    done = home.noetl(*many, "--yes", "--json")
    assert done.code == 0, done.err
    assert [told["status"] for told in done.objects()] == ["completed", "completed"]
    rows = home.noetl("list", "--json").objects()
    assert sorted(filter(None, (row["origin_execution_id"] for row in rows))) == sorted(ids)
    assert home.noetl(*many, "--yes").err == "0 failed executions to restart\n"
    other = home.noetl("restart", "--failed", "--path", "exmples/*", "--yes")
    assert other.err == "0 failed executions to restart: no execution has the path 'exmples/*'\n"


@pytest.mark.rule("RST-1", "SRV-1", "CLI-1")
def test_many_are_restarted_and_compared_at_a_server(tmp_path: Path) -> None:
    with node(tmp_path / "home") as up:
        assert up.there("register", "-", stdin=FAILING).code == 0
        old = [up.there("execute", "tests/failing", "--wait", "--json") for _ in range(2)]
        ids = sorted(answer.objects()[0]["execution_id"] for answer in old)
        many = ("restart", "--failed", "--path", "tests/*", "--since", "1h")
        declined = up.there(*many, stdin=b"n\n")
        assert "2 failed executions to restart: go on?" in declined.err
        later = up.there(*many, "--since", "2999-01-01T00:00:00Z", "--yes")
        assert later.err == "0 failed executions to restart\n"
        assert up.there(*many, "--yes", "--wait").code == 1, "they fail as before"
        rows = up.there("list", "--json").objects()
        again = {row["origin_execution_id"]: row for row in rows if row["origin_execution_id"]}
        assert sorted(again) == ids
        assert {row["status"] for row in again.values()} == {"failed"}
        pair = ("diff", ids[0], again[ids[0]]["execution_id"])
        near, there = up.here(*pair), up.there(*pair)
        assert (near.code, near.out) == (there.code, there.out)


@pytest.mark.rule("RST-4", "SRV-1")
def test_a_refused_file_does_not_enter_the_catalog(tmp_path: Path) -> None:
    """It would run at the next start of whatever its path is."""
    with node(tmp_path / "home") as up:
        assert up.there("register", "-", stdin=FAILING).code == 0
        ran = up.there("execute", "tests/failing", "--wait", "--json")
        old = ran.objects()[0]["execution_id"]
        other = tmp_path / "other.yaml"
        other.write_bytes(FAILING.replace(b"path: tests/failing", b"path: tests/other"))
        refused = up.there("restart", old, "--file", other)
        assert refused.code == 3
        assert "the file is of 'tests/other', the execution of 'tests/failing'" in refused.err
        known = [row["path"] for row in up.there("catalog", "--json").objects()]
        assert known == ["tests/failing"]
        other.write_bytes(FAILING.replace(b"exit 3", b"exit 0"))
        done = up.there("restart", old, "--file", other, "--wait")
        assert done.code == 0, done.err
        assert "other.yaml: registered, tests/failing version 2" in done.err


@pytest.mark.rule("RST-1")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody",), "no execution 'nobody'"),
        ((), "give an ID"),
        (("{id}", "--from", "start", "--failed"), "cannot both"),
        (("{id}", "--from", "nowhere"), "no step 'nowhere'"),
        (("{id}", "--path", "x"), "leave the ID out"),
        (("{id}", "--key", "k"), "needs a server"),
        (("{id}", "--version", "7"), "has no playbook"),
    ],
)
def test_what_cannot_be_restarted_is_refused(words: tuple[str, ...], said: str, home: Home) -> None:
    old = home.failed()
    answer = home.noetl("restart", *(word.format(id=old) for word in words))
    assert answer.code == 3
    assert said in answer.err
    assert len(home.noetl("list", "--json").objects()) == 1


PARENT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: parent, path: tests/parent}
workload: {bad: true}
workflow:
  - step: start
    tool: [{first: {kind: noop}}]
    next: {arcs: [{step: below}]}
  - step: below
    tool: [{ask: {kind: playbook, path: child.yaml, args: {bad: "{{ workload.bad }}"}}}]
"""
CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: tests/child}
workload: {bad: false}
workflow:
  - step: start
    tool:
      - work:
          kind: python
          args: {bad: "{{ workload.bad }}"}
          code: |
            if bad:
                raise RuntimeError("no luck")
            result = "done"
"""


@pytest.mark.rule("RST-1", "RST-3", "TOOL-1")
def test_a_parent_asks_for_a_child_of_its_own_again(home: Home) -> None:
    (home.folder / "parent.yaml").write_text(PARENT)
    (home.folder / "child.yaml").write_text(CHILD)
    [old] = home.noetl("run", home.folder / "parent.yaml", "--json").objects()
    assert old["status"] == "failed"
    new = home.restart(str(old["execution_id"]), "--set", "bad=false")
    assert new["status"] == "completed"
    done = home.noetl("events", new["execution_id"], "--name", "task.done", "--json").objects()
    assert [event["data"]["task"] for event in done] == ["ask"]
    rows = home.noetl("list", "--json").objects()
    children = {row["parent_execution_id"]: row["status"] for row in rows}
    assert children[old["execution_id"]] == "failed"
    assert children[new["execution_id"]] == "completed"
