"""Every adapter of the result store, as the contract suite opens them."""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext

import pytest
from tests.contracts.http_lines import over_http

from noetl.adapters.files.result_store import FileResultStore
from noetl.adapters.memory.result_store import MemoryResultStore
from noetl.adapters.postgres.result_store import PostgresResultStore
from noetl.ports.result_store import ResultStore

Opened = AbstractContextManager[ResultStore]


def in_files(request: pytest.FixtureRequest) -> Opened:
    return nullcontext(FileResultStore(request.getfixturevalue("tmp_path") / "results"))


def in_postgres(request: pytest.FixtureRequest) -> Opened:
    return closing(PostgresResultStore(request.getfixturevalue("log_database").url))


STORES: dict[str, Callable[[pytest.FixtureRequest], Opened]] = {
    "memory": lambda _: nullcontext(MemoryResultStore()),
    "files": in_files,
    "postgres": in_postgres,
    "http": over_http,
}
"""A new result store adds its line here."""
