"""What the API takes and answers about triggers (START), and takes about restarts (RST)."""

from typing import Annotated, Any

import msgspec

from noetl.api.patterns import STORED
from noetl.playbook.finding import Finding

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=STORED)]
"""Of anything: short, and no text that a database could not keep."""


class TriggerView(msgspec.Struct, frozen=True, kw_only=True):
    """A trigger, and how it stands (START-1)."""

    path: str
    kind: str
    version: int
    paused: bool
    planned_at: str | None
    """Its next planned time; None where nothing comes by itself."""
    last_at: str | None
    """What its last start was for."""
    last_execution_id: str | None
    skipped_at: str | None
    skipped_why: str | None
    """Why something was not started, the last time."""
    waits_for: str | None
    """The execution that must end first (`overlap: queue`)."""
    timezone: str | None = None
    """Of a schedule: the time zone that its times are written in; times here are UTC."""


class TriggerPage(msgspec.Struct, frozen=True, kw_only=True):
    """Triggers by path."""

    triggers: list[TriggerView]
    next: str | None


class TriggerDetail(TriggerView, frozen=True, kw_only=True):
    """A trigger with what it would do."""

    name: str
    playbook: str
    playbook_version: int | str | None
    on: dict[str, Any] = {}
    """What starts it: the keys of its form, with their defaults."""
    payload: dict[str, Any] | None = None
    """What it starts the playbook with; its templates are not evaluated."""
    upcoming: list[str]
    """Of a schedule: its next planned times."""
    problem: str | None
    """Why it can start nothing now."""
    unproved: int
    """Of a webhook: calls that proved nothing, since the server that answers began."""
    unproved_why: str | None = None
    """What the last such call lacked."""


class TrialRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a trigger is tried with."""

    at: str | None = None
    """An RFC 3339 time; now if left out."""
    data: Any = None
    headers: dict[str, str] = {}


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What a trigger would start; nothing was."""

    playbook_id: str | None
    payload: dict[str, Any] | None
    key: str
    """Under which it would be started once."""
    problem: str | None
    """Why it would start nothing."""
    warnings: list[Finding] = []
    """What of the payload does not fit the playbook (VAL-7)."""


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A range of planned times, both ends included."""

    begin: Name
    end: Name
    dry_run: bool = True


class BackfillTime(msgspec.Struct, frozen=True, kw_only=True):
    """One planned time of the range."""

    at: str
    execution_id: str | None = None
    """What was started for it, now or before."""
    before: bool = False
    """It was started before, and is not started again."""
    error: str | None = None


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """The planned times of a range, and what came of them."""

    times: list[BackfillTime]
    dry_run: bool
    timezone: str | None = None
    """Of the schedule; times here are UTC."""


class RestartRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is run again, by which text, and on what."""

    chosen: Annotated[list[Name], msgspec.Meta(max_length=1000)] = []
    """`STEP`, `STEP@RUN` or `STEP:I,J`; none of them: what failed (RST-1)."""
    version: Annotated[int, msgspec.Meta(ge=1, le=999_999_999)] | Name | None = None
    """Another version of its playbook; without it the text that it began with."""
    payload: dict[str, Any] = {}
    """Changes of `workload` for what runs from now on."""


class RestartPlanRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What would be run again."""

    chosen: Annotated[list[Name], msgspec.Meta(max_length=1000)] = []
    """As in a restart."""
