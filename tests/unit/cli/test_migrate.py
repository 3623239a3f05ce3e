"""`noetl migrate`: where the text goes, what the report says, and what the exit code means."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from noetl.cli import test as testing
from noetl.cli.graph.command import graph
from noetl.cli.migrate import migrate_command
from noetl.cli.run import run
from noetl.cli.validate import validate

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: small, path: tests/small}\n"
CANONICAL = f"{HEAD}workflow:\n  - step: start\n    tool:\n      - rest: {{kind: noop}}\n"
OLDER = f"""{HEAD}workflow:
  - step: start
    when: true
    tool:
      - rest: {{kind: noop}}
"""
MIGRATED = f"""{HEAD}workflow:
  - step: start
    spec:
      policy:
        admit:
          rules:
            - when: true
              then: {{allow: true}}
            - else:
                then: {{allow: false}}
    tool:
      - rest: {{kind: noop}}
"""
BROKEN = "apiVersion: [\n"
HOPELESS = OLDER.replace("kind: noop", "kind: noop, eval: [{expr: true, do: jump}]")


def migrated(text: str, *words: str) -> Result:
    return CliRunner().invoke(migrate_command, [*words, "-"], input=text, standalone_mode=False)


@pytest.mark.parametrize(
    "text",
    [
        "playbook: a.yaml\ntests:\n  - name: one\n",
        "apiVersion: noetl.io/v2\nkind: Trigger\nmetadata: {name: t, path: t}\n",
    ],
)
def test_a_check_passes_what_is_no_playbook(text: str) -> None:
    done = migrated(text, "--check")
    assert (done.return_value, done.stdout) == (0, "")
    assert "no playbook, nothing to migrate" in done.stderr


def test_the_text_is_on_standard_output_and_the_report_on_standard_error() -> None:
    done = migrated(OLDER)
    assert (done.return_value, done.stdout) == (0, MIGRATED)
    assert done.stderr.splitlines() == [
        "eval-step-when: Admission decides which tokens may fire a step; a refused token waits.",
        "    6 → 10    when → spec.policy.admit.rules",
        "",
        "<stdin>: migrated, 1 rewrite",
    ]


@pytest.mark.parametrize("text", [CANONICAL, CANONICAL.replace("\n", "\r\n"), "\ufeff" + CANONICAL])
def test_a_canonical_text_comes_out_byte_for_byte(text: str) -> None:
    done = migrated(text)
    assert (done.return_value, done.stdout_bytes) == (0, text.encode())
    assert done.stderr == "<stdin>: canonical already, nothing to change\n"


@pytest.mark.parametrize(
    ("text", "code", "last"),
    [
        (CANONICAL, 0, "<stdin>: canonical already, nothing to change"),
        (OLDER, 1, "<stdin>: migrated, 1 rewrite"),
        (BROKEN, 2, "<stdin>: cannot be migrated whole, 1 error; nothing is written"),
        (HOPELESS, 2, "<stdin>: cannot be migrated whole, 1 error; nothing is written"),
    ],
)
def test_check_tells_by_its_exit_code_and_writes_nothing(text: str, code: int, last: str) -> None:
    done = migrated(text, "--check")
    assert (done.return_value, done.stdout) == (code, "")
    assert done.stderr.splitlines()[-1] == last


def test_what_cannot_be_translated_is_told_at_its_own_line_and_not_written() -> None:
    done = migrated(HOPELESS)
    assert (done.return_value, done.stdout) == (2, "")
    assert "error[jump-target]: a jump lacks 'to'" in done.stderr
    assert "--> <stdin>:8:" in done.stderr


def test_broken_yaml_is_told_as_by_validate() -> None:
    checked = CliRunner().invoke(validate, ["--json", "-"], input=BROKEN, standalone_mode=False)
    done = migrated(BROKEN, "--json")
    assert json.loads(done.stdout)["findings"] == json.loads(checked.stdout)["findings"]


def test_json_is_one_object() -> None:
    done = migrated(OLDER, "--json")
    assert json.loads(done.stdout) == {
        "file": "<stdin>",
        "changed": True,
        "rewrites": [
            {
                "code": "eval-step-when",
                "line": 6,
                "new_line": 10,
                "path": "workflow[0].when",
                "old": "when",
                "new": "spec.policy.admit.rules",
                "message": "Admission decides which tokens may fire a step; a refused token waits.",
            }
        ],
        "findings": [],
    }
    assert done.stderr == ""


def test_the_text_may_go_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "new.yaml"
    done = migrated(OLDER, "-o", str(out))
    assert (done.return_value, done.stdout) == (0, "")
    assert out.read_text() == MIGRATED
    assert migrated(CANONICAL, "--json", "-o", str(out)).return_value == 0
    assert out.read_text() == CANONICAL


def in_place(file: Path) -> Result:
    return CliRunner().invoke(migrate_command, ["--in-place", str(file)], standalone_mode=False)


def test_in_place_keeps_the_mode_and_leaves_nothing_beside(tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(OLDER)
    file.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    assert in_place(link).return_value == 0
    assert (file.read_text(), file.stat().st_mode & 0o777) == (MIGRATED, 0o640)
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.yaml", "old.yaml"]


@pytest.mark.parametrize("text", [CANONICAL, HOPELESS, BROKEN])
def test_in_place_leaves_a_file_alone_that_it_does_not_change(tmp_path: Path, text: str) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(text)
    before = file.stat()
    in_place(file)
    after = file.stat()
    assert (file.read_text(), after.st_ino, after.st_mtime_ns) == (
        text,
        before.st_ino,
        before.st_mtime_ns,
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--in-place", "-"], "--in-place needs a file, not standard input"),
        (["--in-place", "--check", "x"], "-o, --in-place and --check exclude each other"),
        (["-o", "y", "--check", "x"], "-o, --in-place and --check exclude each other"),
    ],
)
def test_words_that_exclude_each_other(words: list[str], said: str) -> None:
    done = CliRunner().invoke(migrate_command, words)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(("text", "code"), [(CANONICAL, 0), (OLDER, 0), (HOPELESS, 2)])
def test_validate_judges_what_a_text_is_translated_to(text: str, code: int) -> None:
    words = ["--migrate", "--json", "-"]
    done = CliRunner().invoke(validate, words, input=text, standalone_mode=False)
    assert (done.return_value, json.loads(done.stdout)["valid"]) == (code, code == 0)


@pytest.mark.parametrize(("words", "code"), [(["--migrate"], 0), ([], 2)])
def test_run_takes_an_older_dialect_only_when_asked(
    words: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOETL_HOME", str(tmp_path / "home"))
    done = CliRunner().invoke(run, [*words, "--json", "-"], input=OLDER, standalone_mode=False)
    assert done.return_value == code
    told = json.loads(done.stdout)
    assert (told.get("status"), told.get("valid")) == (
        ("completed", None) if code == 0 else (None, False)
    )
    assert ("<stdin>: migrated, 1 rewrite; `noetl migrate` shows them" in done.stderr) == (
        code == 0
    )


def test_run_refuses_what_cannot_be_translated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOETL_HOME", str(tmp_path / "home"))
    words = ["--migrate", "--json", "-"]
    done = CliRunner().invoke(run, words, input=HOPELESS, standalone_mode=False)
    assert done.return_value == 2
    assert [one["code"] for one in json.loads(done.stdout)["findings"]] == ["jump-target"]


def test_a_picture_and_a_test_take_an_older_playbook(tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(OLDER)
    drawn = CliRunner().invoke(graph, ["--migrate", str(old)], standalone_mode=False)
    assert (drawn.return_value, drawn.stderr.count("migrated, 1 rewrite")) == (0, 1)
    assert "start" in drawn.stdout
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "playbook: old.yaml\ntests:\n  - name: ends\n    expect: {status: completed}\n"
    )
    tried = CliRunner().invoke(testing.test, ["--migrate", str(suite)], standalone_mode=False)
    assert tried.return_value == 0, tried.output
    refused = CliRunner().invoke(graph, [str(old)], standalone_mode=False)
    assert refused.return_value == 2


ADVISED = [
    OLDER.replace("when: true", "next: {when: true, then: end}"),
    OLDER.replace("name: small, path: tests/small", ""),
    OLDER.replace("workflow:", "vars: 7\nworkflow:"),
]
"""Without `--migrate` each has a hint that asks for it; none can be translated whole."""


@pytest.mark.rule("DIA-UP")
@pytest.mark.parametrize("command", [migrate_command, validate, run, graph])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
@pytest.mark.parametrize("text", ADVISED, ids=["next", "name", "vars"])
def test_nobody_is_sent_to_the_command_that_he_just_ran(
    command: click.Command, form: list[str], text: str, tmp_path: Path
) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(text)
    words = [str(old), *form, *(["--migrate"] if command is not migrate_command else [])]
    told = CliRunner().invoke(command, words, standalone_mode=False)
    assert told.return_value == 2
    assert "noetl migrate" not in told.output


def test_a_script_beside_the_playbook_becomes_its_code(tmp_path: Path) -> None:
    task = "{ kind: python, script: { uri: ./twice.py } }"
    old = tmp_path / "old.yaml"
    old.write_text(f"{HEAD}workflow:\n  - step: start\n    tool: {task}\n")
    (tmp_path / "twice.py").write_text("return 2 * 2\n")
    done = CliRunner().invoke(migrate_command, [str(old)], standalone_mode=False)
    assert done.return_value == 0
    assert "code: |\n            result = 2 * 2\n" in done.stdout
    (tmp_path / "twice.py").unlink()
    gone = CliRunner().invoke(migrate_command, [str(old)], standalone_mode=False)
    assert gone.return_value == 2
    assert "the script './twice.py' is not beside the playbook" in gone.stderr
