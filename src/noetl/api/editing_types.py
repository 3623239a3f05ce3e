"""What the API takes and answers about texts that are being written, and about their values."""

from typing import Annotated, Any, Literal

import msgspec

from noetl.node.testing.verdict import CaseVerdict
from noetl.playbook.dialects.rewrite import Rewrite
from noetl.playbook.finding import Finding
from noetl.server.views.outline import Outline

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 2)]


class TextEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What is written in place of a piece of one line; line and columns count from 0."""

    title: str
    line: int
    start: int
    end: int
    text: str


class FoundFault(msgspec.Struct, frozen=True, kw_only=True):
    """A finding, with what an editor needs to show and fix it."""

    finding: Finding
    end: int
    """The column behind the word that it is about, from 1."""
    fix: TextEdit | None


class TextChecked(msgspec.Struct, frozen=True, kw_only=True):
    """All that there is to say about a text while it is written."""

    findings: list[FoundFault]
    more: int
    """How many findings are not told."""
    older: bool
    """Whether it has words of an older dialect, which can be translated."""
    path: str | None
    """Where it would be registered, as far as that can be read."""
    outline: Outline | None
    """As it is drawn; None while it cannot be."""


class CursorRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place in a text, before a character; both count from 0, columns in characters."""

    text: str
    line: Count
    column: Count


class TextOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that may be written in place of the `back` characters before the cursor."""

    name: str
    summary: str
    about: str
    """Markdown."""
    sort: Literal["key", "value", "name"]
    insert: str
    back: int


class TextOffers(msgspec.Struct, frozen=True, kw_only=True):
    """What may follow at the cursor."""

    offers: list[TextOffer]


class WordAbout(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the word at the cursor."""

    about: str | None
    """Markdown."""


class ExplainedRewrite(Rewrite, frozen=True):
    """A change, and why it was made."""

    why: str = ""


class TextTranslated(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a text of an older dialect; nothing is registered."""

    text: str
    changed: bool
    complete: bool
    """False: the findings say what could not be translated."""
    rewrites: list[ExplainedRewrite]
    findings: list[Finding]
    more: int = 0
    """How many findings are not told."""


class TestsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A playbook and its tests, both as texts; `playbook` in the tests is not read."""

    text: str
    tests: str


class TestsRun(msgspec.Struct, frozen=True, kw_only=True):
    """How the tests of a playbook went, in their order."""

    passed: int
    failed: int
    tests: list[CaseVerdict]


class TemplateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A template to try on what an execution has recorded."""

    template: Annotated[str, msgspec.Meta(max_length=20_000)]
    seq: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 2)] | None = None
    """As it was after this event; without it as it is."""
    event: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 2)] | None = None
    """The number of a `task.done`: templates see its `outcome`."""


class TemplateTried(msgspec.Struct, frozen=True, kw_only=True):
    """What a template came to."""

    ok: bool
    value: Any
    """Cut to a text where it is large."""
    kind: str
    """The type of the value, as JSON calls it."""
    size: int
    """Bytes of its JSON."""
    cut: bool
    error: str | None
    meant: str | None
    """What the author may have meant."""
    names: dict[str, list[str]]
    """What a template sees here: namespace → its keys."""


class BodyPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a value that is stored outside the log (RES-1)."""

    kind: str
    count: int | None
    """Elements or keys; None where it has none, or it was not read to its end."""
    value: Any
    cut: bool
    """Whether there is more than `value`."""
