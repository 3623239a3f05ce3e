"""Code that nobody should wait for, and scripts in files."""

import json
from typing import Any

import pytest

from noetl.playbook.finding import Finding
from noetl.playbook.load import load, load_kept
from noetl.playbook.neighbours import Neighbours


def found(task: dict[str, Any], files: dict[str, str] | None = None) -> tuple[Finding, ...]:
    document = {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "a", "path": "b"},
        "workflow": [{"step": "start", "tool": [{"one": task}]}],
    }
    around = Neighbours(file=(files or {}).get)
    return load(json.dumps(document), neighbours=around).findings


@pytest.mark.parametrize(
    "code",
    [
        *("(" * 90_000, "-" * 90_000 + "1", "a" + ".b" * 49_000, "lambda:" * 14_000 + "1"),
        *("+".join(["1"] * 49_000), "f'{" * 1_000, "not " * 20_000 + "1", "1<" * 9_000 + "1"),
        *("\0", "if 1:\n  pass\n" + "elif 1:\n  pass\n" * 4_000, "a\ud800", "x = 1" * 100_000),
    ],
    ids=lambda code: repr(code[:10]),
)
def test_no_code_brings_validation_down(code: str) -> None:
    assert {one.code for one in found({"kind": "python", "code": code})} <= {
        *("code-syntax", "code-name", "yaml-syntax")
    }


@pytest.mark.filterwarnings("error")
def test_what_python_warns_of_is_not_our_business() -> None:
    assert found({"kind": "python", "code": r"result = '\d' is 'x'"}) == ()


def test_a_script_in_a_file_is_read_if_it_is_python() -> None:
    files = {"a.py": "x = 1\ndef f(:\n", "b.sh": "if [", "good.py": "print(1)"}
    (one,) = found({"kind": "script", "path": "a.py"}, files)
    assert (one.code, one.message) == (
        "code-syntax",
        "the code is not Python: invalid syntax (line 2 of 'a.py')",
    )
    assert found({"kind": "script", "path": "b.sh"}, files) == ()
    assert found({"kind": "script", "path": "a.py", "interpreter": "bash"}, files) == ()
    assert found({"kind": "script", "path": "good.py"}, files) == ()
    assert found({"kind": "script", "path": "missing.py"}, files) == ()


def test_a_text_that_was_accepted_once_is_still_loaded() -> None:
    text = json.dumps(
        {
            "apiVersion": "noetl.io/v2",
            "kind": "Playbook",
            "metadata": {"name": "a", "path": "b"},
            "workflow": [
                {"step": "start", "tool": [{"one": {"kind": "python", "code": "result = 1 +"}}]}
            ],
        }
    )
    assert load(text).playbook is None
    assert load_kept(text).path == "b"
