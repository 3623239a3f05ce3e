"""
The frames of a live stream, made once for all who follow (decision 0074).

However many read the log of one execution, each page of it is encoded once. A page is kept while
others may still come for it; what is kept is bounded, and forgotten when a secret becomes known.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from noetl.api.answers import shown
from noetl.masking import KNOWN
from noetl.messages.codec import recorded_hints, recorded_mappings
from noetl.messages.envelope import envelope, timestamp
from noetl.messages.filtering import wanted
from noetl.messages.iterations import Counts, count, is_inside
from noetl.ports.event_log import LogRow
from noetl.server.replay import enveloped

MOST_KEPT = 16 * 1024 * 1024
"""Bytes of frames."""
AROUND = 1024
"""Bytes that a piece takes beside its frames, about: a name that no event has leaves it empty."""
COUNTS = "counts"
"""The event of a frame that counts what happened inside iterations."""


class StreamForm(NamedTuple):
    """What of a log a reader asked for."""

    name: str | None = None
    iterations: bool = True


class FollowedLog(NamedTuple):
    """The log that a reader follows."""

    execution_id: str
    trace: str | None
    form: StreamForm


class Piece(NamedTuple):
    """Frames that are sent at once, and the `seq` up to which they tell the log."""

    frames: bytes
    last: int


class SharedFrames:
    """Pieces by what they show and where they begin; the least recently used goes first."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._pieces: OrderedDict[tuple[FollowedLog, int], Piece] = OrderedDict()
        self._size = 0
        self._secrets = KNOWN.generation
        self.made = 0
        """How many pieces were encoded."""

    def kept(self, log: FollowedLog, after: int) -> Piece | None:
        """What follows `after`, where somebody else has read it before."""
        if self._secrets != KNOWN.generation:
            self._pieces.clear()
            self._size, self._secrets = 0, KNOWN.generation
        found = self._pieces.get((log, after))
        if found is not None:
            self._pieces.move_to_end((log, after))
        return found

    def of(self, log: FollowedLog, rows: Sequence[LogRow], after: int) -> bytes:
        """The frames of these rows behind `after`."""
        found = self.kept(log, after)
        if found is not None and found.last == rows[-1].last:
            return found.frames
        self.made += 1
        made = b"".join(frames_of(log, rows, after))
        self._keep((log, after), Piece(made, rows[-1].last))
        return made

    def _keep(self, key: tuple[FollowedLog, int], piece: Piece) -> None:
        before = self._pieces.pop(key, None)
        self._size += size_of(piece) - (0 if before is None else size_of(before))
        self._pieces[key] = piece
        while self._size > self._most:
            _, gone = self._pieces.popitem(last=False)
            self._size -= size_of(gone)


def size_of(piece: Piece) -> int:
    return AROUND + len(piece.frames)


def frames_of(log: FollowedLog, rows: Sequence[LogRow], after: int) -> Iterator[bytes]:
    if not log.form.iterations:
        yield from counted_frames(log, rows, after)
        return
    is_wanted = wanted(log.form.name)
    for row in rows:
        for event in enveloped(row, log.execution_id, log.trace, after):
            if is_wanted(event):
                yield frame(event)


def counted_frames(log: FollowedLog, rows: Sequence[LogRow], after: int) -> Iterator[bytes]:
    """
    What happens outside iterations, and counts of the rest. Each event is in one frame: the id of
    counts is the last `seq` in them, so that whoever resumes there misses and doubles nothing.
    """
    is_wanted = wanted(log.form.name)
    counts: Counts = {}
    counted, at = 0, 0
    for row in rows:
        events: list[dict[str, Any]] | None = None
        for offset, hint in enumerate(recorded_hints(log.execution_id, row.first, row.events)):
            seq = row.first + offset
            if seq <= after:
                continue
            if is_inside(hint):
                count(counts, hint)
                counted, at = seq, row.at
                continue
            if counted:
                yield counts_frame(counts, counted, at)
                counts, counted = {}, 0
            if events is None:
                events = recorded_mappings(log.execution_id, row.first, row.events)
            told = envelope(
                events[offset],
                execution_id=log.execution_id,
                seq=seq,
                at=row.at,
                trace_id=log.trace,
            )
            if is_wanted(told):
                yield frame(told)
    if counted:
        yield counts_frame(counts, counted, at)


def frame(event: dict[str, Any]) -> bytes:
    """JSON has no line breaks of its own, so one `data` line holds it."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (
        event["seq"],
        event["name"].encode(),
        shown(event),
    )


def counts_frame(counts: Counts, seq: int, at: int) -> bytes:
    told = {"seq": seq, "name": COUNTS, "timestamp": timestamp(at), "runs": counts}
    return b"id: %d\nevent: counts\ndata: %s\n\n" % (seq, msgspec.json.encode(told))
