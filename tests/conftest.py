"""What all tests share: how Hypothesis searches, and the servers that tests may ask for."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.support.fixtures", "tests.support.verification"]

# Time decides nothing: a busy machine must not fail a test, so there is no deadline per case.
settings.register_profile(
    "house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
