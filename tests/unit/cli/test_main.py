"""The one place where errors become words and exit codes."""

import json
import sys
from collections.abc import Callable

import click
import pytest

from noetl.cli.commands import COMMANDS
from noetl.cli.main import guarded, main, program, wants_json, width
from noetl.errors import NoetlError


def raising(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (NoetlError("the disk is full"), 3, "error: the disk is full\n"),
        (click.UsageError("no such thing"), 3, "error: no such thing\n  see: noetl --help\n"),
        (click.ClickException("bad file"), 3, "error: bad file\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (click.Abort(), 130, "interrupted\n"),
        (
            ZeroDivisionError("oops"),
            3,
            "error: internal error: ZeroDivisionError: oops\n  this is a bug in noetl:"
            " please report it, with the output of NOETL_DEBUG=1\n",
        ),
    ],
)
def test_an_error_becomes_a_sentence(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    assert guarded(raising(error), []) == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", said)


@pytest.mark.parametrize("error", [NoetlError("why"), ValueError("why"), click.UsageError("why")])
def test_a_reader_of_json_gets_an_object(
    capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    assert guarded(raising(error), ["run", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "error"
    assert "why" in told["error"]


def test_a_traceback_is_for_those_who_ask(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOETL_DEBUG", "1")
    assert guarded(raising(ValueError("x")), []) == 3
    assert "Traceback" in capsys.readouterr().err


def test_a_message_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    guarded(raising(NoetlError("no file '\x1b[2J'")), [])
    assert capsys.readouterr().err == "error: no file '\\x1b[2J'\n"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["validate", "--json", "a"], True),
        (["validate", "a"], False),
        (["validate", "--", "--json"], False),
    ],
)
def test_json_is_wanted_by_its_option(words: list[str], wanted: bool) -> None:
    assert wants_json(words) is wanted


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name, entry in COMMANDS.items():
        assert f"  {name}" in out
        assert entry.summary in out


@pytest.mark.parametrize(
    ("columns", "wide"), [("60", 58), ("52", 50), ("20", 50), ("200", 78), ("0", 78), ("wide", 78)]
)
def test_help_is_as_wide_as_click_makes_it(
    monkeypatch: pytest.MonkeyPatch, columns: str, wide: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert width() == click.HelpFormatter().width == wide


def test_no_words_at_all_give_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("Usage: noetl")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Examples:" in out
    assert f"noetl {name}" in out.partition("Examples:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_in_the_table_is_kept_short(name: str) -> None:
    summary = COMMANDS[name].summary
    assert summary.endswith(".")
    assert len(summary) <= 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["valdate"], "error: no such command 'valdate'; did you mean 'validate'?"),
        (["zzz"], f"error: no such command 'zzz'; there are: {', '.join(COMMANDS)}"),
        (["validate", "--jsn", "x"], "error: No such option '--jsn'."),
        (["graph", "x", "--format", "png"], "error: Invalid value for '--format': 'png' is not"),
        (["validate"], "error: Missing argument 'FILE...'."),
        (["--frobnicate"], "error: No such option '--frobnicate'."),
    ],
)
def test_wrong_usage_is_exit_3(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(words) == 3
    assert capsys.readouterr().err.startswith(said)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "noetl 0.1.0\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_program(
    capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert f"_NOETL_COMPLETE={shell}_complete" in out


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 3
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err


def test_completion_of_names_reads_the_table_alone() -> None:
    offered = program.shell_complete(click.Context(program), "")
    assert [choice.value for choice in offered if choice.type == "plain"][: len(COMMANDS)] == list(
        COMMANDS
    )
    assert [choice.value for choice in program.shell_complete(click.Context(program), "gr")] == [
        "graph"
    ]


def test_a_closed_standard_output_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["--version"]) == 0
