"""`noetl lsp`: the language server that editors start."""

import os
import sys

import click

from noetl.cli.output import examples, needs_extra

EPILOG = examples("lsp") + "\n\n\b\nSet it up: docs/reference/editor.md"


@click.command(epilog=EPILOG)
def lsp() -> None:
    """
    Serve an editor over stdin and stdout (LSP) until the editor ends the session.

    Findings as you type with fixes, completion, documentation under the cursor, go to step.
    """
    try:
        from noetl.cli.editor.server import make_server
    except ModuleNotFoundError:
        raise needs_extra("noetl lsp", "editor") from None
    # The editor alone reads standard output: whatever a plugin prints goes to standard error.
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        make_server().start_io(sys.stdin.buffer, out)
