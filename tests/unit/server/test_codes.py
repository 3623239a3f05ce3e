"""What a worker is told of a question that could not be answered."""

import pytest

from noetl.errors import LogUnavailable, NoetlError, VersionConflict
from noetl.server.dispatcher import code_of


def kinds_of(*families: type[NoetlError]) -> list[type[NoetlError]]:
    return [*families, *(below for one in families for below in kinds_of(*one.__subclasses__()))]


@pytest.mark.parametrize("kind", kinds_of(LogUnavailable, VersionConflict))
def test_whoever_meets_a_store_that_is_away_asks_later(kind: type[NoetlError]) -> None:
    """As `invalid` the task failed, although nothing was wrong with it."""
    assert code_of(kind.__new__(kind)) == "later"
