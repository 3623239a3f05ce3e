"""`noetl export`: the log for other programs, as files or sent to a receiver (EVT-6)."""

from pathlib import Path
from typing import Any

import click
import msgspec
from yarl import URL

from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.export_follow import EVERY, followed
from noetl.cli.moment import Moment
from noetl.cli.output import JSON, print_json, print_line
from noetl.cli.running.words import count
from noetl.cli.source import FILE
from noetl.cli.target import Asked, aimed, ask, pages
from noetl.errors import CredentialMissing, ReceiverUnavailable
from noetl.exports import clickhouse
from noetl.exports.export import FORMS, Export, ExportCounts, send_rows, send_spans
from noetl.exports.files import write_file
from noetl.exports.otlp import traces_url
from noetl.exports.parquet import write_parquet
from noetl.exports.reading import Cut, millis
from noetl.exports.receiver import Receiver, shown_url

EPILOG = """\b
Examples:
  noetl export 06h3k9v2q8m4x0c7w1 --format jsonl -o events.jsonl
  noetl export --all --format parquet -o events.parquet
  noetl export --since 24h --format otlp --to http://localhost:4318
  noetl export --all --format jsonl --server http://127.0.0.1:8765
  noetl export --all --format clickhouse --to http://localhost:8123 --create
  noetl export 06h3k9v2q8m4x0c7w1 --after 70 --format jsonl
  noetl export --follow --format parquet -o lake/events
  noetl export --follow --format otlp --to http://localhost:4318 --position traces.json

\b
TIME is a moment (2026-01-31, 2026-01-31T10:00:00Z) or how long ago (90m, 24h, 7d).

\b
Exit codes: 0 exported, 3 usage or environment: no such execution, a file that cannot be
written, a receiver that is away or refuses. Exporting again is safe: ids stay the same.
"""

Signed = tuple[URL, dict[str, str]]
"""Where requests go, and their headers."""


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    ids: tuple[str, ...]
    everything: bool
    since: int | None
    after: int | None
    form: str
    out: str | None
    to: str | None
    auth: str | None
    table: str | None
    create: bool
    follow: bool
    position: str | None
    every: float | None


@click.command(epilog=EPILOG)
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All executions.")
@click.option(
    "--since",
    type=Moment(),
    metavar="TIME",
    help="Only what was recorded since TIME; without an ID, of every execution.",
)
@click.option(
    "--after",
    type=click.IntRange(min=0),
    metavar="SEQ",
    help="Only what comes after SEQ in the log of one execution.",
)
@click.option("--format", "form", type=click.Choice([*FORMS]), required=True, help="Output format.")
@click.option(
    "-o", "--output", "out", type=FILE, metavar="FILE", help="Write to FILE; - is standard output."
)
@click.option("--to", metavar="URL", help="Send to the receiver at URL (otlp, clickhouse).")
@click.option("--auth", metavar="NAME", help="Authenticate with this credential of the home.")
@click.option("--table", help=f"The ClickHouse table.  [default: {clickhouse.TABLE}]")
@click.option("--create", is_flag=True, help="Create the ClickHouse table if it is missing.")
@click.option("--follow", is_flag=True, help="Go on with what is recorded from now on.")
@click.option(
    "--position",
    type=FILE,
    metavar="FILE",
    help="With --follow: where it remembers how far it came.  [default: in the folder of -o]",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help=f"With --follow: seconds between two looks.  [default: {EVERY:g}]",
)
@JSON
@aimed
def export(as_json: bool, target: Target, **options: Any) -> int:
    """
    Export events of the log: as JSON lines, as Parquet, as OpenTelemetry traces, to ClickHouse.

    Events come execution by execution, the oldest first, each in the order of its log. Values
    that are kept outside the log stay references. A trace holds the spans that have ended.

    With --follow it goes on until it is stopped, and where it stopped when it is started again.
    For jsonl and parquet, -o is then a folder, which gets a file for each look.
    """
    wanted = ExportRequest(**{**options, "ids": tuple(dict.fromkeys(options["ids"]))})
    refuse_nonsense(wanted)
    signed = None if wanted.to is None else signed_url(wanted, wanted.to)
    if wanted.follow:
        ask(target, lambda asked: followed(asked, wanted, signed), waits=True)
    tally = ask(target, lambda asked: exported(asked, wanted, signed), waits=True)
    report(wanted, tally, as_json=as_json)
    return exits.OK


def refuse_nonsense(wanted: ExportRequest) -> None:
    """Options that do not go together, with what to write instead."""
    sends = wanted.form in ("otlp", "clickhouse")
    wrong = {
        "give IDs, or --all, or --since": not (
            wanted.ids or wanted.everything or wanted.since is not None or wanted.follow
        ),
        "--follow is about every execution: give no ID and no --after": wanted.follow
        and bool(wanted.ids),
        "--follow writes files into a folder: give it with -o": wanted.follow
        and not sends
        and wanted.out in (None, "-"),
        "--follow sends to a receiver: give --to, and --position": wanted.follow
        and sends
        and (wanted.to is None or wanted.position is None),
        "--position and --every belong to --follow": not wanted.follow
        and (wanted.position is not None or wanted.every is not None),
        "give IDs or --all, not both": bool(wanted.ids) and wanted.everything,
        "--after counts within one execution: give one ID": wanted.after is not None
        and len(wanted.ids) != 1,
        "give -o or --to, not both": wanted.out is not None and wanted.to is not None,
        f"{wanted.form} is written to a file: give -o instead of --to": wanted.to is not None
        and not sends,
        "parquet is not text: give the file with -o": wanted.form == "parquet"
        and wanted.out in (None, "-"),
        "--auth signs requests: give --to": wanted.auth is not None and wanted.to is None,
        "--table and --create belong to --format clickhouse --to URL": (
            wanted.create or wanted.table is not None
        )
        and (wanted.form != "clickhouse" or wanted.to is None),
    }
    for remedy, applies in wrong.items():
        if applies:
            raise click.UsageError(remedy, click.get_current_context())
    if wanted.to is not None:
        address_of(wanted.to)
    clickhouse.checked(wanted.table or clickhouse.TABLE)


def address_of(to: str) -> URL:
    """Where to send, once it is clear that it is an address of HTTP."""
    try:
        url = URL(to)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise click.UsageError(
            f"--to '{shown_url(url) if url.host else to}' is not an address: "
            "expected http://HOST:PORT or https://HOST"
        )
    return url


async def exported(asked: Asked, wanted: ExportRequest, signed: Signed | None) -> ExportCounts:
    """Find the executions, then hand them over."""
    cut = Cut(after=wanted.after or 0, since=wanted.since or 0)
    for execution_id in wanted.ids:
        await asked.events(execution_id, limit=1)
    ids = wanted.ids or await all_ids(asked, cut.since)
    job = Export(asked.events, ids, wanted.form, cut)
    if signed is not None:
        await send(job, wanted, *signed)
    elif wanted.out in (None, "-"):
        async for body in job.bodies():
            click.echo(body.content, nl=False)
    elif wanted.form == "parquet":
        await write_parquet(Path(str(wanted.out)), job.bodies())
    else:
        await write_file(Path(str(wanted.out)), job.bodies())
    return job.tally


async def all_ids(asked: Asked, since: int = 0) -> list[str]:
    """
    Executions to which something was added since a time (ms), the oldest first.

    The order is that of their starts, so that a later export goes on where this one ended. Only
    ids are held: a million of them take less than 100 MB.
    """
    found = [
        row.execution_id
        async for page in pages(asked.executions)
        for row in page.executions
        if millis(row.updated_at) >= since
    ]
    return found[::-1]


async def send(job: Export, wanted: ExportRequest, url: URL, headers: dict[str, str]) -> None:
    """To the receiver; if it fails halfway, say how far it came."""
    content_type = "application/json" if wanted.form == "otlp" else "application/x-ndjson"
    try:
        async with Receiver(url, content_type=content_type, headers=headers) as receiver:
            if wanted.form == "otlp":
                await send_spans(job, receiver)
            else:
                table = wanted.table or clickhouse.TABLE
                await send_rows(job, receiver, table, create=wanted.create)
    except ReceiverUnavailable as wrong:
        taken = count(job.tally.pieces, FORMS[wanted.form].noun)
        raise ReceiverUnavailable(f"{wrong} (taken before that: {taken})") from None


def signed_url(wanted: ExportRequest, to: str) -> Signed:
    """Where to send, with what a credential of the home adds to a request (KEY-1)."""
    url, auth = address_of(to), wanted.auth
    url = traces_url(url) if wanted.form == "otlp" else url
    if auth is None:
        return url, {}
    from multidict import CIMultiDict

    from noetl.cli.credential import in_store
    from noetl.keychain.fields import register
    from noetl.tools.http.credential import sign
    from noetl.tools.refusal import Refusal

    found = in_store(lambda store: store.fields(auth))
    if found is None:
        raise CredentialMissing(f"no credential '{auth}'; register it: noetl credential add {auth}")
    kind, fields = found
    register(fields)
    headers: CIMultiDict[str] = CIMultiDict()
    try:
        url, _ = sign(url, headers, {"kind": kind, **fields}, auth)
    except Refusal as wrong:
        raise CredentialMissing(str(wrong)) from None
    return url, dict(headers)


def report(wanted: ExportRequest, tally: ExportCounts, *, as_json: bool) -> None:
    """What was exported, on standard error where the export itself is on standard output."""
    printed = wanted.to is None and wanted.out in (None, "-")
    if as_json and not printed:
        print_json(as_object(wanted, tally))
        return
    if not tally.events:
        print_line("nothing to export: no event matches", err=True)
        return
    what = f"{count(tally.events, 'event')} of {count(tally.executions, 'execution')}"
    if wanted.form == "otlp":
        what += f", {count(tally.pieces, 'span')}"
    print_line(f"exported {what}", err=True)


def as_object(wanted: ExportRequest, tally: ExportCounts) -> dict[str, Any]:
    return {
        "status": "ok",
        "format": wanted.form,
        "executions": tally.executions,
        "events": tally.events,
        f"{FORMS[wanted.form].noun}s": tally.pieces,
        "last_seq": tally.last_seq if len(wanted.ids) == 1 else None,
    }
