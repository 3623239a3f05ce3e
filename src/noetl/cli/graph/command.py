"""`noetl graph`: a playbook as a picture."""

from collections.abc import Callable

import click
import msgspec

from noetl.cli import exits
from noetl.cli.graph.mermaid import mermaid
from noetl.cli.graph.svg import svg
from noetl.cli.output import write
from noetl.cli.source import FILE, read_source
from noetl.cli.validate import content_of, tell_findings
from noetl.errors import PlaybookRejected
from noetl.playbook.load import load_valid
from noetl.server.views.drawing import Drawing, draw
from noetl.tools.plugins import KnownKinds

FORMATS: dict[str, Callable[[Drawing], str]] = {
    "mermaid": mermaid,
    "svg": svg,
    "json": lambda drawing: msgspec.json.encode(drawing).decode(),
}

EPILOG = """\b
Examples:
  noetl graph playbook.yaml
  noetl graph playbook.yaml --format svg -o playbook.svg
  noetl graph old.yaml --migrate

\b
Exit codes: 0 drawn, 2 invalid playbook (its findings are shown), 3 not readable or writable.
"""


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="mermaid",
    show_default=True,
    help="Output format.",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    type=FILE,
    help="Write to OUT instead of standard output.",
)
@click.option("--migrate", is_flag=True, help="Accept a playbook of an older dialect.")
@click.option("--json", "as_json", is_flag=True, help="Print boxes and links as one JSON object.")
def graph(file: str, form: str, output: str | None, migrate: bool, as_json: bool) -> int:
    """
    Draw a playbook: steps, tasks, arcs with their guards, gates, loops and joins.

    FILE is a playbook, or - for standard input.
    """
    source = read_source(file)
    try:
        playbook = load_valid(content_of(source, migrate=migrate), KnownKinds())
    except PlaybookRejected as rejected:
        return tell_findings(source, rejected.findings, as_json, err=True)
    write(FORMATS["json" if as_json else form](draw(playbook)), output)
    return exits.OK
