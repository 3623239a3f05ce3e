"""What retention policies say, and how they are written (KEEP-1, decision 0063)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

import msgspec

from noetl.messages.globs import matches
from noetl.ports.removals import EndedRoot

AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw])", re.ASCII)
UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
OLDEST: Final = 10_000_000_000
"""Seconds, some three hundred years."""
NEVER: Final = "never"
ENDS: Final = ("completed", "failed", "cancelled")
FORMS: Final = ("jsonl", "parquet")
RESULTS: Final = "results"
"""The archive in the result store."""
BUCKETS: Final = ("s3://", "gs://")


class RetentionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Which executions it is about, when they go, and what is kept of them before."""

    older_than: float | None
    """Seconds since their end; None: they stay."""
    status: tuple[str, ...] = ()
    """None: whichever."""
    path: str = "*"
    labels: Mapping[str, str] = {}
    """`metadata.labels` of the playbook that they ran."""
    archive: str | None = None
    """`results`, a folder, or an address of a bucket."""
    form: str = "jsonl"

    def fits(self, row: EndedRoot, labels: Mapping[str, str]) -> bool:
        """Whether it is about this execution, however old that is."""
        return (
            (not self.status or row.status in self.status)
            and matches(row.path, self.path)
            and all(labels.get(name) == value for name, value in self.labels.items())
        )


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, or would be."""

    executions: list[str]
    """The oldest end first; children behind their parents."""
    bodies: int = 0
    """Results that went with them."""


def verdict(
    policies: Iterable[RetentionPolicy], row: EndedRoot, labels: Mapping[str, str], now: int
) -> RetentionPolicy | None:
    """The first policy that fits decides; None where it lets the execution stay."""
    for policy in policies:
        if policy.fits(row, labels):
            age = policy.older_than
            return policy if age is not None and row.finished_at <= now - age * 1000 else None
    return None


def youngest(policies: Iterable[RetentionPolicy]) -> float | None:
    """The age (s) below which no policy removes anything; None: none removes."""
    ages = [policy.older_than for policy in policies if policy.older_than is not None]
    return min(ages, default=None)


def folders_of(policies: Iterable[RetentionPolicy]) -> list[Path]:
    """The folders of this machine that they archive to."""
    named = [policy.archive for policy in policies if policy.archive is not None]
    return [
        Path(one.removeprefix("file://"))
        for one in named
        if one != RESULTS and not one.startswith(BUCKETS)
    ]


# ── as text ──────────────────────────────────────────────────────────────────────────────────


def age_of(text: str) -> float:
    """Seconds of `90m`, `24h`, `30d`, `6w`."""
    found = AGE.fullmatch(text)
    seconds = inf if found is None else float(found[1]) * UNITS[found[2]]
    if seconds > OLDEST:
        raise ValueError(f"'{text}' is not an age: expected 12h, 30d or 6w")
    return seconds


def policies_of(text: str) -> tuple[RetentionPolicy, ...]:
    """
    Policies, separated by `;`. Each is words: an age, then what it is about.

    `30d status=completed path=etl/* archive=results; never label=keep=yes; 365d`
    """
    return tuple(policy_of(part.split()) for part in text.split(";") if part.strip())


def policy_of(words: Sequence[str]) -> RetentionPolicy:
    """One policy from its words; ValueError says which one is wrong."""
    made: dict[str, Any] = {"older_than": None if words[0] == NEVER else age_of(words[0])}
    labels: dict[str, str] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals or not value or name not in ("label", *READ):
            raise ValueError(f"'{word}' is not one of: label=NAME=VALUE, {', '.join(WORDS)}")
        if name == "label":
            labels |= label_of(value)
        else:
            made |= READ[name](value)
    return RetentionPolicy(**made, labels=labels)


def label_of(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"'{text}' is not a label: expected NAME=VALUE")
    return {name: value}


def _status(text: str) -> dict[str, Any]:
    named = tuple(text.split(","))
    if wrong := set(named) - set(ENDS):
        raise ValueError(f"'{min(wrong)}' is not the status of an end: {', '.join(ENDS)}")
    return {"status": named}


def _form(text: str) -> dict[str, Any]:
    if text not in FORMS:
        raise ValueError(f"'{text}' is not a format of archives: {', '.join(FORMS)}")
    return {"form": text}


READ: Final = {
    "status": _status,
    "path": lambda text: {"path": text},
    "archive": lambda text: {"archive": text},
    "format": _form,
}
WORDS: Final = ("status=STATUS,…", "path=GLOB", "archive=PLACE", "format=jsonl|parquet")
