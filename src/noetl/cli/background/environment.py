"""Settings for another process: by its environment, which no other user can see."""

from noetl.settings import SETTINGS, Settings

NOT_PASSED = ("server", "token", "context")
"""Whom a command asks: no business of the server that it starts."""


def variables(settings: Settings) -> dict[str, str]:
    """Every setting that has a value, as a variable."""
    found = {}
    for field in SETTINGS:
        value = getattr(settings, field)
        if value is not None and field not in NOT_PASSED:
            text = str(int(value)) if isinstance(value, bool) else str(value)
            found[f"NOETL_{field.upper()}"] = text
    return found
