"""`noetl schema`: the JSON Schema by which editors complete and check playbooks (VAL-4)."""

import json

import click

from noetl.cli.output import print_line, write
from noetl.cli.source import FILE
from noetl.kinds.table import KINDS
from noetl.playbook.schema import json_schema, trigger_schema
from noetl.tools.plugins import KnownKinds

EPILOG = """\b
Examples:
  noetl schema -o playbook.schema.json

\b
Then point the editor to it in the first line of a playbook:
  # yaml-language-server: $schema=./playbook.schema.json
"""


@click.command(epilog=EPILOG)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=FILE,
    help="Write to FILE instead of standard output.",
)
@click.option(
    "--kind",
    type=click.Choice(["playbook", "trigger"]),
    default="playbook",
    help="Of which document; playbook.",
)
@click.option("--json", is_flag=True, expose_value=False, help="No effect: the output is JSON.")
def schema(output: str | None, kind: str) -> None:
    """Print the JSON Schema of playbooks, for completion and checks in an editor."""
    if kind == "trigger":
        write(json.dumps(trigger_schema(), indent=2, ensure_ascii=False) + "\n", output)
        return
    known = KnownKinds()
    for tool in known.values():
        if tool.fault is not None and tool.name not in KINDS:  # a plugin
            print_line(f"warning: without the kind '{tool.name}': {tool.fault}", err=True)
    usable = {name: tool for name, tool in known.items() if tool.fault is None}
    write(json.dumps(json_schema(usable), indent=2, ensure_ascii=False) + "\n", output)
