"""Where a command's product goes: standard output, or the file named by `-o`."""

from pathlib import Path

import click

from noetl.cli.source import reason_of
from noetl.errors import UnwritableFile


def write(text: str, out: str | None) -> None:
    """Write the whole text to standard output, or to a file where one is named."""
    if out is None or out == "-":
        click.echo(text, nl=not text.endswith("\n"))
        return
    try:
        Path(out).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as wrong:
        raise UnwritableFile(f"cannot write '{out}': {reason_of(wrong)}") from None
