"""Each contract test runs once for every adapter."""

from pathlib import Path

import pytest
from tests.contracts.homes import HOMES, Homes
from tests.contracts.stores import STORES
from tests.support.asynchronous import pytest_pyfunc_call  # noqa: F401

from noetl.ports.result_store import ResultStore


@pytest.fixture(params=HOMES)
def homes(request: pytest.FixtureRequest, tmp_path: Path) -> Homes:
    return HOMES[request.param](tmp_path)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ResultStore:
    return STORES[request.param](tmp_path)
