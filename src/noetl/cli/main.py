"""The program `noetl`: the group of commands, and the one place where errors become words."""

import os
import sys
from collections.abc import Callable, Sequence

import click

from noetl import __version__
from noetl.cli import exits
from noetl.cli.commands import COMMANDS
from noetl.cli.lazy import LazyGroup
from noetl.errors import NoetlError

EPILOG = """\b
Examples:
  noetl run playbook.yaml --set name=Ada
  noetl validate playbook.yaml
  noetl graph playbook.yaml --format svg -o playbook.svg
  eval "$(noetl completion bash)"

\b
Exit codes: 0 done, 1 failed or cancelled, 2 invalid playbook, 3 usage or environment,
130 interrupted.
"""
COMPLETING = "_NOETL_COMPLETE"


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
)
@click.version_option(__version__, message="noetl %(version)s")
def program() -> None:
    """Run YAML playbooks, locally or on servers and workers; every change is recorded in a log."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; no exception leaves it."""
    words = list(sys.argv[1:] if args is None else args)
    survive_any_character()
    return guarded(lambda: call(words), words)


def call(words: list[str]) -> int:
    """One command, or one answer to a shell that completes."""
    if COMPLETING in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(program, {}, "noetl", COMPLETING, os.environ[COMPLETING])
    # Not `program.main`: it turns a broken pipe and Ctrl-C into exits of its own.
    with program.make_context("noetl", words, terminal_width=width()) as ctx:
        code = program.invoke(ctx)
    # A full disk or a closed pipe shows itself only when the last bytes leave.
    if sys.stdout is not None:
        sys.stdout.flush()
    return code if isinstance(code, int) else exits.OK


def width() -> int:
    """Columns for help, as click counts them: to ask, it imports what packs archives."""
    said = os.environ.get("COLUMNS", "")
    try:
        columns = int(said) if said.isdecimal() else os.get_terminal_size(1).columns
    except OSError:
        columns = 0
    return max(min(columns or 80, 80) - 2, 50)


def guarded(work: Callable[[], int], words: Sequence[str]) -> int:
    """Whatever goes wrong in `work`, said in a sentence and turned into an exit code."""
    try:
        return work()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.UsageError as wrong:
        return refuse(on_one_line(wrong), words, remedy=remedy_of(wrong))
    except click.ClickException as wrong:
        return refuse(wrong.format_message(), words)
    except NoetlError as wrong:
        return refuse(str(wrong), words)
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return exits.INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return exits.BROKEN_PIPE
    except OSError as wrong:
        discard_output()
        return refuse(str(wrong), words)
    except Exception as bug:
        return report_bug(bug, words)


def refuse(message: str, words: Sequence[str], *, remedy: str = "") -> int:
    """Say why the command could not be run; a reader of `--json` gets an object on stdout."""
    from noetl.masking import KNOWN, without_password

    message = without_password(KNOWN.masked(message))
    if wants_json(words):
        import json

        click.echo(json.dumps({"status": "error", "error": message}, ensure_ascii=False))
    complain(f"error: {message}")
    if remedy:
        complain(remedy)
    return exits.UNUSABLE


def report_bug(bug: Exception, words: Sequence[str]) -> int:
    from noetl.tools.environment import VARIABLES

    if VARIABLES.get("NOETL_DEBUG") == "1":
        import traceback

        traceback.print_exception(bug)
    name = type(bug).__name__
    return refuse(
        f"internal error: {name}: {bug}",
        words,
        remedy="  this is a bug in noetl: please report it, with the output of NOETL_DEBUG=1",
    )


def on_one_line(wrong: click.UsageError) -> str:
    """click lists choices one below the other."""
    return " ".join(wrong.format_message().split())


def remedy_of(wrong: click.UsageError) -> str:
    path = wrong.ctx.command_path if wrong.ctx else "noetl"
    missing = wrong.param if isinstance(wrong, click.MissingParameter) else None
    ids = "" if missing is None or missing.metavar not in IDS else f"{LISTED}; "
    return f"  {ids}see: {path} --help"


IDS = ("ID", "ID ID")
LISTED = "`noetl list` shows the ids of executions, `last` is the newest"


def complain(sentence: str) -> None:
    from noetl.cli.terminal import plain

    click.echo(plain(sentence, keep="\n"), err=True)


def wants_json(words: Sequence[str]) -> bool:
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def survive_any_character() -> None:
    """A terminal that cannot show a character gets an escape, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Keep Python from complaining about unwritten output when it exits."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
