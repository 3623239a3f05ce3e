"""`noetl migrate`: a playbook of an older dialect, written in the canonical language (DIA)."""

from collections.abc import Iterable, Sequence

import click

from noetl.cli import exits
from noetl.cli.findings import render
from noetl.cli.output import print_json, print_line, replace, write
from noetl.cli.source import FILE, PlaybookSource, read_source
from noetl.cli.terminal import Paint, columns, plain, wants_colour
from noetl.cli.validate import translated
from noetl.playbook.dialects.migrate import Migrated
from noetl.playbook.dialects.rewrite import Rewrite

EPILOG = """\b
Examples:
  noetl migrate old.yaml > playbook.yaml
  noetl migrate old.yaml --in-place
  noetl migrate --check playbook.yaml
  noetl run --migrate old.yaml

\b
The report goes to standard error: each rewrite with its old and new line and the reason.
Exit codes: 0 canonical, 1 it would change (--check), 2 it cannot be translated completely or is
broken (then nothing is written), 3 it cannot be read or written.
"""

OTHERS = ("no-playbook", "test-file")
"""What lies beside playbooks and has no older dialect: a check of `*.yaml` passes it."""


@click.command("migrate", epilog=EPILOG)
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "-o", "--output", metavar="FILE", type=FILE, help="Write to FILE instead of standard output."
)
@click.option("--in-place", is_flag=True, help="Change the file itself.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if anything would change.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def migrate_command(
    file: str, output: str | None, in_place: bool, check: bool, as_json: bool
) -> int:
    """
    Translate a playbook of an older dialect; comments, order and spelling are kept.

    FILE is a playbook, or - for standard input. A canonical playbook is printed unchanged.
    """
    if sum((output is not None, in_place, check)) > 1:
        raise click.UsageError("-o, --in-place and --check exclude each other")
    if in_place and file == "-":
        raise click.UsageError("--in-place needs a file, not standard input")
    source = read_source(file)
    migrated = translated(source)
    if check and any(one.code in OTHERS for one in migrated.findings):
        print_line(f"{plain(source.name)}: no playbook, nothing to migrate", err=True)
        return exits.OK
    if as_json:
        facts = {name: getattr(migrated, name) for name in ("changed", "rewrites", "findings")}
        print_json({"file": source.name, **facts})
    else:
        show(source, migrated)
    if not migrated.complete:
        return exits.INVALID
    if check:
        return exits.FAILED if migrated.changed else exits.OK
    deliver(source, migrated, file if in_place else output, in_place=in_place, as_json=as_json)
    return exits.OK


def deliver(
    source: PlaybookSource, migrated: Migrated, out: str | None, *, in_place: bool, as_json: bool
) -> None:
    """The text to where it is wanted; an unchanged one byte for byte."""
    if in_place:
        if migrated.changed and out is not None:
            replace(migrated.text, out)
    elif out is not None or not as_json:
        write(migrated.text if migrated.changed else source.content, out)


def show(source: PlaybookSource, migrated: Migrated) -> None:
    """The report for people, on standard error: the product has standard output for itself."""
    paint, room = Paint(wants_colour(err=True)), columns(err=True)
    for line in told(migrated.rewrites, paint) if migrated.complete else ():
        print_line(line, err=True)
    for text in render(source, migrated.findings, paint, room):
        print_line(text, err=True)
    print_line(f"{plain(source.name)}: {verdict(migrated, paint)}", err=True)


def told(rewrites: Sequence[Rewrite], paint: Paint) -> Iterable[str]:
    """The rewrites by their reason, each with its old and its new line."""
    for reason in dict.fromkeys((one.code, one.message) for one in rewrites):
        alike = [one for one in rewrites if (one.code, one.message) == reason]
        yield f"{paint('note', reason[0])}: {reason[1]}"
        for one in alike:
            lines = f"{one.line:>5} → {one.new_line:<5}"
            yield f"{lines} {plain(one.old)} → {plain(one.new) or '(left out)'}"
        yield ""


def verdict(migrated: Migrated, paint: Paint) -> str:
    """The last line about a file."""
    count = len(migrated.rewrites)
    rewrites = f"{count} rewrite{'s' * (count != 1)}"
    errors = sum(one.severity == "error" for one in migrated.findings)
    if errors:
        faults = f"{errors} error{'s' * (errors != 1)}"
        return f"{paint('error', 'cannot be migrated whole')}, {faults}; nothing is written"
    if migrated.changed:
        return f"{paint('good', 'migrated')}, {rewrites}"
    return f"{paint('good', 'canonical already')}, nothing to change"
