"""`noetl up` and `noetl down`: a server with workers, and all it needs, for trying it out."""

import contextlib
import signal
import sys
from collections.abc import Mapping

import click
import msgspec

from noetl.cli import exits
from noetl.cli.background.launch import stop
from noetl.cli.background.voice import say
from noetl.cli.browser import open_page
from noetl.cli.output import JSON, examples, tell
from noetl.cli.server import NAME, OPEN, WAIT, demand_framework, in_background
from noetl.node.pid_file import PidFile
from noetl.settings import Settings, read_settings


@click.command(epilog=examples("up", "up --workers 4 --detach", "up --postgres --nats"))
@click.option(
    "--workers",
    type=click.IntRange(0, 256),
    default=2,
    show_default=True,
    metavar="N",
    help="Number of workers to start.",
)
@click.option("--postgres", is_flag=True, help="Keep the log in a PostgreSQL below the home.")
@click.option("--nats", is_flag=True, help="Wake workers through a NATS below the home.")
@click.option("--port", metavar="PORT", help="Port the server listens on [8765].")
@OPEN
@click.option(
    "--browser/--no-browser",
    default=None,
    help="Open the web UI, signed in [with --open on a terminal].",
)
@click.option(
    "--detach", is_flag=True, help="Return once the server is ready; noetl down stops it."
)
@WAIT
@JSON
def up(
    workers: int,
    postgres: bool,
    nats: bool,
    port: str | None,
    auth: bool | None,
    browser: bool | None,
    detach: bool,
    timeout: float,
    as_json: bool,
) -> int:
    """
    Start a server with workers; stop them with Ctrl-C or `noetl down`.

    --postgres and --nats come from Python packages (the extra `try`) and keep their files in the
    home. They are meant for trying things out; see docs/operate/servers.md for production.
    """
    demand_framework("noetl up")
    settings = read_settings(flags={"port": port, "auth": auth})
    if browser is None:  # decision 0069
        browser = auth is False and sys.stdout.isatty()
    if detach:
        flags = [("--postgres", postgres), ("--nats", nats)]
        words = ["up", "--workers", str(workers), *(flag for flag, wanted in flags if wanted)]
        code = in_background(settings, words, timeout, as_json)
        running = PidFile(settings.home, NAME).running()
        if browser and running is not None and running.url is not None:
            open_ui(settings, running.url)
        return code
    return run_all(settings, workers, browser, with_postgres=postgres, with_nats=nats)


def open_ui(settings: Settings, url: str) -> None:
    """In the browser, signed in as the owner of the home."""
    from noetl.api.home_token import home_token
    from noetl.api.tickets import address_with, new_ticket

    ticket = new_ticket(home_token(settings.home)) if settings.auth else None
    if not open_page(address_with(url, "", ticket)):
        say(f"no browser could be opened here; the web UI is at {url}")


def run_all(
    settings: Settings, workers: int, browser: bool, *, with_postgres: bool, with_nats: bool
) -> int:
    """Everything in one go; each part is stopped by the part that started it."""
    from noetl.cli.background import stores
    from noetl.cli.background.serving import run_server
    from noetl.cli.running.attend import runner

    signal.signal(signal.SIGTERM, interrupt)
    with contextlib.ExitStack() as stack:
        held = stack.enter_context(PidFile(settings.home, NAME).held("a server"))

        def tell(url: str, uses: Mapping[str, str]) -> None:
            held(url, uses=uses)
            if browser:
                open_ui(settings, url)

        if with_postgres:
            url = stack.enter_context(stores.postgres(settings.home, say))
            settings = msgspec.structs.replace(settings, db=url)
        if with_nats:
            url = stack.enter_context(stores.nats(settings.home, say))
            settings = msgspec.structs.replace(settings, queue=url)
        runner()(run_server(settings, tell, workers=workers))
    return exits.OK


def interrupt(_number: int, _frame: object) -> None:
    """Until the server itself listens to signals: what was started already is stopped."""
    raise KeyboardInterrupt


@click.command(epilog=examples("down"))
@WAIT
@JSON
def down(timeout: float, as_json: bool) -> None:
    """Stop what `noetl up` started on this home: workers, server, PostgreSQL and NATS."""
    home = read_settings().home
    ended = stop([PidFile(home, NAME)], patience=timeout)
    said = "all of it has stopped" if ended else f"nothing runs on {home}"
    tell({"stopped": bool(ended)}, said, as_json=as_json)
