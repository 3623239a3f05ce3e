"""What all tests share: how Hypothesis searches."""

from hypothesis import HealthCheck, settings

# Time decides nothing: a busy machine must not fail a test, so there is no deadline per case.
settings.register_profile(
    "house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
