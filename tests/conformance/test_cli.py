"""The command line as a contract: every command there is, its help, its exit codes (CLI)."""

import json
import re
from pathlib import Path

import click
import pytest
from tests.system.program import noetl

from noetl.cli.commands import COMMANDS
from noetl.cli.main import main, program

NAMED = (
    *("run", "test", "validate", "migrate", "graph", "schema", "register", "catalog", "execute"),
    *("list", "status", "explain", "events", "logs", "replay", "export", "cancel", "pause"),
    *("resume", "restart", "signal", "credential", "server", "worker", "up", "doctor"),
)
"""The commands of CLI-1."""

LIFECYCLE = [
    (kind, verb) for kind in ("server", "worker") for verb in ("start", "stop", "status", "logs")
]
PLAYBOOK = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: one, path: tests/one}
workflow:
  - step: start
    tool:
      - nothing: {kind: noop}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that nobody has used, in a folder without settings."""
    for name in ("NOETL_SERVER", "NOETL_TOKEN", "NOETL_CONTEXT", "NOETL_DB", "NOETL_QUEUE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NOETL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def all_commands() -> list[tuple[str, ...]]:
    """Every command and every command below one, as the words that call it."""
    found: list[tuple[str, ...]] = []
    ahead: list[tuple[tuple[str, ...], click.Command]] = [((), program)]
    while ahead:
        words, command = ahead.pop()
        found += [words] if words else []
        if isinstance(command, click.Group):
            ctx = click.Context(command)
            for name in command.list_commands(ctx):
                below = command.get_command(ctx, name)
                assert below is not None
                ahead.append(((*words, name), below))
    return sorted(found)


def command_at(words: tuple[str, ...]) -> click.Command:
    command: click.Command | None = program
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    return command


@pytest.mark.rule("CLI-1")
@pytest.mark.parametrize("name", NAMED)
def test_the_program_has_every_command(name: str) -> None:
    assert name in COMMANDS


@pytest.mark.rule("CLI-2")
@pytest.mark.parametrize(("kind", "verb"), LIFECYCLE, ids=lambda word: str(word))
def test_servers_and_workers_have_a_lifecycle(kind: str, verb: str) -> None:
    assert command_at((kind, verb)).help


FOR_PROGRAMS = {"completion", "dev", "init", "lsp", "mcp", "view"}
"""They answer nothing: they write files, watch them, open pages, or speak a protocol."""


@pytest.mark.rule("CLI-1")
@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_every_command_shows_an_example_and_offers_json(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert main([*words, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"noetl {' '.join(words)}" in out.partition("Examples:")[2]
    if not isinstance(command_at(words), click.Group) and words[0] not in FOR_PROGRAMS:
        assert "--json" in out


ASKING = (
    *("register", "catalog", "execute", "list", "status", "explain", "events", "logs", "replay"),
    *("cancel", "pause", "resume"),
)


@pytest.mark.rule("CLI-1")
@pytest.mark.parametrize("name", ASKING)
def test_commands_that_ask_can_ask_a_server(name: str) -> None:
    options = {option for param in command_at((name,)).params for option in param.opts}
    assert {"--server", "--context"} <= options


@pytest.mark.rule("CLI-1")
def test_run_needs_no_set_up(home: Path) -> None:
    Path("one.yaml").write_text(PLAYBOOK)
    assert not home.exists()
    done = noetl("run", "one.yaml", "--json")
    assert (done.code, done.objects()[0]["status"]) == (0, "completed")


@pytest.mark.rule("CLI-1")
def test_a_playbook_is_registered_and_executed_without_a_server(home: Path) -> None:
    Path("one.yaml").write_text(PLAYBOOK)
    assert noetl("catalog").code == 0
    assert not home.exists()
    [told] = noetl("register", "one.yaml", "--json").objects()
    assert (told["fresh"], told["entry"]["version"]) == (True, 1)
    done = noetl("execute", "tests/one", "--json")
    [told] = done.objects()
    assert (done.code, told["status"], told["steps"][0]["step"]) == (0, "completed", "start")


@pytest.mark.rule("CLI-1", "SCOPE-4")
@pytest.mark.usefixtures("home")
def test_run_and_execute_take_what_ctx_begins_with() -> None:
    Path("one.yaml").write_text(PLAYBOOK)
    given = ("--ctx", "n=2", "--ctx", "who.name=ann", "--json")
    [told] = noetl("run", "one.yaml", *given).objects()
    assert told["ctx"] == {"n": 2, "who": {"name": "ann"}}
    noetl("register", "one.yaml")
    [told] = noetl("execute", "tests/one", *given).objects()
    assert told["ctx"] == {"n": 2, "who": {"name": "ann"}}
    refused = noetl("run", "one.yaml", "--ctx", "n")
    assert (refused.code, "--ctx expects NAME=VALUE" in refused.err) == (3, True)


AWAY = "http://127.0.0.1:9"
CODES = [
    (["run", "invalid.yaml"], 2),
    (["validate", "invalid.yaml"], 2),
    (["register", "invalid.yaml"], 2),
    (["register", "missing.yaml"], 3),
    (["execute", "tests/none"], 3),
    (["execute", "tests/none", "--key", "k"], 3),
    (["execute", "tests/none", "--set", "novalue"], 3),
    (["catalog", "--versions"], 3),
    (["list", "--server", AWAY], 3),
    (["list", "--server", "no-url"], 3),
    (["list", "--context", "nobody"], 3),
    (["server", "status"], 1),
    (["server", "stop"], 0),
    (["worker", "status"], 1),
    (["worker", "stop"], 0),
    (["worker", "start"], 3),
    (["down"], 0),
    (["server", "start", "--port", "no"], 3),
    (["server", "token", "add", "x", "--role", "king"], 3),
    (["server", "token", "add", "x", "--role", "admin", "--expires", "soon"], 3),
    (["server", "token", "revoke", "nobody"], 3),
    (["context", "use", "nobody"], 3),
    (["context", "rm", "nobody"], 3),
    (["context", "add", "local", "--server", "http://x"], 3),
    (["context", "add", "x y", "--server", "http://x"], 3),
    (["context", "list"], 0),
    (["doctor"], 0),
]


@pytest.mark.rule("CLI-1", "CLI-2")
@pytest.mark.parametrize(("words", "code"), CODES, ids=lambda value: str(value))
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_exit_codes_keep_the_contract(
    home: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    form: list[str],
) -> None:
    Path("invalid.yaml").write_text(PLAYBOOK.replace("noop", "nop"))
    assert main([*words, *form]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert "internal error" not in out + err
    if form:
        for line in out.splitlines():
            json.loads(line)
    if code == 3:
        assert "error: " in err
    assert home.parent.exists()


@pytest.mark.rule("CLI-1", "DOC-2")
@pytest.mark.usefixtures("home")
def test_a_version_is_executed_by_what_its_author_calls_it() -> None:
    for label in ("2024-08", "2024-09-rc1", "2024-09"):
        about = f"{{name: one, path: tests/one, version: {label}}}"
        Path("one.yaml").write_text(PLAYBOOK.replace("{name: one, path: tests/one}", about))
        assert noetl("register", "one.yaml").code == 0
    assert "version: 2024-09-rc1" in noetl("catalog", "tests/one@2024-09-rc1").out
    for words in (
        ["tests/one@2024-09-rc1"],
        ["tests/one", "--version", "2024-08"],
        ["tests/one@2"],
    ):
        assert noetl("execute", *words).code == 0
    missed = noetl("execute", "tests/one@2023")
    assert missed.code == noetl("execute", "tests/none").code
    assert "no version of 'tests/one' is called '2023'" in missed.err
    assert "3 (2024-09), 2 (2024-09-rc1), 1 (2024-08)" in missed.err


UNSURE = PLAYBOOK.replace(
    "{kind: noop}",
    """
          kind: http
          url: "{{ workload.url }}"
          spec: {resources: {cpu: 1}, policy: {rules: [{else: {then: {do: break}}}]}}""",
)


@pytest.mark.rule("CLI-1", "VAL-6", "VAL-5")
@pytest.mark.parametrize("command", ["run", "register", "execute"])
@pytest.mark.usefixtures("home")
def test_warnings_are_told_once_before_anything_begins(command: str) -> None:
    """`--quiet` leaves them out, `--strict` refuses; a name that is brought needs none."""
    file = Path("one.yaml")
    file.write_text(UNSURE)
    if command == "execute":
        assert noetl("register", file, "--quiet").code == 0
    what = "tests/one" if command == "execute" else str(file)
    told = noetl(command, what)
    warnings = ["ignored-key", "unbound-name"]
    assert (told.code, codes_in(told.err)) == (0, warnings)
    assert codes_in(told.out) == []
    assert codes_in(noetl("validate", file).out) == warnings
    quiet = noetl(command, what, "--quiet")
    assert (quiet.code, codes_in(quiet.err)) == (0, [])
    strict = noetl(command, what, "--strict")
    assert (strict.code, codes_in(strict.err)) == (2, warnings)
    assert "refused by --strict, 2 warnings" in strict.err
    [refused] = noetl(command, what, "--strict", "--json").objects()
    assert sorted(one["code"] for one in refused["findings"]) == warnings
    if command != "register":
        brought = noetl(command, what, "--set", "url=http://127.0.0.1:1")
        assert codes_in(brought.err) == ["ignored-key"]


def codes_in(text: str) -> list[str]:
    """The codes of the warnings that were told, in alphabetical order."""
    return sorted(re.findall(r"^warning\[([a-z-]+)\]", text, re.MULTILINE))


@pytest.mark.rule("CLI-1")
@pytest.mark.usefixtures("home")
def test_validate_can_be_strict() -> None:
    file = Path("one.yaml")
    file.write_text(UNSURE)
    assert noetl("validate", file).code == 0
    strict = noetl("validate", file, "--strict")
    assert (strict.code, strict.out.splitlines()[-1]) == (
        2,
        "one.yaml: refused by --strict, 2 warnings",
    )
    file.write_text(PLAYBOOK)
    assert noetl("validate", file, "--strict").code == 0
