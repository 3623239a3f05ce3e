"""Times on the command line."""

import re
import time
from datetime import UTC, datetime
from typing import Any

import click

AGO = re.compile(r"(\d+)([smhd])", re.ASCII)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Moment(click.ParamType[int]):
    """A moment, or how long ago it was; the value is ms since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return moment_of(value)
        except (ValueError, OverflowError):
            self.fail(f"'{value}' is not a time: expected 2026-01-31T10:00:00Z, or 24h", param, ctx)


def moment_of(text: str) -> int:
    ago = AGO.fullmatch(text)
    if ago is not None:
        return int((time.time() - int(ago[1]) * UNITS[ago[2]]) * 1000)
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
