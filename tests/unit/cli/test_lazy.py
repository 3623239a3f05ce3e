"""A group whose commands are imported when they are called, and not before."""

import sys

import click
import pytest
from click.testing import CliRunner

from noetl.cli.commands import COMMANDS, Entry
from noetl.cli.lazy import LazyGroup
from noetl.cli.main import program

TABLE = {
    "clock": Entry("tests.unit.cli.sample:clock", "Tell the time."),
    "clear": Entry("tests.unit.cli.sample:clear", "Clear it."),
    "broken": Entry("tests.unit.cli.nowhere:broken", "Cannot be imported."),
}
SAMPLE = "tests.unit.cli.sample"


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> LazyGroup:
    monkeypatch.delitem(sys.modules, SAMPLE, raising=False)
    return LazyGroup("group", table=TABLE)


def test_help_imports_nothing(group: LazyGroup) -> None:
    told = CliRunner().invoke(group, ["--help"])
    assert told.exit_code == 0
    assert "clock   Tell the time." in told.output
    assert SAMPLE not in sys.modules


def test_a_command_is_imported_when_it_is_called(group: LazyGroup) -> None:
    told = CliRunner().invoke(group, ["clock"])
    assert (told.exit_code, told.output) == (0, "noon\n")
    assert SAMPLE in sys.modules


def test_completion_imports_nothing(group: LazyGroup) -> None:
    offered = group.shell_complete(click.Context(group), "cl")
    assert [(choice.value, choice.help) for choice in offered] == [
        ("clock", "Tell the time."),
        ("clear", "Clear it."),
    ]
    assert SAMPLE not in sys.modules


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("clok", "no such command 'clok'; did you mean 'clock'?"),
        ("cleer", "no such command 'cleer'; did you mean 'clear'?"),
        ("xyz", "no such command 'xyz'; there are: clock, clear, broken"),
        ("", "no such command ''; there are: clock, clear, broken"),
    ],
)
def test_an_unknown_command_is_answered_with_the_nearest(
    group: LazyGroup, name: str, said: str
) -> None:
    with pytest.raises(click.UsageError) as refused:
        group.resolve_command(click.Context(group), [name])
    assert refused.value.message == said
    assert group.get_command(click.Context(group), name) is None


def test_one_broken_command_leaves_the_others_alone(group: LazyGroup) -> None:
    assert isinstance(CliRunner().invoke(group, ["broken"]).exception, ModuleNotFoundError)
    assert CliRunner().invoke(group, ["clear"]).exit_code == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_entry_of_the_real_table_leads_to_its_command(name: str) -> None:
    group = LazyGroup("noetl", table=COMMANDS)
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.name == name
    assert command.help


def groups_in(group: click.Group, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Every group of commands, by the words that call it."""
    context = click.Context(group)
    below = {name: group.get_command(context, name) for name in group.list_commands(context)}
    found = [
        one
        for name, command in below.items()
        if isinstance(command, click.Group)
        for one in groups_in(command, (*path, name))
    ]
    return [path, *found]


@pytest.mark.parametrize("path", groups_in(program, ()), ids=" ".join)
def test_help_of_a_group_cuts_no_sentence(path: tuple[str, ...]) -> None:
    told = CliRunner().invoke(program, [*path, "--help"], terminal_width=80)
    cut = [line for line in told.output.splitlines() if line.rstrip().endswith("...")]
    assert [line for line in cut if not line.startswith("Usage: ")] == []
