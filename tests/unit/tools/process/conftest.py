"""The bench of these tests."""

import pytest
from tests.unit.tools.process.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
