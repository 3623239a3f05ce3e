"""The program waits for times, signals and people, whoever ends it meanwhile (WAIT)."""

import json
import signal
from functools import partial
from pathlib import Path

import pytest
from tests.support.asking import asking
from tests.support.steps import arc, playbook, sets, step
from tests.support.waiting import waits
from tests.system.program import Answer, noetl
from tests.system.running import Running, running

TEXT = playbook(
    step("start", waits("hear", signal="go", when="{{ signal.data.n > 1 }}"), arcs=[arc("ask")]),
    step(
        "ask",
        waits(
            "pay", approval={"title": "Pay?", "form": {"limit": "number"}, "roles": ["token:boss"]}
        ),
        sets("keep", answer="{{ _prev }}"),
    ),
)


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    file = tmp_path / "waits.yaml"
    file.write_text(TEXT)
    return file


def asked(home: Path, *words: str) -> Answer:
    return noetl(*words, NOETL_HOME=str(home))


def recorded(home: Path, fact: str, *words: str) -> Answer:
    """What a command says once the log has a fact: a run shows what it does a moment before."""
    for _ in asking():
        answer = asked(home, *words)
        if fact in answer.out:
            break
    return answer


def gone_on(run: Running, home: Path, number: signal.Signals) -> tuple[str, Answer]:
    """The run was ended while it waited; what it waits for comes, and it is taken up."""
    run.wait_for("waits for signal 'go'")
    recorded(home, "waits for signal 'go'", "status", run.execution_id)
    run.send(number)
    run.end()
    name = run.execution_id
    assert asked(home, "signal", name, "go", "--data", '{"n": 2}').code == 0
    with running("resume", name, home=home) as again:
        again.wait_for("waits for an answer to 'Pay?'")
        found = recorded(home, "Pay?", "waiting", "--json")
        again.send(number)
        again.end()
    return name, found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
def test_an_interrupted_wait_goes_on(number: signal.Signals, waiting: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    ask = partial(asked, home)
    with running("run", waiting, home=home) as run:
        name, found = gone_on(run, home, number)
    (one,) = json.loads(found.out)["waiting"]
    assert (one["execution_id"], one["wait"]["title"]) == (name, "Pay?")
    assert one["wait"]["answers"] == [
        f"noetl approve {name} ask --set limit=…",
        f"noetl reject {name} ask",
    ]
    refused = ask("approve", name, "--set", "limit=many")
    assert refused.code == 3
    assert "the field 'limit' is 'many', expected number" in refused.err
    assert ask("approve", name, "--set", "limit=5", "--reason", "fine").code == 0
    done = ask("resume", name, "--json")
    answer = json.loads(done.out)["ctx"]["answer"]
    assert (answer["approved"], answer["limit"], answer["reason"]) == (True, 5, "fine")
    ended = ask("signal", name, "go")
    assert ended.code == 3
    assert "there is nothing to signal; run a step of it again: noetl restart" in ended.err
    assert "no execution 'nobody'" in ask("signal", "nobody", "go").err
    assert "every one follows" in ask("replay", "--verify", name).out


def test_a_run_is_answered_while_it_waits(waiting: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running("run", waiting, home=home) as run:
        run.wait_for("waits for signal 'go'")
        name = run.execution_id
        recorded(home, f"answer with: noetl signal {name} go", "status", name)
        assert f"noetl signal {name} go" in asked(home, "explain", name).out
        assert asked(home, "waiting").out == "nothing waits for a person\n"
        for n in (1, 2):
            assert asked(home, "signal", name, "go", "--data", f'{{"n": {n}}}').code == 0
        run.wait_for("waits for an answer to 'Pay?'")
        recorded(home, "from token:boss", "waiting")
        assert asked(home, "reject", name, "ask", "--reason", "no").code == 0
        assert run.end() == 0
    shown = json.loads(asked(home, "resume", name, "--json").out)
    assert shown["ctx"]["answer"]["approved"] is False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("signal", "x", "go", "--data", "{"), "--data is not JSON"),
        (("approve", "x", "--set", "limit"), "--set takes FIELD=VALUE, got 'limit'"),
    ],
)
def test_what_cannot_be_read_is_told(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    refused = asked(tmp_path, *words)
    assert refused.code == 3
    assert said in refused.err
