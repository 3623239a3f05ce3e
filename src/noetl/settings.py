"""One frozen object with every setting; the environment is read once."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from noetl.errors import SettingRefused


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set. Each field's environment variable is `NOETL_` and its name."""

    home: Path
    """Where the log, results and caches lie."""
    slots: int = 100
    """Tool calls that may run at once."""
    run_ahead: bool = True
    """Whether steps without effect may run before the decision behind them is committed."""
    retention_days: float | None = None
    """Ended executions older than this are removed, with their results; None keeps them."""


def _number(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _switch(text: str) -> bool:
    return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
        text.lower()
    ]


READ: dict[str, tuple[Callable[[str], Any], str]] = {
    "home": (Path, "a folder"),
    "slots": (_count, "a whole number >= 1"),
    "run_ahead": (_switch, "1 or 0"),
    "retention_days": (_number, "a number of days >= 0"),
}
"""Field → how its text is read, and what is expected."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this process."""
    found: dict[str, Any] = {"home": Path.home() / ".noetl"}
    for field, (read, expected) in READ.items():
        name = f"NOETL_{field.upper()}"
        text = environment.get(name, "")
        if not text:
            continue
        try:
            found[field] = read(text)
        except (ValueError, KeyError):
            raise SettingRefused(f"{name} must be {expected}, got {text!r}") from None
    return Settings(**found)
