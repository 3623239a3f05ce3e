"""What all tests share: how Hypothesis searches, and the servers that tests may ask for."""

import os

from hypothesis import HealthCheck, settings
from tests.support.garbage import set_aside
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


def pytest_collection_finish() -> None:
    set_aside()
