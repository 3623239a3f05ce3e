"""
Which connection makes room for a new one? Found without looking at all of them: thousands that end
and come again would make a server do nothing else.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from uvicorn.server import ServerState

from noetl.api.gate import CALLER
from noetl.ports.tokens import WORKER, TokenRow, maker_of, split_role

if TYPE_CHECKING:
    from noetl.api.intake import Intake

LOOKS: Final = 128
"""Connections that are looked at for one that comes: those that are served go to the end."""
COUNTED_FOR: Final = 1.0
"""Seconds for which it is known who has most connections."""


class Line:
    """The connections of one server: those that were answered, and the others by their begin."""

    def __init__(self) -> None:
        self._answered: OrderedDict[Intake, None] = OrderedDict()
        self._others: OrderedDict[Intake, None] = OrderedDict()
        self._surplus: list[Intake] = []
        self._counted = float("-inf")

    def begins(self, one: "Intake") -> None:
        """Its request is waited for from now on."""
        self.leaves(one)
        self._others[one] = None

    def is_answered(self, one: "Intake") -> None:
        self.leaves(one)
        self._answered[one] = None

    def leaves(self, one: "Intake") -> None:
        self._answered.pop(one, None)
        self._others.pop(one, None)

    def waiting(self, new: "Intake") -> "Intake | None":
        """Whoever is answered or has waited longest, but for the new one; it leaves the line."""
        for line in (self._answered, self._others):
            for _ in range(min(LOOKS, len(line))):
                one, _ = line.popitem(last=False)
                if one.transport.is_closing():
                    continue
                if one is not new and one.is_waiting():
                    return one
                line[one] = None
        return None

    def beyond(self, share: int, now: float) -> "Intake | None":
        """The newest connection of the person who has most, if these are more than a share."""
        if now - self._counted >= COUNTED_FOR:
            crowd = largest_crowd([*self._answered, *self._others])
            self._surplus = sorted(crowd, key=lambda one: one.since)[share:]
            self._counted = now
        while self._surplus:
            one = self._surplus.pop()
            if not one.transport.is_closing():
                return one
        return None


LINES: WeakKeyDictionary[ServerState, Line] = WeakKeyDictionary()


def line_of(state: ServerState) -> Line:
    found = LINES.get(state)
    if found is None:
        found = LINES[state] = Line()
    return found


def largest_crowd(connections: "list[Intake]") -> "list[Intake]":
    """Connections of the person who has most. Workers of one token may be a thousand machines."""
    crowds: dict[str, list[Intake]] = {}
    for one in connections:
        row = (one.scope or {}).get(CALLER)
        if isinstance(row, TokenRow) and split_role(row.role)[0] != WORKER:
            crowds.setdefault(maker_of(row) or row.token_id, []).append(one)
    return max(crowds.values(), key=len, default=[])
