"""What the example needs: a podman with one small image, since none can be pulled in a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.podman import running


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """The image lives as long as the example runs."""
    with running() as podman:
        yield {"workload": {"image": podman.image}, "environment": podman.environment}
