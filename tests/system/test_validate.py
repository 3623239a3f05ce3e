"""`noetl validate` as scripts and people use it."""

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from tests.system.bad_files import BAD_FILES, HEAD, BadFile
from tests.system.program import HELLO, NOETL, noetl

WRONG = HEAD.replace(b"kind: noop", b"kind: noopp")


def test_a_valid_playbook_is_exit_0() -> None:
    assert noetl("validate", HELLO) == (0, f"{HELLO}: valid\n", "")


def test_json_is_one_object_per_file_and_line() -> None:
    answer = noetl("validate", "--json", HELLO, HELLO)
    assert answer.code == 0
    assert answer.err == ""
    assert answer.objects() == [{"file": str(HELLO), "valid": True, "findings": []}] * 2


def test_a_finding_has_the_seven_fields_of_the_contract(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_bytes(WRONG)
    answer = noetl("validate", "--json", file)
    assert answer.code == 2
    [told] = answer.objects()
    assert (told["file"], told["valid"]) == (str(file), False)
    [finding] = told["findings"]
    assert list(finding) == ["code", "severity", "line", "column", "path", "message", "hint"]
    assert (finding["code"], finding["severity"]) == ("unknown-kind", "error")
    assert (finding["line"], finding["column"]) == (7, 22)
    assert "noop" in finding["hint"]


def test_people_see_the_line_and_a_caret(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_bytes(WRONG)
    answer = noetl("validate", tmp_path / "wrong.yaml")
    assert answer.code == 2
    lines = answer.out.splitlines()
    assert lines[0].startswith("error[unknown-kind]: ")
    assert lines[1].startswith(f" --> {tmp_path}/wrong.yaml:7:22  workflow[0].tool[0].rest.kind")
    assert lines[3:5] == [
        "7 |       - rest: {kind: noopp}",
        "  |                      ^^^^^",
    ]
    assert lines[-1] == f"{tmp_path}/wrong.yaml: invalid, 1 error"
    assert "\x1b" not in answer.out


def test_a_warning_does_not_reject(tmp_path: Path) -> None:
    file = tmp_path / "lonely.yaml"
    file.write_bytes(HEAD + b"  - step: lonely\n    tool:\n      - rest: {kind: noop}\n")
    answer = noetl("validate", "--json", file)
    assert answer.code == 0
    [told] = answer.objects()
    assert told["valid"] is True
    assert [finding["severity"] for finding in told["findings"]] == ["warning"]


def test_standard_input_is_a_dash() -> None:
    assert noetl("validate", "-", stdin=HEAD) == (0, "<stdin>: valid\n", "")
    assert noetl("validate", "-", stdin=WRONG).code == 2


@pytest.mark.rule("DOC-7")
@pytest.mark.parametrize("bad", BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_give_a_finding_and_exit_2(tmp_path: Path, bad: BadFile) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(bad.content)
    answer = noetl("validate", "--json", file)
    assert answer.code == 2
    [told] = answer.objects()
    assert told["valid"] is False
    assert bad.code in [finding["code"] for finding in told["findings"]]
    for finding in told["findings"]:
        assert finding["line"] >= 1
        assert finding["column"] >= 1
        assert finding["message"]
    shown = noetl("validate", file)
    assert shown.code == 2
    assert f"error[{bad.code}]" in shown.out
    assert max(map(len, shown.out.splitlines())) < 500
    assert not any(ord(char) < 32 and char != "\n" for char in shown.out)


@pytest.mark.parametrize("command", ["validate", "graph"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.yaml", "there is no such file or directory"),
        (".", "it is a directory"),
        ("wrong.yaml/below", "a part of its path is a file"),
    ],
)
def test_what_cannot_be_read_is_exit_3(tmp_path: Path, command: str, name: str, said: str) -> None:
    (tmp_path / "wrong.yaml").write_bytes(WRONG)
    answer = noetl(command, f"{tmp_path}/{name}")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith(f"error: cannot read '{tmp_path}/{name}': {said}")


def test_what_cannot_be_read_is_an_object_in_json(tmp_path: Path) -> None:
    answer = noetl("validate", "--json", tmp_path / "missing.yaml", HELLO)
    assert answer.code == 3
    refused, valid = answer.objects()
    assert list(refused) == ["status", "error"]
    assert refused["status"] == "error"
    assert "missing.yaml" in refused["error"]
    assert valid["valid"] is True


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_bytes(WRONG)
    answer = noetl("validate", tmp_path / "wrong.yaml", HELLO)
    assert answer.code == 2
    assert answer.out.splitlines()[-1] == f"{HELLO}: valid"


def test_a_file_without_permission_is_exit_3(tmp_path: Path) -> None:
    file = tmp_path / "locked.yaml"
    file.write_bytes(HEAD)
    file.chmod(0)
    words = [NOETL, "validate", str(file)]
    if os.geteuid() == 0:  # root may read everything: be somebody else
        tmp_path.chmod(stat.S_IRWXU | stat.S_IRWXO)
        words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *words]
    if shutil.which(words[0]) is None:
        pytest.fail("setpriv (util-linux) is needed to give up the rights of root")
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 3
    assert "permission denied; check who owns it" in done.stderr


def test_usage_errors_are_exit_3_and_json_on_request() -> None:
    answer = noetl("validate", "--json")
    assert answer.code == 3
    assert answer.objects() == [{"status": "error", "error": "Missing argument 'FILE...'."}]
    assert answer.err == "error: Missing argument 'FILE...'.\n  see: noetl validate --help\n"


def test_a_file_named_with_any_bytes_can_be_checked(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\x1b[2J.yaml"
    Path(os.fsdecode(name)).write_bytes(HEAD)
    answer = noetl("validate", name)
    assert answer.code == 0
    assert "\x1b" not in answer.out
    assert json.loads(noetl("validate", "--json", name).out)["valid"] is True


def test_a_terminal_that_lacks_a_character_gets_an_escape(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_bytes(WRONG.replace(b"noopp", "日本".encode()))
    answer = noetl("validate", file, PYTHONIOENCODING="latin-1")
    assert answer.code == 2
    assert "\\u65e5\\u672c" in answer.out
