"""The kinds that belong to the language itself: they call, wait, repeat, or do nothing."""

from typing import Annotated, Any, ClassVar

from msgspec import Meta, field

from noetl.kinds.fields import Arguments, doc
from noetl.kinds.kind import Inputs, Kind


class NoopInputs(Inputs, frozen=True, kw_only=True):
    """Nothing: the task exists for its policy."""


class PlaybookInputs(Inputs, frozen=True, kw_only=True):
    """TOOL-1."""

    path: Annotated[str, doc("Catalog path, or a file relative to this playbook's file.")]
    version: Annotated[
        str | int | float | None,
        doc("A number of the catalog, or `metadata.version`; else the newest."),
    ] = None
    args: Arguments = {}
    wait: Annotated[bool, doc("Whether to wait for the end of the child execution.")] = True


class WorkbookInputs(Inputs, frozen=True, kw_only=True):
    """TOOL-2."""

    name: Annotated[str, doc("Name of the workbook task to run.")]
    args: Arguments = {}


class IteratorInputs(Inputs, frozen=True, kw_only=True):
    """LOOP-7: a loop inside a task. The pipeline is read by the language, not rendered."""

    elements: Annotated[list[Any] | str, doc("The collection: a list or an expression.")] = field(
        name="in"
    )
    iterator: Annotated[str, doc("Name that each element gets below `iter`.")]
    tool: Annotated[list[dict[str, Any]], doc("The inner pipeline.")]


class TransformInputs(Inputs, frozen=True, kw_only=True):
    """A value made from others, without code."""

    streams: ClassVar[tuple[str, ...]] = ("input",)
    value: Annotated[Any, doc("The result: any structure of templates, seeing `_prev`.")] = None
    jq: Annotated[str | None, doc("A jq program, run on `input`; needs the extra `transform`.")] = (
        None
    )
    input: Annotated[Any, doc("What the jq program reads; `_prev` if left out.")] = None


LONGEST = 100 * 366 * 86_400.0
"""Seconds: what would take longer than a life is a mistake, and beyond every calendar."""


class WaitInputs(Inputs, frozen=True, kw_only=True):
    """WAIT-1: a time, a signal, an approval, or the first of several."""

    seconds: Annotated[
        Annotated[float, Meta(ge=0)] | None, doc("How long to wait, in seconds.")
    ] = None
    until: Annotated[str | None, doc("Moment to wait for, RFC 3339.")] = None
    signal: Annotated[str | None, doc("Name of the signal to wait for.")] = None
    when: Annotated[
        bool | str | None, doc("Guard on a signal: sees `signal {name, data, by, at}`.")
    ] = None
    approval: Annotated[
        dict[str, Any] | str | None,
        doc("What a person is asked: `{title, form, roles}`, or the title alone."),
    ] = None
    any: Annotated[
        dict[str, dict[str, Any]] | None,
        doc("Labels, each with one of the above: the first that comes wins."),
    ] = None
    timeout: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        doc("Seconds after which a signal, an approval or `any` ends with an error."),
    ] = None


NOOP = Kind("noop", NoopInputs, "Do nothing; the policy decides.", knobs=(), effect=False)
PLAYBOOK = Kind(
    "playbook",
    PlaybookInputs,
    "Run another playbook.",
    block="playbook",
    tells=("execution_id", "status"),
    knobs=(),
)
WORKBOOK = Kind(
    "workbook",
    WorkbookInputs,
    "Run a task of the workbook.",
    block="workbook",
    tells=("task", "kind"),
)
ITERATOR = Kind(
    "iterator",
    IteratorInputs,
    "Run an inner pipeline for each element of a collection.",
    block="iterator",
    tells=("total", "done", "failed"),
    knobs=(),
)
TRANSFORM = Kind(
    "transform",
    TransformInputs,
    "Make a value from others, without code.",
    block="transform",
    tells=("outputs",),
    knobs=("resources",),
    effect=False,
    one_of=(("value", "jq"),),
    left_out={"input": "{{ _prev }}"},
)
WAIT = Kind(
    "wait",
    WaitInputs,
    "Wait for a time, a signal or an approval.",
    block="wait",
    tells=("by", "name", "label", "waited"),
    knobs=(),
    effect=False,
    one_of=(("seconds", "until", "signal", "approval", "any"),),
)
