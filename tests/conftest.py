"""What all tests share: how Hypothesis searches, and the servers that tests may ask for."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings
from tests.support.searching import FEW, MANY

pytest_plugins = [
    "tests.support.fixtures",
    "tests.support.patience",
    "tests.support.spreading",
    "tests.support.verification",
]

# Time decides nothing: a busy machine must not fail a test, so there is no deadline per case.
# Nor does luck: the same commit gives the same answer. `make chance` searches with new seeds.
settings.register_profile(
    "house",
    deadline=None,
    print_blob=True,
    derandomize=True,
    max_examples=FEW,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "chance", settings.get_profile("house"), derandomize=False, max_examples=MANY
)
settings.load_profile(os.environ.get("NOETL_PROPERTIES", "house"))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """
    Fifteen thousand tests are no garbage: nobody need look through them again and again.

    Some tests measure with the garbage collector as it is, and undo this.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 5, 200)
