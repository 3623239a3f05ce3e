"""What a template has taken of its turns, and what work costs in turns (TPL-5)."""

from collections.abc import Mapping
from typing import Final

import msgspec

from noetl.errors import TakesLong
from noetl.expression.limits import MOST_TURNS, WEIGHT_OF_A_NODE, LimitExceeded

METER: Final = "$meter"
"""Where a scope has the meter that its templates share."""
SHORT: Final = 20_000
"""Turns that an event loop has time for: a turn takes a microsecond at most."""


class Prices(msgspec.Struct, frozen=True):
    """
    The numbers are measured: a turn of any filter takes about as long as one of any other.
    tests/unit/expression/test_costs.py compares them all.
    """

    nodes: int
    """Nodes of a container that are measured in a turn."""
    writing: int
    """How many times as much it costs to write one as text."""
    quoted: int
    """Characters that are quoted in a turn."""
    number: int
    """Turns for a number of hundreds of digits: to write it grows with their square."""
    member: int
    """Turns for each step that a filter goes for its `attribute`."""
    characters: Mapping[str, int]
    """Filter → characters that take a turn, beyond reading them."""
    bounded: frozenset[str]
    """Filters that take no long text."""
    broad: bool
    """Whether methods and containers are charged as filters and texts are."""
    elements: Mapping[str, int]
    """Filter → turns for each element, beyond going through them."""

    @property
    def heavy(self) -> int:
        """What such a number weighs in a container."""
        return self.number * WEIGHT_OF_A_NODE * self.nodes


NOW: Final = Prices(
    nodes=4,
    writing=3,
    quoted=10,
    number=200,
    member=1,
    characters={
        "pprint": 2,
        "striptags": 8,
        "title": 8,
        "truncate": 100,
        "unescape": 8,
        "urlize": 1,
        "wordcount": 8,
        "wordwrap": 1,
        "xmlattr": 8,
    },
    bounded=frozenset(
        {"striptags", "title", "truncate", "unescape", "urlize", "wordcount", "wordwrap"}
    ),
    broad=True,
    elements={"groupby": 8},
)
THEN: Final = Prices(
    nodes=8,
    writing=1,
    quoted=50,
    number=0,
    member=0,
    characters={},
    bounded=frozenset(
        {
            *("pprint", "striptags", "title", "truncate"),
            *("urlize", "wordcount", "wordwrap", "xmlattr"),
        }
    ),
    broad=False,
    elements={},
)
"""Before rules 4 (`RULES` in `messages.requests`): old logs are decided by them."""


class Meter:
    """The turns of one evaluation, or of all that belong to one decision."""

    __slots__ = ("hurried", "most", "prices", "shared", "turns")

    def __init__(
        self, prices: Prices = NOW, *, shared: bool = False, hurried: bool = False
    ) -> None:
        self.prices = prices
        self.shared = shared
        self.hurried = hurried  # on an event loop: what takes longer is to be asked elsewhere
        self.most = SHORT if hurried else MOST_TURNS
        self.turns = 0

    def of_evaluation(self) -> "Meter":
        return self if self.shared else Meter(self.prices, hurried=self.hurried)

    def exceed(self) -> None:
        if self.hurried:
            raise TakesLong
        raise LimitExceeded(f"the template would take more than {MOST_TURNS:,} turns")
