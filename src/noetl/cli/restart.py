"""`noetl restart`: a new execution that takes over what an old one recorded (RST)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from noetl.api.types import StartedExecution
from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.moment import Moment
from noetl.cli.output import print_json, print_line, some_execution
from noetl.cli.running.ending import see_through
from noetl.cli.running.payload import SETS, payload_of
from noetl.cli.running.words import count
from noetl.cli.source import FILE, PlaybookSource, read_source
from noetl.cli.target import Asked, aimed, ask, at_server, pages
from noetl.cli.validate import tell_findings, tell_warnings
from noetl.client.client import Client
from noetl.errors import NoetlError, PlaybookRejected, RestartRefused
from noetl.messages.envelope import timestamp
from noetl.node.local import LocalNode
from noetl.node.restarts import Followed
from noetl.playbook.load import load
from noetl.server.active import ActiveExecution

EPILOG = """\b
Examples:
  noetl restart 06h3k9v2q8m4x0c7w1
  noetl restart 06h3k9v2q8m4x0c7w1 --from load
  noetl restart 06h3k9v2q8m4x0c7w1 --from load:3,17 --set region=eu
  noetl restart 06h3k9v2q8m4x0c7w1 --file corrected.yaml
  noetl restart --failed --path 'reports/*' --since 24h --yes

\b
Exit codes: as of `noetl run`; at a server without --wait 0 once it has it on its disk. Of many
the worst.
"""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    chosen: list[str]
    version: str | None
    file: str | None
    payload: dict[str, Any]
    key: str | None
    wait: bool
    as_json: bool


@click.command(epilog=EPILOG)
@click.argument("execution_id", metavar="[ID]", required=False, shell_complete=some_execution)
@click.option(
    "--from",
    "chosen",
    multiple=True,
    metavar="STEP[:I,J]",
    help="Run STEP again and what came of it; STEP:3,17 of its loop, STEP@RUN not its last run.",
)
@click.option("--failed", is_flag=True, help="Run again what failed, or was stopped (usual).")
@click.option("--version", metavar="V", help="Follow another version: a number or a label.")
@click.option("--file", metavar="FILE", type=FILE, help="Follow this text instead.")
@SETS
@click.option("--path", metavar="GLOB", help="Without ID: all failed ones of these playbooks.")
@click.option("--since", metavar="TIME", type=Moment(), help="Without ID: those begun since TIME.")
@click.option("--yes", is_flag=True, help="Do not ask before restarting many.")
@click.option("--wait", is_flag=True, help="At a server: show it to its end.")
@click.option("--key", metavar="KEY", help="At a server: the same key never restarts twice.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@aimed
def restart(
    execution_id: str | None,
    chosen: tuple[str, ...],
    failed: bool,
    version: str | None,
    file: str | None,
    sets: tuple[str, ...],
    path: str | None,
    since: int | None,
    yes: bool,
    wait: bool,
    key: str | None,
    as_json: bool,
    target: Target,
) -> int:
    """
    Run again what failed in an execution, or from a step on, as a new execution.

    Everything else stays as the old one recorded it, and is not run again. The old execution
    must have ended, and stays as it is.
    """
    refuse_mixed(execution_id, chosen, failed=failed, many=path is not None or since is not None)
    if version is not None and file is not None:
        raise click.UsageError("--version and --file cannot both be given")
    wish = Wish(
        chosen=list(chosen),
        version=version,
        file=file,
        payload=payload_of(None, sets),
        key=key,
        wait=wait,
        as_json=as_json,
    )
    if execution_id is not None:
        return restart_one(target, execution_id, wish)
    return restart_many(target, wish, path, since, yes=yes)


def refuse_mixed(
    execution_id: str | None, chosen: Sequence[str], *, failed: bool, many: bool
) -> None:
    if chosen and failed:
        raise click.UsageError("--from and --failed cannot both be given")
    if execution_id is None and (chosen or not failed):
        raise click.UsageError("give an ID, or --failed with --path or --since for many")
    if execution_id is None and not many:
        raise click.UsageError("without an ID, --path or --since says which failed ones")
    if execution_id is not None and many:
        raise click.UsageError("--path and --since choose many: leave the ID out")


# ── one ──────────────────────────────────────────────────────────────────────────────────────


def restart_one(target: Target, execution_id: str, wish: Wish) -> int:
    source = None if wish.file is None else read_source(wish.file)
    try:
        if target.local:
            return here(execution_id, wish, source)
        return there(target, execution_id, wish, source)
    except PlaybookRejected as rejected:
        assert source is not None, "only a file is checked here"
        return tell_findings(source, rejected.findings, wish.as_json, err=True)


def here(execution_id: str, wish: Wish, source: PlaybookSource | None) -> int:
    """In this process, to its end."""
    if wish.key is not None:
        raise click.UsageError("--key needs a server: --server URL or NOETL_SERVER")

    async def begin(local: LocalNode) -> ActiveExecution:
        followed = None if source is None else await followed_in(local, source, wish)
        active = await local.restart(
            execution_id,
            chosen=wish.chosen,
            version=wish.version,
            payload=wish.payload,
            followed=followed,
        )
        warnings = await local.library.warnings(active.plan.digest, wish.payload)
        tell_warnings(PlaybookSource(active.plan.path, b""), tuple(warnings), "tell")
        return active

    return see_through(begin, as_json=wish.as_json)


async def followed_in(local: LocalNode, source: PlaybookSource, wish: Wish) -> Followed:
    """The text of a file, kept like one that `noetl run` begins with."""
    file = wish.file or "-"
    folder = str(Path.cwd() if file == "-" else Path(file).absolute().parent)
    plan = await local.library.plan_of(source.text, folder)
    return Followed(plan, plan.version, folder)


def there(target: Target, execution_id: str, wish: Wish, source: PlaybookSource | None) -> int:
    """At a server; a file becomes a version of its catalog first."""

    def begin(client: Client) -> StartedExecution:
        version: int | str | None = wish.version
        if source is not None:
            refuse_other(source, client.standing(execution_id).path)
            registered = client.register(source.text)
            version = registered.entry.version
            if registered.fresh:  # stays in the catalog, also where the restart is refused
                said = f"registered, {registered.entry.path} version {version}"
                print_line(f"{source.name}: {said}", err=True)
        return client.restart(
            execution_id, chosen=wish.chosen, version=version, payload=wish.payload, key=wish.key
        )

    begun = at_server(target, begin)
    tell_warnings(PlaybookSource(begun.path, b""), tuple(begun.warnings), "tell")
    if wish.wait:
        from noetl.cli.running.following import follow_through

        return follow_through(target, begun.execution_id, begun.path, as_json=wish.as_json)
    if wish.as_json:
        print_json(begun)
    else:
        print_line(f"{begun.path}: execution {begun.execution_id}, restarted from {execution_id}")
        print_line(f"follow it: noetl events {begun.execution_id} --follow", err=True)
    return exits.OK


def refuse_other(source: PlaybookSource, path: str) -> None:
    """Before it is registered: what is started by that path next would follow it."""
    document = load(source.text).document
    metadata = document.get("metadata") if isinstance(document, dict) else None
    given = metadata.get("path") if isinstance(metadata, dict) else None
    if given is not None and given != path:
        raise RestartRefused(
            f"the file is of '{given}', the execution of '{path}'; nothing was registered"
        )


# ── many ─────────────────────────────────────────────────────────────────────────────────────


def restart_many(
    target: Target, wish: Wish, path: str | None, since: int | None, *, yes: bool
) -> int:
    """Every failed one that was not restarted yet, after its number was shown, the oldest first."""
    found = ask(target, lambda asked: failed_ones(asked, path, since))
    said = f"{count(len(found), 'failed execution')} to restart"
    if not found:
        known = path is None or ask(target, lambda asked: has_any(asked, path))
        print_line(said if known else f"{said}: no execution has the path '{path}'", err=True)
        return exits.OK
    if not yes and not click.confirm(f"{said}: go on? (--yes does not ask)", err=True):
        return exits.UNUSABLE
    print_line(said, err=True)
    worst = exits.OK
    for execution_id in found:
        try:
            worst = max(worst, restart_one(target, execution_id, wish))
        except NoetlError as wrong:  # one that is refused does not keep the others
            print_line(f"{execution_id}: {wrong}", err=True)
            worst = max(worst, exits.FAILED)
    return worst


async def has_any(asked: Asked, path: str) -> bool:
    """A path that nothing has is likely misspelt."""
    async for page in pages(asked.executions, path=path):
        if page.executions:
            return True
    return False


async def failed_ones(asked: Asked, path: str | None, since: int | None) -> list[str]:
    begun: Any = None
    if since is not None:  # a server is asked in words, a home in numbers
        begun = timestamp(since) if hasattr(asked, "client") else since
    rows = [
        row
        async for page in pages(asked.executions, path=path, since=begun)
        for row in page.executions
    ]
    again = {row.origin_execution_id for row in rows}
    failed = [row for row in rows if row.status == "failed" and row.parent_execution_id is None]
    return [row.execution_id for row in reversed(failed) if row.execution_id not in again]
