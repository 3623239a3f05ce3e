"""`noetl worker`: start, stop and look at the workers that run on this machine."""

import click
import msgspec

from noetl.api.home_token import at_home, worker_token
from noetl.cli import exits
from noetl.cli.background.crew import TIED
from noetl.cli.background.launch import stop
from noetl.cli.background.workers import started
from noetl.cli.contexts import Target, named_by_user, target_of, token_at_home
from noetl.cli.lazy import HelpfulGroup
from noetl.cli.output import JSON, examples, print_json, print_line, tell
from noetl.cli.running.words import count
from noetl.cli.server import FOLLOW, LINES, WAIT, show_log
from noetl.errors import SettingRefused
from noetl.messages.envelope import timestamp
from noetl.node.pid_file import FOLDER, PidFile, RunningProcess, pid_files
from noetl.settings import Settings, read_settings

EPILOG = """\b
Examples:
  noetl worker start --server http://127.0.0.1:8765 --count 4
  noetl worker status
  noetl worker stop
"""
START = """\b
Examples:
  noetl worker start --server http://127.0.0.1:8765
  noetl worker start --queue nats://queue:4222 --pool gpu --concurrency 8
  NOETL_TOKEN=… noetl worker start --server https://noetl.example --foreground
"""


@click.group(cls=HelpfulGroup, epilog=EPILOG, invoke_without_command=True)
def worker() -> None:
    """
    Start, stop and inspect workers on this machine.

    A worker has no port of its own: it asks a server (--server) or is woken by NATS (--queue).
    """


POOL = click.option("--pool", metavar="POOL", help="Only workers of this pool.")


@worker.command(epilog=START)
@click.option("--pool", metavar="POOL", help="The pool it belongs to [default].")
@click.option(
    "--concurrency",
    metavar="N",
    help="Number of step runs and parts of loops to run at once [100].",
)
@click.option("--queue", metavar="URL", help="NATS that connects it to the servers.")
@click.option("--server", metavar="URL", help="The server to work for (NOETL_SERVER).")
@click.option("--context", metavar="NAME", help="The server of this context.")
@click.option(
    "--count",
    "number",
    type=click.IntRange(1, 256),
    default=1,
    metavar="N",
    help="Start N worker processes.",
)
@click.option("--foreground", is_flag=True, help="Run in the foreground; Ctrl-C stops it.")
@click.option(TIED, "with_parent", is_flag=True, hidden=True)
@click.option("--place", type=int, hidden=True)
@WAIT
@JSON
def start(
    server: str | None,
    context: str | None,
    number: int,
    foreground: bool,
    with_parent: bool,
    place: int | None,
    timeout: float,
    as_json: bool,
    **flags: str | None,
) -> int:
    """
    Start a worker, in the background unless --foreground.

    Its log and pid file are in `run` in the home. While no server answers, it waits and says so.
    SIGTERM lets it finish what it runs within the drain time; the rest goes to other workers.
    """
    if flags["queue"] is not None and server is not None:
        raise click.UsageError("--queue and --server exclude each other")
    settings = read_settings(flags=flags)
    target = named_by_user(target_of(server, context), "a worker runs what its server sends")
    settings = with_line(settings, target, by_server=server is not None)
    if foreground:
        if number > 1:
            raise click.UsageError("--foreground runs one worker; leave out --count")
        return in_foreground(settings, place, with_parent=with_parent)
    for running in started(settings, number, patience=timeout):
        if as_json:
            print_json(standing(running))
    if not as_json:
        print_line(f"{count(number, 'worker')} of pool '{settings.pool}' started")
    return exits.OK


def with_line(settings: Settings, target: Target, *, by_server: bool) -> Settings:
    """The settings with whom the worker is to ask; without anybody it is refused."""
    if settings.queue is not None and not by_server:
        return settings
    if target.url is None:
        running = PidFile(settings.home, "server").running()
        if running is None or running.url is None:
            raise SettingRefused(
                "a worker needs a server to work for: --server URL, --queue URL, or a server on "
                "this home (`noetl server start`)"
            )
        target = Target(running.url, token_at_home())
    url, token = target.url, target.token
    if url is not None and token is None:
        url, owner = at_home(url, settings.home)
        token = None if owner is None else worker_token(owner)
    return msgspec.structs.replace(settings, queue=None, server=url, token=token)


def in_foreground(settings: Settings, place: int | None, *, with_parent: bool) -> int:
    from noetl.cli.background.working import place_of, work
    from noetl.cli.running.attend import runner, settle_garbage

    with place_of(settings, place, with_server=with_parent) as held:
        settle_garbage()
        runner()(work(settings, held, with_parent=with_parent))
    return exits.OK


def files_of(settings: Settings, pool: str | None) -> list[PidFile]:
    """The pid files of this home's workers."""
    kind = "worker" if pool is None else f"worker-{pool}"
    return pid_files(settings.home, kind)


def standing(running: RunningProcess) -> dict[str, object]:
    return {
        "pid": running.pid,
        "pool": running.pool,
        "started_at": timestamp(running.started_at),
        "with_server": running.with_server,
    }


@worker.command("stop", epilog=examples("worker stop", "worker stop --pool gpu"))
@POOL
@WAIT
@JSON
def stop_workers(pool: str | None, timeout: float, as_json: bool) -> None:
    """Stop the workers of this home, all at once, and wait until each has ended."""
    files = files_of(read_settings(), pool)
    held = [file for file in files if (found := file.running()) and not found.with_server]
    stop(held, patience=timeout)
    said = f"{count(len(held), 'worker')} stopped" if held else "no workers run on this home"
    tell({"stopped": len(held)}, said, as_json=as_json)


@worker.command(epilog=examples("worker status", "worker status --json"))
@POOL
@JSON
def status(pool: str | None, as_json: bool) -> int:
    """List the workers of this home; exit code 1 where there is none."""
    files = files_of(read_settings(), pool)
    running = [found for file in files if (found := file.running()) is not None]
    for found in running:
        tied = ", ends with the server" if found.with_server else ""
        since = timestamp(found.started_at)
        line = f"process {found.pid}, pool {found.pool}, since {since}{tied}"
        tell(standing(found), line, as_json=as_json)
    if not running:
        print_line("no workers run on this home; see: noetl worker start --help", err=True)
    return exits.OK if running else exits.FAILED


@worker.command(epilog=examples("worker logs", "worker logs --follow"))
@POOL
@FOLLOW
@LINES
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def logs(pool: str | None, following: bool, lines: int | None, as_json: bool) -> None:
    """Print the logs of the workers; with --follow, of the one started last."""
    home = read_settings().home
    found = sorted(
        (home / FOLDER).glob(f"worker-{pool or '*'}-*.log"), key=lambda log: log.stat().st_mtime
    )
    files = [PidFile(home, log.stem) for log in found]
    if not files:
        print_line("no worker was started in the background on this home yet", err=True)
    for file in files[-1:] if following else files:
        show_log(file, following, lines, as_json)
