"""`noetl completion`: the script that lets a shell complete commands, options and files."""

import click
from click.shell_completion import ShellComplete, get_completion_class

from noetl.cli.output import write

SHELLS = ("bash", "zsh", "fish")

EPILOG = """\b
Examples:
  eval "$(noetl completion bash)"                                       # in ~/.bashrc
  eval "$(noetl completion zsh)"                                        # in ~/.zshrc
  noetl completion fish > ~/.config/fish/completions/noetl.fish
"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell: bash, zsh or fish."""
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "noetl", "_NOETL_COMPLETE")
    # The script only: click's own bash class would first ask the running bash for its version.
    write(ShellComplete.source(script), None)
