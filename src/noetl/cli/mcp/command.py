"""`noetl mcp`: NoETL for agents, by the Model Context Protocol."""

import click

from noetl.cli.contexts import Target
from noetl.cli.output import examples, needs_extra
from noetl.cli.target import aimed

EPILOG = examples("mcp", "mcp --server http://127.0.0.1:8765") + (
    "\n\n\b\nSet it up: docs/reference/mcp.md"
)


@click.command(epilog=EPILOG)
@aimed
def mcp(target: Target) -> None:
    """
    Serve an agent over stdin and stdout (MCP), until it closes them.

    Tools: validate, migrate, register, run, status, explain, events. They work on the home, or at
    a server with the rights of its token.
    """
    try:
        from noetl.cli.mcp.server import make_server
    except ModuleNotFoundError:
        raise needs_extra("noetl mcp", "mcp") from None
    make_server(target).run("stdio")
