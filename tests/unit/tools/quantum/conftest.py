"""The bench of these tests."""

from collections.abc import Iterator

import pytest
from tests.unit.tools.quantum.bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()
