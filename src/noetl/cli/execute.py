"""`noetl execute`: run a registered playbook, at a server or on the local home."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from noetl.adapters.sqlite.locks import FILE as DATABASE
from noetl.api.questions import missing
from noetl.api.types import EntryText
from noetl.cli import exits
from noetl.cli.catalog import REMEDY, ask_catalog
from noetl.cli.contexts import LOCAL, Target
from noetl.cli.output import print_json, print_line, some_playbook
from noetl.cli.running.ending import see_through
from noetl.cli.running.payload import CTX, PAYLOAD, SETS, ctx_of, payload_of
from noetl.cli.source import PlaybookSource
from noetl.cli.target import aimed, at_server
from noetl.cli.validate import Heed, heeding, tell_findings, tell_warnings
from noetl.errors import InputsRejected, PlaybookNotFound, PlaybookRejected
from noetl.node.local import LocalNode
from noetl.playbook.load import load
from noetl.server.active import ActiveExecution
from noetl.settings import read_settings
from noetl.tools.plugins import KnownKinds

EPILOG = """\b
Examples:
  noetl execute reports/daily --set region=eu --wait
  noetl execute reports/daily@2 --payload order.json --json
  noetl execute reports/daily@2024-09-rc1
  noetl execute reports/daily --server http://127.0.0.1:8765 --key order-4711

\b
Exit codes: with --wait those of `noetl run`; without it, 0 once the server has stored the request,
2 where --strict refuses it.
"""


@click.command(epilog=EPILOG)
@click.argument("path", metavar="PATH[@VERSION]", shell_complete=some_playbook)
@click.option(
    "--version", metavar="V", help="Execute this version (a number or a label), not the newest."
)
@SETS
@PAYLOAD
@CTX
@click.option(
    "--wait", is_flag=True, help="Show progress until it ends; exit codes are those of run."
)
@click.option(
    "--key", metavar="KEY", help="With a server: the same key never starts a second execution."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@heeding
@aimed
def execute(
    path: str,
    version: str | None,
    sets: tuple[str, ...],
    payload: str | None,
    ctx: tuple[str, ...],
    wait: bool,
    key: str | None,
    as_json: bool,
    heed: Heed,
    target: Target,
) -> int:
    """
    Execute a playbook of the catalog by its path.

    VERSION is a catalog number or the `metadata.version`; the newest if left out.

    With a server it runs there; --wait shows it here until it ends. Without one it runs in this
    process, like `noetl run`.
    """
    given, first = payload_of(payload, sets), ctx_of(ctx)
    with hint_at_file(path):
        if not target.local:
            return begin_there(path, version, given, first, wait, key, as_json, heed, target)
        if key is not None:
            raise click.UsageError("--key needs a server: --server URL or NOETL_SERVER")
        return begin_here(path, version, given, first, as_json, heed)


@contextmanager
def hint_at_file(path: str) -> Iterator[None]:
    """Whoever names a file is told how it becomes a path of the catalog."""
    try:
        yield
    except PlaybookNotFound:
        if not Path(path).is_file():
            raise
        first = f"register it with `noetl register {path}` and execute the path that it prints"
        said = f"'{path}' is a file: {first}, or run it here: noetl run {path}"
        raise PlaybookNotFound(said) from None


def begin_there(
    path: str,
    version: str | None,
    given: dict[str, Any],
    first: dict[str, Any],
    wait: bool,
    key: str | None,
    as_json: bool,
    heed: Heed,
    target: Target,
) -> int:
    """At a server."""
    try:
        found = None if heed == "quiet" else asked_for(target, path, version)
        if found is not None and not fits(found, given, first, heed, as_json):
            return exits.INVALID
        begun = at_server(
            target,
            lambda client: client.execute(
                path,
                version=version,
                payload=given,
                ctx=first,
                key=key,
                strict=heed == "strict",
            ),
        )
    except InputsRejected as refused:
        source = PlaybookSource(path, b"")
        return tell_findings(source, refused.findings, as_json, err=True, strict=True)
    except KeyboardInterrupt:
        print_line("interrupted; if the server began it, it is in: noetl list", err=True)
        return exits.INTERRUPTED
    if found is None:  # else it was told before it began
        tell_warnings(PlaybookSource(begun.path, b""), tuple(begun.warnings), heed)
    if wait:
        from noetl.cli.running.following import follow_through

        return follow_through(target, begun.execution_id, begun.path, as_json=as_json)
    if as_json:
        print_json(begun)
    else:
        print_line(f"{begun.path}: execution {begun.execution_id}")
        print_line(f"follow it: noetl events {begun.execution_id} --follow", err=True)
    return exits.OK


def begin_here(
    path: str,
    version: str | None,
    payload: dict[str, Any],
    ctx: dict[str, Any],
    as_json: bool,
    heed: Heed,
) -> int:
    """In this process, on the home's catalog; a home that is not there is not made for a miss."""
    if not (read_settings().home / DATABASE).exists():
        raise PlaybookNotFound(f"{missing(path, version)}; {REMEDY}")
    home = Target(None, None, LOCAL)
    found = ask_catalog(home, lambda asked: asked.playbook(path, version=version))
    if not fits(found, payload, ctx, heed, as_json):
        return exits.INVALID

    async def begin(local: LocalNode) -> ActiveExecution:
        return await local.run_text(found.text, folder=None, payload=payload, ctx=ctx)

    return see_through(begin, as_json=as_json)


def asked_for(target: Target, path: str, version: str | None) -> EntryText | None:
    """The playbook that a server would execute; one that it lacks is the server's to refuse."""
    try:
        return ask_catalog(target, lambda asked: asked.playbook(path, version=version))
    except PlaybookNotFound:
        return None


def fits(
    found: EntryText, payload: dict[str, Any], ctx: dict[str, Any], heed: Heed, as_json: bool
) -> bool:
    """Tell what looks wrong before it begins; whether that allows it to begin."""
    source = PlaybookSource(f"{found.path}@{found.version}", found.text.encode())
    loaded = load(found.text, KnownKinds(), brought={"workload": payload, "ctx": ctx})
    try:
        tell_warnings(source, loaded.findings, heed)
    except PlaybookRejected as refused:
        tell_findings(source, refused.findings, as_json, err=True, strict=True)
        return False
    return True
