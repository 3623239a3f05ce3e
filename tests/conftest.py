"""What all tests share: how Hypothesis searches, and the servers that tests may ask for."""

import os

from hypothesis import HealthCheck, settings

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
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "chance", settings.get_profile("house"), derandomize=False, max_examples=1000
)
settings.load_profile(os.environ.get("NOETL_PROPERTIES", "house"))
