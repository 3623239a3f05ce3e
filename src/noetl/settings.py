"""One frozen object with every setting; the environment is read once."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set. Each field's environment variable is `NOETL_` and its name."""

    home: Path
    """Where the log, results and caches lie."""
    slots: int = 100
    """Tool calls that may run at once."""
    run_ahead: bool = True
    """Whether steps without effect may run before the decision behind them is committed."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this process."""
    home = environment.get("NOETL_HOME")
    return Settings(
        home=Path(home) if home else Path.home() / ".noetl",
        slots=int(environment.get("NOETL_SLOTS", "100")),
        run_ahead=environment.get("NOETL_RUN_AHEAD", "1") not in ("0", "false", "no"),
    )
