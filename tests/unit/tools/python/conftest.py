"""The bench of these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.tools.python.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()
