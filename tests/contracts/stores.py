"""Every adapter of the result store, as the contract suite opens them."""

from collections.abc import Callable
from pathlib import Path

from noetl.adapters.files.result_store import FileResultStore
from noetl.adapters.memory.result_store import MemoryResultStore
from noetl.ports.result_store import ResultStore

STORES: dict[str, Callable[[Path], ResultStore]] = {
    "memory": lambda _: MemoryResultStore(),
    "files": lambda folder: FileResultStore(folder / "results"),
}
"""A new result store adds its line here."""
