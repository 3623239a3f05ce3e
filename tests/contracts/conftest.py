"""Each contract test runs once for every adapter."""

import pytest
from tests.contracts.homes import HOMES, Homes
from tests.contracts.lines import LINES, Lines
from tests.contracts.stores import STORES, OpenedStore
from tests.support.asynchronous import pytest_pyfunc_call  # noqa: F401


@pytest.fixture(params=HOMES)
def homes(request: pytest.FixtureRequest) -> Homes:
    return HOMES[request.param](request)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> OpenedStore:
    return OpenedStore(STORES[request.param](request))


@pytest.fixture(params=LINES)
def lines(request: pytest.FixtureRequest) -> Lines:
    return LINES[request.param](request)
