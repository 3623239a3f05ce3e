"""`noetl run`: run a playbook in this process, from its start to its end."""

from pathlib import Path

import click

from noetl.cli import exits
from noetl.cli.running.ending import see_through
from noetl.cli.running.payload import PAYLOAD, SETS, payload_of
from noetl.cli.source import FILE, PlaybookSource, read_source
from noetl.cli.validate import FileVerdict, show, show_json
from noetl.errors import PlaybookRejected
from noetl.node.local import LocalNode
from noetl.playbook.load import load_valid
from noetl.playbook.plan import make_plan
from noetl.server.active import ActiveExecution
from noetl.tools.plugins import KnownKinds

EPILOG = """\b
Examples:
  noetl run playbook.yaml
  noetl run playbook.yaml --set region=eu --set limits.rows=100
  noetl run playbook.yaml --payload order.json --json > result.json
  noetl run old.yaml --migrate

\b
Exit codes: 0 completed, 1 failed or cancelled, 2 invalid playbook, 3 usage or environment,
130 interrupted (the last line says how to go on).
"""


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE", type=FILE)
@SETS
@PAYLOAD
@click.option("--migrate", is_flag=True, help="Take a playbook of an older dialect too.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def run(file: str, sets: tuple[str, ...], payload: str | None, migrate: bool, as_json: bool) -> int:
    """
    Run a playbook in this process; its log is kept in the home folder (NOETL_HOME).

    FILE is a playbook, or - for standard input.
    """
    if file == payload == "-":
        raise click.UsageError("FILE and --payload cannot both be standard input")
    source = read_source(file)
    given = payload_of(payload, sets)
    try:
        content = canonical(source) if migrate else source.content
        playbook = load_valid(content, KnownKinds())
    except PlaybookRejected as rejected:
        return refuse(source, rejected, as_json)
    text = content.decode("utf-8-sig")
    plan = make_plan(playbook, text, KnownKinds())
    folder = str(Path.cwd() if file == "-" else Path(file).absolute().parent)

    async def begin(local: LocalNode) -> ActiveExecution:
        return await local.run_text(text, folder=folder, payload=given, plan=plan)

    return see_through(begin, as_json=as_json)


def canonical(source: PlaybookSource) -> bytes:
    """The canonical text of a playbook in any dialect; PlaybookRejected where it has none."""
    from noetl.cli.migrating import read_migrated, tell_migrated

    migrated = read_migrated(source)
    tell_migrated(source, migrated)
    return migrated.text.encode()


def refuse(source: PlaybookSource, rejected: PlaybookRejected, as_json: bool) -> int:
    """The findings, as `validate` prints them."""
    if as_json:
        show_json(FileVerdict(source.name, False, rejected.findings))
    else:
        show(source, rejected.findings, err=True)
    return exits.INVALID
