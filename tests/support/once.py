"""What takes long and is the same for all processes of a test run, made by the first that asks."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest


def folder_of_all(factory: pytest.TempPathFactory) -> Path:
    """The folder that the processes of this run share, and no other run."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[], Any]) -> Any:
    """What `make` gave whoever came first, as JSON; others wait until it is there."""
    kept = folder_of_all(factory) / f"once-{name}.json"
    with kept.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(msgspec.json.encode(make()))
    return msgspec.json.decode(kept.read_bytes())
