"""Where a command's product goes: standard output, or the file named by `-o`."""

from pathlib import Path

import click

from noetl.cli.source import reason_of
from noetl.errors import UnwritableFile


def write(text: str | bytes, out: str | None) -> None:
    """Write the whole text to standard output, or to a file where one is named."""
    if out is None or out == "-":
        ended = text.endswith("\n") if isinstance(text, str) else text.endswith(b"\n")
        click.echo(text, nl=not ended)
        return
    try:
        Path(out).write_bytes(text.encode() if isinstance(text, str) else text)
    except (OSError, ValueError) as wrong:
        raise UnwritableFile(f"cannot write '{out}': {reason_of(wrong)}") from None


def replace(text: str, out: str) -> None:
    """Write a file that exists anew, whole or not at all; its mode stays, a link is followed."""
    target = Path(out).resolve()
    beside = target.with_name(f".{target.name}.migrating")
    try:
        beside.write_bytes(text.encode())
        beside.chmod(target.stat().st_mode)
        beside.replace(target)
    except (OSError, ValueError) as wrong:
        beside.unlink(missing_ok=True)
        raise UnwritableFile(f"cannot write '{out}': {reason_of(wrong)}") from None
