"""`noetl export --follow`: hands over what is recorded, until it is stopped (EVT-6)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from yarl import URL

from noetl.cli.output import print_line
from noetl.cli.running.words import count
from noetl.cli.target import Asked
from noetl.errors import LogUnavailable, ReceiverUnavailable, ServerAway, UnwritableFile
from noetl.exports import clickhouse
from noetl.exports.export import FORMS, ExportBody
from noetl.exports.files import sync, write_durably
from noetl.exports.following import Follower, Take
from noetl.exports.otlp import check_answer
from noetl.exports.parquet import write_parquet
from noetl.exports.position import PositionFile
from noetl.exports.receiver import Receiver
from noetl.messages.envelope import timestamp

if TYPE_CHECKING:
    from noetl.cli.export import ExportRequest, Signed

EVERY = 10.0
LONGEST = 60.0
"""Seconds between two attempts while somebody is away."""
SEGMENT, SEGMENT_BYTES = 100_000, 32 * 1_048_576
"""Of one file."""
AWAY = (ReceiverUnavailable, ServerAway, LogUnavailable, UnwritableFile)
"""Whoever should give or take is not there now: it is waited for."""


async def followed(asked: Asked, wanted: "ExportRequest", signed: "Signed | None") -> NoReturn:
    """Look, hand over, wait; for ever."""
    folder = Path(wanted.out or ".")
    place = Path(wanted.position) if wanted.position is not None else folder / "position.json"
    form = FORMS[wanted.form]
    files = signed is None
    async with AsyncExitStack() as stack:
        kept = stack.enter_context(PositionFile(place, wanted.form))
        since = "" if wanted.since is None else timestamp(wanted.since)
        take = (
            partial(write_segment, folder, wanted.form)
            if signed is None
            else await sender(stack, wanted, *signed)
        )
        follower = Follower(
            asked.executions,
            asked.events,
            kept,
            kept.read(since),
            take,
            most=SEGMENT if files else form.most,
            most_bytes=SEGMENT_BYTES if files else form.most_bytes,
        )
        await look_for_ever(follower, EVERY if wanted.every is None else wanted.every)


async def look_for_ever(follower: Follower, every: float) -> NoReturn:
    pause, said = every, ""
    while True:
        try:
            exported = await follower.look()
        except AWAY as away:
            pause = min(LONGEST, max(1.0, 2 * pause))
            if str(away) != said:
                said = str(away)
                print_line(f"{said}; it is tried again, and nothing is lost", err=True)
        else:
            pause, said = every, ""
            if exported:
                print_line(f"exported {count(exported, 'event')}", err=True)
            while follower.lost:
                print_line(
                    f"execution {follower.lost.pop()} was removed before all of it was exported",
                    err=True,
                )
        await asyncio.sleep(pause)


async def write_segment(folder: Path, form: str, body: ExportBody, number: int) -> None:
    """The file of this number: one that a death left half known is written again."""
    path = folder / f"events-{number:08d}.{form}"
    if form == "parquet":
        await write_parquet(path, alone(body))
        sync(path)
        sync(folder)
    else:
        write_durably(path, body.content)


async def alone(body: ExportBody) -> AsyncIterator[ExportBody]:
    yield body


async def sender(
    stack: AsyncExitStack, wanted: "ExportRequest", url: URL, headers: dict[str, str]
) -> Take:
    """Whoever sends to the receiver; events that it gets again, after a death, have their ids."""
    spans = wanted.form == "otlp"
    content_type = "application/json" if spans else "application/x-ndjson"
    receiver = await stack.enter_async_context(
        Receiver(url, content_type=content_type, headers=headers)
    )
    table = wanted.table or clickhouse.TABLE
    made = not wanted.create

    async def take(body: ExportBody, _number: int) -> None:
        nonlocal made
        if not made:
            await clickhouse.create(receiver, table)
            made = True
        if spans:
            check_answer(receiver.shown, await receiver.send(body.content))
        else:
            await clickhouse.insert(receiver, table, body.content)

    return take
