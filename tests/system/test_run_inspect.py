"""The commands that look at executions: list, status, events, logs, replay, explain."""

from pathlib import Path

import pytest
from tests.system.program import HELLO, Answer, noetl
from tests.system.run_playbooks import BRANCHES, FAULTS, HEAD, LIMITED

ENVELOPE = [
    "event_id",
    "seq",
    "execution_id",
    "timestamp",
    "source",
    "name",
    "entity",
    "entity_id",
    "status",
    "step",
    "step_run_id",
    "task_run_id",
    "trace_id",
    "parent_id",
    "data",
]


class Home:
    """A home with executions in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def noetl(self, *words: str) -> Answer:
        return noetl(*words, NOETL_HOME=str(self.folder / "home"))

    def run(self, text: str) -> str:
        file = self.folder / "playbook.yaml"
        file.write_text(text)
        [told] = self.noetl("run", str(file), "--json").objects()
        return str(told["execution_id"])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.rule("EVT-1", "EVT-3")
def test_events_have_the_whole_envelope_and_no_gap(home: Home) -> None:
    name = home.run(BRANCHES)
    events = home.noetl("events", name, "--json").objects()
    assert all(list(event) == ENVELOPE for event in events)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert {event["execution_id"] for event in events} == {name}
    shown = home.noetl("events", name).out.splitlines()
    assert len(shown) == len(events)
    assert not any("…" in line for line in shown)


@pytest.mark.rule("EVT-2")
@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("step.done", {"step.done"}),
        ("task.*", {"task.started", "task.done"}),
        ("TaskProcessed", {"task.done"}),
        ("loop.finished", {"loop.done"}),
        ("nothing", set()),
    ],
)
def test_events_are_filtered_by_name(home: Home, glob: str, names: set[str]) -> None:
    name = home.run(BRANCHES)
    events = home.noetl("events", name, "--json", "--name", glob).objects()
    assert {event["name"] for event in events} == names


def test_logs(home: Home) -> None:
    name = home.run(BRANCHES)
    assert home.noetl("logs", name).out.endswith("left | hello world\n")
    [line] = home.noetl("logs", name, "--json", "--step", "left").objects()
    assert list(line) == ["timestamp", "step", "task_run_id", "attempt", "stream", "text"]
    assert (line["stream"], line["text"]) == ("stdout", "hello world")
    assert home.noetl("logs", name, "--step", "right").out == ""


def test_list_filters(home: Home) -> None:
    good = home.run(BRANCHES)
    bad = home.run(HEAD + LIMITED + FAULTS["endless-jump"][2])
    last = home.run(HELLO.read_text())
    assert [row["execution_id"] for row in home.noetl("list", "--json").objects()] == [
        last,
        bad,
        good,
    ]
    for words, found in (
        (("--status", "failed"), [bad]),
        (("--path", "tests/*"), [bad, good]),
        (("--limit", "1"), [last]),
        (("--status", "interrupted"), []),
    ):
        rows = home.noetl("list", "--json", *words).objects()
        assert [row["execution_id"] for row in rows] == found
    [line] = home.noetl("list", "--status", "failed").out.splitlines()
    assert line.startswith(f"{bad}  failed")
    assert "more than 50 task runs" in line


@pytest.mark.rule("EVT-5")
def test_replay_rebuilds_and_proves(home: Home) -> None:
    name = home.run(BRANCHES)
    [state] = home.noetl("replay", name, "--json", "--verify").objects()
    assert list(state) == [
        "execution_id",
        "seq",
        "status",
        "ctx",
        "tokens",
        "runs",
        "loops",
        "verified",
    ]
    assert (state["status"], state["ctx"]) == ("completed", {"total": 6})
    assert (state["tokens"], state["runs"], state["loops"]) == ([], [], [])
    assert state["verified"]["ok"] is True
    assert "verified: " in home.noetl("replay", name, "--verify").out


@pytest.mark.rule("EVT-5")
@pytest.mark.unproven
def test_a_log_that_was_changed_is_found_out(home: Home) -> None:
    import apsw

    name = home.run(HELLO.read_text())
    connection = apsw.Connection(str(home.folder / "home" / "noetl.db"))
    connection.execute(
        "update decision set events = replace(events, 'Good morning', 'Good mourning')"
        " where first_seq > 1"
    )
    connection.execute(
        'update decision set events = replace(events, \'"greeting":"Good morning"\','
        ' \'"greeting":"Go away"\')'
    )
    connection.close()
    answer = home.noetl("replay", name, "--verify")
    assert answer.code == 1
    proof = answer.out[answer.out.index("not verified") :]
    assert "event " in proof
    assert "  expected: " in proof
    assert "  found:    " in proof


def test_status_of_an_ended_execution(home: Home) -> None:
    name = home.run(BRANCHES)
    [told] = home.noetl("status", name, "--json").objects()
    assert (told["status"], told["interrupted"], told["waits"]) == ("completed", False, [])
    assert told["finished_at"] >= told["started_at"]
    out = home.noetl("status", name).out
    assert "status    completed" in out
    assert "  right: done, 1 run" in out


@pytest.mark.parametrize("name", FAULTS)
def test_explain_names_the_cause_and_the_remedy(home: Home, name: str) -> None:
    kind, words, workflow = FAULTS[name]
    execution_id = home.run(HEAD + LIMITED + workflow)
    out = home.noetl("explain", execution_id).out
    assert "step 'start', line 6 failed: " in out
    assert kind in out
    assert words in out
    assert "  what to do: " in out
    [told] = home.noetl("explain", execution_id, "--json").objects()
    assert told["causes"][0]["step"] == "start"
    assert told["words"] == out.splitlines()


@pytest.mark.parametrize(
    "words",
    [
        ("status", "nobody"),
        ("events", "nobody"),
        ("logs", "nobody"),
        ("replay", "nobody"),
        ("explain", "nobody"),
        ("resume", "nobody"),
        ("cancel", "nobody"),
    ],
)
def test_an_unknown_execution_is_exit_3(home: Home, words: tuple[str, ...]) -> None:
    before = home.noetl(*words, "--json")
    assert before.code == 3
    assert "nothing has run in" in before.objects()[0]["error"]
    assert not (home.folder / "home").exists(), "looking makes no home"
    home.run(HELLO.read_text())
    after = home.noetl(*words, "--json")
    assert after.code == 3
    assert "no execution 'nobody'" in after.objects()[0]["error"]
    assert "`noetl list`" in after.err


def test_an_empty_home_lists_nothing(home: Home) -> None:
    answer = home.noetl("list", "--json")
    assert (answer.code, answer.out) == (0, "")
    assert "nothing has run in" in answer.err


@pytest.mark.parametrize(
    "command",
    ["run", "resume", "status", "list", "events", "logs", "replay", "explain", "cancel", "test"],
)
def test_help_shows_an_example(command: str) -> None:
    answer = noetl(command, "--help")
    assert answer.code == 0
    assert f"  noetl {command}" in answer.out[answer.out.index("Examples:") :]
    assert "--json" in answer.out


OLDER = f"""{HEAD}workflow:
  - step: start
    tool: {{ kind: python, code: "result = {{'n': 1}}" }}
    next: {{ arcs: [ {{ step: bad }} ] }}
  - step: bad
    tool:
      kind: python
      input: {{ n: "{{{{ start.n }}}}" }}
      script: {{ uri: ./broken.py }}
"""


@pytest.mark.rule("DIA-UP")
@pytest.mark.parametrize("script", ["script: { uri: ./broken.py }", "code: result = n // 0"])
def test_explain_shows_lines_of_the_text_that_its_author_has(home: Home, script: str) -> None:
    text = OLDER.replace("script: { uri: ./broken.py }", script)
    file = home.folder / "old.yaml"
    file.write_text(text)
    (home.folder / "broken.py").write_text("result = n // 0\n")
    [told] = home.noetl("run", "--migrate", str(file), "--json").objects()
    ids = [told["execution_id"]]
    home.noetl("register", "--migrate", str(file))
    if "script" not in script:
        [told] = home.noetl("execute", "tests/sample", "--json").objects()
        ids.append(told["execution_id"])
    line = text.splitlines().index("  - step: bad") + 1
    for one in ids:
        [why] = home.noetl("explain", str(one), "--json").objects()
        [cause] = why["causes"]
        assert (cause["line"], cause["chain"][0]["line"]) == (line, line + 1)


BROKEN = """apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: broken, path: tests/broken }
workload: { shares: 0 }
workflow:
  - step: start
    tool:
      - share:
          kind: python
          args: { shares: "{{ workload.shares }}" }
          code: |
            print("sharing")
            def main(shares):
                return 12 / shares
"""


@pytest.mark.rule("CLI-1")
def test_one_look_shows_why_it_failed(home: Home) -> None:
    file = home.folder / "broken.yaml"
    file.write_text(BROKEN)
    ran = home.noetl("run", str(file))
    assert ran.code == 1
    for answer in (ran, home.noetl("status", "last"), home.noetl("explain", "last")):
        lines = [line.strip() for line in answer.out.splitlines()]
        at = lines.index("line 14, in main")
        assert lines[at + 1 : at + 3] == [
            "return 12 / shares",
            "ZeroDivisionError: division by zero",
        ]
        at = lines.index('args: {"shares":"{{ workload.shares }}"}')
        assert lines[at + 1] == '= {"shares":0}'
        at = lines.index("it printed:")
        assert lines[at + 1] == "| sharing"


ALARM = """apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: alarm, path: tests/alarm }
executor: { spec: { final_step: tell } }
workflow:
  - step: start
    tool:
      - get: { kind: shell, command: "exit 3" }
  - step: tell
    tool:
      - say:
          kind: python
          args: { status: "{{ args.status }}", failures: "{{ args.failures }}" }
          code: |
            if status == "failed":
                print("alarm:", failures[0]["step"])
"""


@pytest.mark.rule("NEXT-6")
def test_an_alarm_by_the_final_step_ends_failed_and_tells(home: Home) -> None:
    file = home.folder / "alarm.yaml"
    file.write_text(ALARM)
    ran = home.noetl("run", str(file))
    assert (ran.code, ran.out.splitlines()[-1].split()[0]) == (1, "failed")
    assert "tell | alarm: start" in ran.err
    assert "step 'start'" in home.noetl("explain", "last").out


HANDLED = BROKEN.replace(
    "workflow:",
    "workflow:\n  - step: alarm\n    tool:\n      - say: { kind: noop }",
).replace("workload:", "executor: { spec: { entry_step: start } }\nworkload:") + (
    "    next:\n      arcs:\n        - step: alarm\n"
    "          when: \"{{ event.name == 'step.failed' }}\"\n"
)


@pytest.mark.rule("NEXT-3")
def test_a_failure_that_was_handled_is_told_everywhere(home: Home) -> None:
    file = home.folder / "handled.yaml"
    file.write_text(HANDLED)
    ran = home.noetl("run", str(file))
    assert ran.code == 0
    assert "start: its failure is handled by 'alarm'" in ran.out
    assert ", 1 failure handled; see: noetl explain " in ran.out.splitlines()[-1]
    assert "completed, 1 failure handled" in home.noetl("status", "last").out
    assert "1 failure handled: ZeroDivisionError" in home.noetl("list").out
    why = home.noetl("explain", "last").out
    assert "ZeroDivisionError: division by zero" in why
    assert "the arc to 'alarm'" in why
    [row] = home.noetl("list", "--json").objects()
    assert (row["error"], row["status"]) == (None, "completed")
