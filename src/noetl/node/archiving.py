"""Keeps removed executions outside: their events as a file, their bodies beside it (KEEP-1)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

from noetl.exports.columns import row_of
from noetl.exports.export import FORMS, ExportBody, bodies
from noetl.exports.parquet import write_parquet
from noetl.messages.codec import encode_shown, recorded_mappings
from noetl.messages.times import Times
from noetl.ports.event_log import EventLog
from noetl.ports.object_store import PIECE, Spool
from noetl.ports.result_store import ResultStore
from noetl.server.policies import RetentionPolicy
from noetl.server.replay import enveloped, rows_of

BELOW = "archive"
"""Of the place: `archive/<execution>.jsonl`, and `archive/<execution>.<checksum>.json`."""


class Archives:
    """
    The archives that policies name, each opened when it is first used.

    Names follow from the execution and the same log makes the same bytes: a family that is archived
    again, after a crash or by two servers at once, is there once.
    """

    def __init__(
        self, log: EventLog, results: ResultStore, opening: Callable[[str], ResultStore]
    ) -> None:
        self._log = log
        self._results = results
        self._opening = opening
        self._places: dict[str, ResultStore] = {}

    async def keep(self, policy: RetentionPolicy, family: Sequence[str]) -> None:
        """Durable when it returns; raises ResultsUnavailable."""
        assert policy.archive is not None, "it asks for an archive"
        if policy.archive not in self._places:
            self._places[policy.archive] = self._opening(policy.archive)
        place = self._places[policy.archive]
        for member in family:
            for key in await self._results.keys(member):
                await self._copy(place, key)
        spool = await self._written(family, policy.form)
        try:
            await put(place, f"{family[0]}.{policy.form}", spool)
        finally:
            spool.file.close()

    async def close(self) -> None:
        for place in self._places.values():
            await place.close()

    async def _copy(self, place: ResultStore, key: str) -> None:
        spool = Spool()
        try:
            async with aclosing(self._results.read(key)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    spool.write(piece)
            await put(place, f"{key.replace('/', '.')}.json", spool)
        except FileNotFoundError:
            pass  # the rest of a write that was cut off: nothing can be read there
        finally:
            spool.file.close()

    async def _written(self, family: Sequence[str], form: str) -> Spool:
        pieces = bodies(self._pieces(family, form), FORMS[form])
        if form != "parquet":
            return await spooled(pieces)
        with TemporaryDirectory(prefix="noetl-archive-") as folder:
            file = Path(folder, "events.parquet")
            await write_parquet(file, pieces)
            return await asyncio.to_thread(copied, file)

    async def _pieces(self, family: Sequence[str], form: str) -> AsyncIterator[bytes]:
        """Every event of a family, execution by execution (EVT-6)."""
        for execution_id in family:
            times, trace = Times(), None
            async for row in rows_of(self._log, execution_id):
                if row.first == 1:  # EVT-1: the trace of the first event is that of all
                    trace = recorded_mappings(execution_id, 1, row.events)[0].get("trace_id")
                for event in enveloped(row, execution_id, trace):
                    as_it_is = form == "jsonl"
                    yield encode_shown(event) if as_it_is else row_of(event, times.take(event))


async def put(place: ResultStore, name: str, body: Spool) -> None:
    """Under its name, with the patience of a result store."""
    await place.keep(BELOW, name, body, "archive", None)


async def spooled(pieces: AsyncIterator[ExportBody]) -> Spool:
    spool = Spool()
    async for body in pieces:
        spool.write(body.content)
    return spool


def copied(file: Path) -> Spool:
    spool = Spool()
    with file.open("rb") as source:
        while piece := source.read(PIECE):
            spool.write(piece)
    return spool
