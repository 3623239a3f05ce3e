"""`noetl view`: an execution in the browser, of a home without a server or of a server."""

import secrets
import time
from functools import partial

import click
import msgspec

from noetl.cli.browser import open_page
from noetl.cli.contexts import Target
from noetl.cli.home import refuse_missing
from noetl.cli.output import ID, examples, print_line
from noetl.cli.server import demand_framework
from noetl.cli.target import aimed, ask
from noetl.settings import read_settings

LOOPBACK = "127.0.0.1"


@click.command(epilog=examples("view last", "view 06h3k9v2q8m4x0c7w1 --no-browser"))
@ID
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port [any that is free].")
@click.option("--browser/--no-browser", default=True, help="Open the browser, or only print where.")
@aimed
def view(execution_id: str, port: int, browser: bool, target: Target) -> None:
    """
    Open an execution in the browser, read-only, until Ctrl-C.

    Of the home, the pages of the web UI are served by this command on loopback, for the one who
    opens the printed address: it signs in once. With --server, the pages of that server are opened.
    """
    ask(target, lambda asked: asked.standing(execution_id))  # whoever names none is told so here
    if not target.local:
        show(f"{target.url}/ui/executions/{execution_id}", browser)
        return
    demand_framework("noetl view")
    from noetl.cli.running.attend import runner

    runner()(serve_home(execution_id, port, browser))


def show(address: str, browser: bool) -> None:
    print_line(address)
    if browser and not open_page(address):
        print_line("no browser could be opened here; open the address yourself", err=True)


async def serve_home(execution_id: str, port: int, browser: bool) -> None:
    """Look at the home, and answer one guest."""
    from noetl.adapters.memory.storage import MemoryStorage
    from noetl.api.context import Guest
    from noetl.api.serve import serve
    from noetl.api.tickets import Tickets, address_with, new_ticket
    from noetl.cli.background.signals import stop_on_signals
    from noetl.node.server import LookingNode
    from noetl.ports.tokens import TokenRow

    settings = msgspec.structs.replace(read_settings(), db=None, queue=None)
    refuse_missing(settings)
    stop, secret = stop_on_signals(), secrets.token_urlsafe(32)
    now = int(time.time() * 1000)
    row = TokenRow(token_id="guest", name="guest", role="viewer", digest="", created_at=now)
    guest = Guest(MemoryStorage().tokens, Tickets(secret, row))
    plane = await LookingNode.open(settings, says=partial(print_line, err=True))

    def ready(url: str) -> None:
        show(address_with(url, f"executions/{execution_id}", new_ticket(secret)), browser)
        print_line("read-only; Ctrl-C ends it", err=True)

    try:
        await serve(plane, LOOPBACK, port, auth=True, guest=guest, stop=stop, ready=ready)
    finally:
        await plane.close()
