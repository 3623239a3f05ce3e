"""The program as a whole: help, completion, schema, graph, and how it ends when things go wrong."""

import json
import os
import pty
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.system.bad_files import HEAD
from tests.system.program import HELLO, NOETL, noetl


def test_help_names_the_exit_codes_and_the_completion() -> None:
    answer = noetl("--help")
    assert answer.code == 0
    assert "Exit codes: 0 done, 1 failed or cancelled, 2 invalid playbook" in answer.out
    assert 'eval "$(noetl completion bash)"' in answer.out


def test_graph_prints_mermaid() -> None:
    answer = noetl("graph", HELLO)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith('flowchart TD\n  s0(["<b>start</b> (entry)"]):::entry\n')


def test_graph_writes_svg_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "hello.svg"
    assert noetl("graph", HELLO, "--format", "svg", "-o", out) == (0, "", "")
    assert ElementTree.fromstring(out.read_bytes()).tag == "{http://www.w3.org/2000/svg}svg"


def test_graph_of_an_invalid_playbook_shows_the_findings(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_bytes(HEAD.replace(b"kind: noop", b"kind: noopp"))
    answer = noetl("graph", file, "-o", tmp_path / "out")
    assert (answer.code, answer.out) == (2, "")
    assert "error[unknown-kind]" in answer.err
    assert not (tmp_path / "out").exists()


def test_graph_as_json(tmp_path: Path) -> None:
    answer = noetl("graph", "--json", HELLO)
    assert answer.code == 0
    [drawing] = answer.objects()
    assert drawing["boxes"][0]["name"] == "start"
    assert drawing["links"][0] == {
        "source": 0,
        "target": 1,
        "label": "1: workload.hour < 12",
        "failure": False,
    }
    (tmp_path / "wrong.yaml").write_bytes(b"hello")
    refused = noetl("graph", "--json", tmp_path / "wrong.yaml")
    assert refused.code == 2
    assert [told["valid"] for told in refused.objects()] == [False]


def test_graph_into_nowhere_is_exit_3(tmp_path: Path) -> None:
    answer = noetl("graph", HELLO, "-o", tmp_path / "no" / "such" / "place.svg")
    assert answer.code == 3
    assert answer.err.startswith(f"error: cannot write '{tmp_path}/no/such/place.svg': ")


@pytest.mark.rule("VAL-4")
def test_schema_is_json_schema(tmp_path: Path) -> None:
    answer = noetl("schema")
    assert (answer.code, answer.err) == (0, "")
    schema = json.loads(answer.out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert noetl("schema", "--json").out == answer.out
    assert noetl("schema", "-o", tmp_path / "s.json") == (0, "", "")
    assert (tmp_path / "s.json").read_text() == answer.out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("noetl val", "plain,validate"),
        ("noetl graph --for", "plain,--format"),
        ("noetl graph --format s", "plain,svg"),
        ("noetl completion z", "plain,zsh"),
        ("noetl validate x", "file,x"),
    ],
)
def test_bash_completes(words: str, offered: str) -> None:
    answer = noetl(
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
        _NOETL_COMPLETE="bash_complete",
    )
    assert answer.out.splitlines() == [offered]


def test_the_bash_script_is_bash() -> None:
    script = noetl("completion", "bash").out
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=600)


def test_a_reader_that_leaves_is_no_reason_to_complain() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [NOETL, "graph", str(HELLO)],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=600,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [NOETL, "--help"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=600
        )
    assert done.returncode == 3
    assert done.stderr == b"error: [Errno 28] No space left on device\n"


def test_interrupted_is_130(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # The fifo opens for writing as soon as the program reads it.
    with (
        subprocess.Popen([NOETL, "validate", str(fifo)], stderr=subprocess.PIPE) as running,
        fifo.open("wb"),
    ):
        # Python looks for signals between its steps: one that comes just before it reads is seen
        # after it, and whoever waits presses Ctrl-C again.
        while running.poll() is None:
            running.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                running.wait(5)
        _, err = running.communicate()
    assert (running.returncode, err) == (130, b"interrupted\n")


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_on_a_terminal(tmp_path: Path, no_color: str, coloured: bool) -> None:
    (tmp_path / "wrong.yaml").write_bytes(b"hello\n")
    here, there = pty.openpty()
    environment = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm"}
    done = subprocess.run(
        [NOETL, "validate", str(tmp_path / "wrong.yaml")],
        stdout=there,
        check=False,
        timeout=600,
        env=environment,
    )
    shown = os.read(here, 65536)
    os.close(here)
    os.close(there)
    assert done.returncode == 2
    assert (b"\x1b[1;31merror" in shown) is coloured
