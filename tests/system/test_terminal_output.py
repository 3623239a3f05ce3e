"""What data says never steers the terminal of whoever reads it; JSON says it as it is."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.leaks import HEAD
from tests.system.program import Answer, noetl

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J\x1b[1;1H"
BIDI = "\u202edetrevni\u2066"
C1 = "\x9b31m\x85"
EVIL = f"a{TITLE}b{CLEAR}c{BIDI}d{C1}e\u2028f\rg"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
PLAYBOOK = """
workload: {evil: EVIL}
workflow:
  - step: start
    tool:
      - say:
          kind: python
          args: {t: "{{ workload.evil }}"}
          code: |
            print(t)
            result = {"t": t, t: 1}
          spec:
            policy:
              rules: [{else: {then: {do: continue, set_ctx: {seen: "{{ workload.evil }}"}}}}]
      - fail: {kind: python, args: {t: "{{ workload.evil }}"}, code: "raise ValueError(t)"}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("steering") / "home"


@pytest.fixture(scope="module")
def ran(home: Path) -> list[Answer]:
    """Every command that shows something of an execution, for people."""
    path = home.parent / "p.yaml"
    head = HEAD.replace("name: t", f"name: {json.dumps(EVIL)}, description: {json.dumps(EVIL)}")
    path.write_text(head + PLAYBOOK.replace("EVIL", json.dumps(EVIL)))
    told = [
        noetl("run", path, NOETL_HOME=str(home)),
        noetl("register", path, NOETL_HOME=str(home)),
        noetl("list", NOETL_HOME=str(home)),
        noetl("catalog", "list", NOETL_HOME=str(home)),
        noetl("validate", path, NOETL_HOME=str(home)),
        noetl("graph", path, NOETL_HOME=str(home)),
        noetl("run", f"no{EVIL}.yaml".replace("\x00", ""), NOETL_HOME=str(home)),
        noetl("list", "--status", EVIL, NOETL_HOME=str(home)),
        noetl("credential", "show", EVIL, NOETL_HOME=str(home)),
        noetl("status", EVIL, NOETL_HOME=str(home)),
        noetl("doctor", NOETL_HOME=str(home), NOETL_SERVER=f"http://{EVIL}"),
    ]
    for command in ("events", "logs", "status", "explain", "replay"):
        told.append(noetl(command, execution_in(home), NOETL_HOME=str(home)))
    return told


def test_no_command_lets_data_steer_the_terminal(ran: list[Answer]) -> None:
    found = [
        (number, found[0])
        for number, answer in enumerate(ran)
        for text in (answer.out, answer.err)
        for found in [STEERING.findall(text)]
        if found
    ]
    assert found == []
    assert sum("\\x1b]0;owned" in answer.out + answer.err for answer in ran) > 5


@pytest.mark.parametrize("words", [("events", "--name", "ctx.patched"), ("logs",)])
def test_json_says_it_as_it_is(ran: list[Answer], home: Path, words: tuple[str, ...]) -> None:
    assert ran
    told = noetl(*words, execution_in(home), "--json", NOETL_HOME=str(home))
    texts = [text for line in told.out.split("\n") if line for text in texts_in(json.loads(line))]
    assert any(f"{TITLE}b{CLEAR}c{BIDI}d{C1}e" in text for text in texts)


def execution_in(home: Path) -> str:
    [line] = noetl("list", "--json", NOETL_HOME=str(home)).out.split("\n")[:-1]
    return str(json.loads(line)["execution_id"])


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from texts_in(below)
