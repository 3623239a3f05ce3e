"""The bench of these tests; a container that a call leaves behind fails the test."""

from collections.abc import Iterator

import pytest
from tests.support.podman import Podman
from tests.unit.tools.container.bench import Bench


@pytest.fixture
def bench(podman: Podman) -> Iterator[Bench]:
    yield Bench(podman)
    assert podman.containers() == []
