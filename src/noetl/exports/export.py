"""One export: chosen executions in one form, body after body, and what it came to (EVT-6)."""

from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from noetl.exports import clickhouse
from noetl.exports.columns import row_of
from noetl.exports.otlp import MOST_SPANS, check_answer, request_of, spans_of
from noetl.exports.reading import WHOLE, Cut, Envelope, Pages, envelopes
from noetl.exports.receiver import Receiver
from noetl.messages.codec import encode_shown
from noetl.messages.times import Times

MOST, MOST_BYTES = 5_000, 1_048_576
"""Of one body: large enough to be worth a request, small enough to hold."""


class ExportBody(msgspec.Struct, frozen=True):
    """What one request carries, or one write."""

    content: bytes
    pieces: int


def lines(pieces: list[bytes]) -> bytes:
    """One piece per line."""
    return b"\n".join(pieces) + b"\n"


class Form(msgspec.Struct, frozen=True):
    """How pieces are put together, and how many at once."""

    joined: Callable[[list[bytes]], bytes] = lines
    most: int = MOST
    most_bytes: int = MOST_BYTES
    noun: str = "row"
    """What one piece is called."""


FORMS: dict[str, Form] = {
    "jsonl": Form(noun="line"),
    "parquet": Form(),
    "otlp": Form(joined=request_of, most=MOST_SPANS, noun="span"),
    "clickhouse": Form(most=clickhouse.MOST_ROWS, most_bytes=clickhouse.MOST_BYTES),
}


async def bodies(pieces: AsyncIterator[bytes], form: Form) -> AsyncIterator[ExportBody]:
    """
    The pieces in their order, joined; a new body begins where one more would be too many.

    The next piece is read when the body before it was taken: a slow receiver slows the reading.
    """
    waiting: list[bytes] = []
    size = 0
    async for piece in pieces:
        if waiting and (len(waiting) >= form.most or size + len(piece) > form.most_bytes):
            yield ExportBody(form.joined(waiting), len(waiting))
            waiting, size = [], 0
        waiting.append(piece)
        size += len(piece)
    if waiting:
        yield ExportBody(form.joined(waiting), len(waiting))


class ExportCounts(msgspec.Struct):
    """What an export came to."""

    executions: int = 0
    events: int = 0
    pieces: int = 0
    """Lines, rows or spans that were handed over."""
    last_seq: int = 0
    """Of the execution that came last: the `--after` of the next export."""


class Export:
    """The events of some executions in one form. Read once, as fast as they are taken."""

    def __init__(self, pages: Pages, ids: Sequence[str], form: str, cut: Cut = WHOLE) -> None:
        self.tally = ExportCounts(last_seq=cut.after)
        self._pages = pages
        self._ids = ids
        self._form = form
        self._cut = cut

    async def bodies(self) -> AsyncIterator[ExportBody]:
        """Everything, joined into bodies; the tally counts those that were taken."""
        async for body in bodies(self._pieces(), FORMS[self._form]):
            yield body
            self.tally.pieces += body.pieces

    async def _pieces(self) -> AsyncIterator[bytes]:
        for execution_id in self._ids:
            self.tally.executions += 1
            if self._form == "otlp":
                events = self._counted(execution_id, WHOLE)
                async for span in spans_of(execution_id, events, self._cut):
                    yield span
                continue
            times = Times()
            async for _, event in self._counted(execution_id, self._cut):
                as_it_is = self._form == "jsonl"
                yield encode_shown(event) if as_it_is else row_of(event, times.take(event))

    async def _counted(self, execution_id: str, cut: Cut) -> AsyncIterator[tuple[int, Envelope]]:
        async for at, event in envelopes(self._pages, execution_id, cut):
            self.tally.last_seq = event["seq"]
            if self._cut.holds(event["seq"], at):
                self.tally.events += 1
            yield at, event


async def send_spans(export: Export, receiver: Receiver) -> None:
    """To a collector of OpenTelemetry."""
    async for body in export.bodies():
        check_answer(receiver.shown, await receiver.send(body.content))


async def send_rows(export: Export, receiver: Receiver, table: str, *, create: bool) -> None:
    """To ClickHouse, into a table that is made where that was asked for."""
    if create:
        await clickhouse.create(receiver, table)
    async for body in export.bodies():
        await clickhouse.insert(receiver, table, body.content)
