"""`noetl server`: start, stop and look at the server of this home; its tokens."""

import click

from noetl.cli import exits
from noetl.cli.background.crew import TIED
from noetl.cli.background.launch import await_ready, follow, launch, stop, variables
from noetl.cli.contexts import Target
from noetl.cli.lazy import HelpfulGroup
from noetl.cli.output import JSON, examples, needs_extra, print_json, print_line, tell
from noetl.cli.running.words import count
from noetl.cli.target import aimed, at_server
from noetl.cli.tokens import token
from noetl.extras import is_installed
from noetl.messages.envelope import timestamp
from noetl.node.pid_file import PidFile, RunningProcess, shard_file, shards_of
from noetl.settings import Settings, read_settings
from noetl.tools.environment import VARIABLES

EPILOG = """\b
Examples:
  noetl server start --worker 4
  noetl server status
  noetl server logs --follow
  noetl server stop
"""
START = """\b
Examples:
  noetl server start --worker 4
  noetl server start --foreground --port 8800
  noetl server start --db postgresql://noetl@db/noetl --queue nats://queue:4222
"""
NAME = "server"
PATIENCE = 60.0


@click.group(cls=HelpfulGroup, epilog=EPILOG, invoke_without_command=True)
def server() -> None:
    """Start, stop and inspect the server of this home, and manage its tokens."""


FOLLOW = click.option(
    "--follow", "following", is_flag=True, help="Follow new lines until the process ends."
)
LINES = click.option(
    "--lines", type=click.IntRange(min=1), metavar="N", help="Only the last N lines."
)
WAIT = click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=PATIENCE,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for it.",
)


OPEN = click.option(
    "--auth/--open",
    default=None,
    help="Require tokens [--auth], or let everyone on this machine in.",
)


@server.command(epilog=START)
@click.option("--foreground", is_flag=True, help="Run in the foreground; Ctrl-C stops it.")
@click.option("--host", metavar="HOST", help="Address to listen on [127.0.0.1].")
@click.option("--port", metavar="PORT", help="Port to listen on [8765]; 0: any free port.")
@click.option("--db", metavar="URL", help="PostgreSQL for the log; default: SQLite in the home.")
@click.option("--queue", metavar="URL", help="NATS to wake workers with.")
@click.option(
    "--worker",
    "workers",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also start N workers that stop with the server.",
)
@click.option(
    "--shards",
    type=click.IntRange(min=1, max=64),
    default=1,
    metavar="N",
    help="Run N server processes behind one address (PostgreSQL and NATS) [1].",
)
@click.option("--shard", type=int, hidden=True)
@click.option(TIED, "with_parent", is_flag=True, hidden=True)
@OPEN
@WAIT
@JSON
def start(
    foreground: bool,
    workers: int,
    shards: int,
    shard: int | None,
    with_parent: bool,
    timeout: float,
    as_json: bool,
    **flags: str | bool | None,
) -> int:
    """
    Start a server on this home, in the background unless --foreground.

    Its log and pid file are in `run` in the home, and the token of the owner of the home is in
    `token`, where commands on the same home find it. With --open it needs no token and listens on
    loopback only. While the database or the queue is unavailable, it waits and says so.

    A server process uses one core. With --shards N one process listens and minds N servers:
    connections are spread over them, and one that dies is started again.
    """
    demand_framework("noetl server start")
    settings = read_settings(flags=flags)
    if shards > 1:
        from noetl.cli.background.sharding import refuse_alone

        refuse_alone(settings, shards)
    if foreground:
        if shard is not None:
            return as_shard(settings, workers, shard, with_parent=with_parent)
        return in_foreground(settings, workers, shards)
    words = ["server", "start", "--foreground", "--worker", str(workers), "--shards", str(shards)]
    return in_background(settings, words, timeout, as_json)


def demand_framework(command: str) -> None:
    if not is_installed("server"):
        raise needs_extra(command, "server")


def in_foreground(settings: Settings, workers: int, shards: int) -> int:
    from noetl.cli.background.serving import run_server
    from noetl.cli.background.sharding import run_shards
    from noetl.cli.running.attend import runner, settle_garbage

    with PidFile(settings.home, NAME).held("a server") as held:
        settle_garbage()
        if shards > 1:
            runner()(run_shards(settings, held, shards=shards, workers=workers))
        else:
            runner()(run_server(settings, held, workers=workers))
    return exits.OK


def as_shard(settings: Settings, workers: int, place: int, *, with_parent: bool) -> int:
    """One of several servers of the home; the process that started it holds the home's own file."""
    from noetl.cli.background.serving import run_server
    from noetl.cli.running.attend import runner, settle_garbage

    with shard_file(settings.home, place).held("a shard", with_server=True) as held:
        settle_garbage()
        runner()(run_server(settings, held, workers=workers, shard=with_parent))
    return exits.OK


def in_background(settings: Settings, words: list[str], patience: float, as_json: bool) -> int:
    """Start it apart from this terminal, and come back when it answers."""
    file = PidFile(settings.home, NAME)
    if file.running() is not None:
        raise file.in_use("a server")
    launched = launch(words, file.log, {**VARIABLES, **variables(settings)})
    running = await_ready(
        launched, lambda: ready(file), what="the server", file=file, patience=patience
    )
    if running is None:
        raise click.ClickException(
            f"the server is not ready after {patience:g} s; it continues in the background "
            "(`noetl server logs --follow` shows it, `noetl server stop` ends it)"
        )
    if as_json:
        print_json(standing(running, is_ready=True, file=file))
    else:
        print_line(f"the server is ready at {running.url} (process {running.pid})")
        print_line(f"export NOETL_SERVER={running.url}", err=True)
    return exits.OK


def ready(file: PidFile) -> RunningProcess | None:
    """The server, once it answers that it is ready."""
    running = file.running()
    if running is None or running.url is None:
        return None
    return running if answers(running.url) else None


def answers(url: str) -> bool:
    from noetl.client.client import Client
    from noetl.errors import ServerAway, ServerRefused

    try:
        with Client(url) as client:
            return client.ready().status == "ok"
    except (ServerAway, ServerRefused):
        return False


def standing(running: RunningProcess | None, *, is_ready: bool, file: PidFile) -> dict[str, object]:
    return {
        "running": running is not None,
        "ready": is_ready,
        "url": None if running is None else running.url,
        "pid": None if running is None else running.pid,
        "started_at": None if running is None else timestamp(running.started_at),
        "uses": {} if running is None else running.uses,
        "log": str(file.log),
        "shards": [
            {"shard": place, "pid": None if found is None else found.pid}
            for place, found in shards_of(file.home)
        ],
    }


@server.command("stop", epilog=examples("server stop"))
@WAIT
@JSON
def stop_server(timeout: float, as_json: bool) -> None:
    """
    Stop the server of this home, and wait until it has ended.

    Its workers finish what they run; its executions move to another server or wait for this one.
    """
    home = read_settings().home
    ended = stop([PidFile(home, NAME)], patience=timeout)
    pid = ended[0].pid if ended else None
    said = f"the server has stopped (process {pid})" if ended else f"no server runs on {home}"
    tell({"stopped": bool(ended), "pid": pid}, said, as_json=as_json)


@server.command(epilog=examples("server status", "server status --json"))
@JSON
@aimed
def status(as_json: bool, target: Target) -> int:
    """
    Show whether a server runs and is ready; with --server, also list its servers and workers.

    Exit code 1 where none runs, or it is not ready.
    """
    if not target.local:
        return runtime(target, as_json)
    file = PidFile(read_settings().home, NAME)
    running = file.running()
    is_ready = running is not None and running.url is not None and answers(running.url)
    if running is None:
        said = f"no server runs on {read_settings().home}; start one: noetl server start"
    else:
        word = "ready" if is_ready else "not ready: see noetl server logs"
        since = timestamp(running.started_at)
        said = f"running at {running.url}, process {running.pid}, since {since}, {word}"
        said += "".join(f"\n  {name}: {value}" for name, value in running.uses.items())
        for place, found in shards_of(file.home):
            at = "is away; it is started again" if found is None else f"process {found.pid}"
            said += f"\n  shard {place}: {at}"
    tell(standing(running, is_ready=is_ready, file=file), said, as_json=as_json)
    return exits.OK if is_ready else exits.FAILED


def runtime(target: Target, as_json: bool) -> int:
    """What a server says of itself and of those it knows."""
    found = at_server(target, lambda client: client.runtime())
    lines = [f"{target.url}: server {found.server}, version {found.version}"]
    for one in found.servers:
        at = f" at {one.address}" if one.address else ""
        lines.append(f"  server {one.name}{at}, seen {one.seen_at}")
    for pool in found.pools:
        busy = f"{pool.busy} of {pool.slots} slots busy"
        lines.append(f"  pool {pool.name}: {count(pool.workers, 'worker')}, {busy}")
    if not found.workers:
        start = f"noetl worker start --server {target.url}"
        lines.append(f"  no workers yet; if none is starting, start one: {start}")
    lines += [f"  waits for {lack}" for lack in found.waits_for]
    tell(found, *lines, as_json=as_json)
    return exits.OK


@server.command(epilog=examples("server logs", "server logs --follow"))
@FOLLOW
@LINES
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def logs(following: bool, lines: int | None, as_json: bool) -> None:
    """Print the log of the server."""
    show_log(PidFile(read_settings().home, NAME), following, lines, as_json)


def show_log(file: PidFile, following: bool, lines: int | None, as_json: bool) -> None:
    def write(line: str) -> None:
        tell({"log": file.name, "text": line}, line, as_json=as_json)

    if not follow(file, follow=following, lines=lines, write=write):
        print_line(f"nothing was logged yet: there is no {file.log}", err=True)


server.add_command(token)
