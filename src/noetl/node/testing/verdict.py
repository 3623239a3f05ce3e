"""What becomes of tests, as values: a server has them without loading what runs tests."""

import msgspec


class CaseVerdict(msgspec.Struct, frozen=True):
    """How one test went."""

    name: str
    ok: bool
    problems: list[str]
    duration_ms: int


class TestsGiven(msgspec.Struct, frozen=True):
    """What the process of a run of tests is asked."""

    text: str
    tests: str


class TestsTold(msgspec.Struct, frozen=True):
    """What it answers."""

    tests: list[CaseVerdict] = []
    refused: str | None = None
    """Why there are no verdicts, for whoever wrote the tests."""
