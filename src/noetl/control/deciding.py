"""A decision in the making: the events so far, and the state that they have led to."""

from collections import deque
from collections.abc import Mapping, MutableMapping
from typing import Any, TypeVar, cast

import msgspec

from noetl.control.evolve import EVOLVE
from noetl.control.execution import Execution, Run, Token
from noetl.control.in_one_go import Passage, evolve_iteration, evolve_passage, evolve_run
from noetl.errors import NeedsBody, TemplateFailed
from noetl.expression.limits import LARGEST_LOADED
from noetl.expression.lookup import BODIES
from noetl.expression.meter import METER, NOW, THEN, Meter
from noetl.messages import events as e
from noetl.messages.codec import decode_body, encode, encode_shown
from noetl.messages.fitting import INLINE, Fitting, Unfitting, fits
from noetl.messages.names import FOLDED, canonical
from noetl.messages.reference import Reference
from noetl.messages.references import chunks_of, in_chunks, joined
from noetl.messages.written import HOLDS, Measured, WrittenValues
from noetl.playbook.plan import Evaluate, Plan, Scope

E = TypeVar("E", bound=e.Event)

OPAQUE = (
    "the value is a secret, which the server cannot read: here it can only be passed on whole "
    "(`{{ ctx.token }}`); let a task of the step use it"
)
"""KEY-3."""


TOO_LARGE = (
    f"the value has more than {LARGEST_LOADED // 1024**2} MiB, which no server loads for a "
    "template: let a task of the step look at it"
)
"""TPL-5."""


class EventName(str):
    """An event's name that equals each of its older names too (EVT-2)."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str.__eq__(self, canonical(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class Needs(msgspec.Struct, frozen=True):
    """A decision cannot be made before these bodies are loaded; its execution is spoiled."""

    references: tuple[Reference, ...]
    time: bool = False
    """It takes longer than an event loop may stand still."""


class Deciding:
    """
    Collects the events that follow from one input. `emit` is the only way to add one: it also
    moves the execution, so that whatever is decided next is decided on what was decided before.

    Pure in the sense of the house: it does no IO, and the same input on the same state gives the
    same events. If it is left by an exception the execution is to be thrown away and read again.
    """

    __slots__ = (
        "_beside",
        "_bodies",
        "_hurried",
        "_lost",
        "_written",
        "boundaries",
        "events",
        "execution",
        "missing",
        "plan",
        "tokens",
    )

    def __init__(
        self,
        plan: Plan,
        execution: Execution,
        bodies: MutableMapping[str, Any],
        lost: Mapping[str, str],
        *,
        hurried: bool = False,
    ) -> None:
        self.plan = plan
        self.execution = execution
        self.tokens: deque[Token] = deque()
        """Tokens to be tried, in order."""
        self.boundaries: deque[tuple[Run, e.Boundary, int]] = deque()
        """Ended runs whose routers are to be asked, with the `seq` of their end."""
        self._bodies = bodies
        self._lost = lost
        self._hurried = hurried
        self.begin()

    def begin(self) -> None:
        """Nothing is decided yet on the next input."""
        self.events: list[e.Event] = []
        self.missing: list[Reference] = []
        """Bodies that must be loaded before this can be decided."""
        self._beside: Scope | None = None
        self._written: WrittenValues | None = None

    @property
    def beside(self) -> Scope:
        """
        What templates use and no author sees. All those of a decision share their turns (TPL-5);
        before rules 4 each had its own.
        """
        if self._beside is None:
            shared = self.execution.rules >= 4
            meter = Meter(NOW if shared else THEN, shared=shared, hurried=self._hurried)
            self._beside = {BODIES: self._bodies, METER: meter}
        return self._beside

    @property
    def own(self) -> e.Source:
        """The `source` of an end that the server tells by itself; before rules 3 none was told."""
        return "server" if self.execution.rules >= 3 else "worker"

    def emit(self, event: e.Event) -> None:
        """Add an event. The body of `evolve` stands here again: this is the hottest line."""
        self.events.append(event)
        execution = self.execution
        execution.seq += 1
        change = EVOLVE.get(type(event))
        if change is not None:
            change(execution, event, self.plan)

    def emit_iteration(self, run: Run, events: list[e.Event]) -> None:
        """Add all events of one iteration, which has ended well and wrote nothing."""
        self.events += events
        evolve_iteration(self.execution, run, events, self.plan)

    def emit_run(self, run: Run, events: list[e.Event]) -> None:
        """Add the rest of a run, which has ended well and wrote nothing."""
        self.events += events
        evolve_run(self.execution, events, self.plan)
        done = cast(e.StepDone, events[-1])
        self.boundaries.append((run, done, self.execution.seq))

    def emit_passage(self, passage: Passage) -> None:
        """Add an arc with the run that its token leads to at once."""
        self.events += passage
        evolve_passage(self.execution, passage, self.plan)

    def note(self, event: e.Event) -> None:
        """Add an event that moves nothing that outlives this decision."""
        self.events.append(event)
        self.execution.seq += 1

    def keep(self, event: e.Event) -> None:
        """Add an event that holds a state: that is folded whole, and recorded as it fits."""
        fitted, state = self.fit(event), FOLDED[type(event)]
        self.emit(msgspec.structs.replace(fitted, **{state: getattr(event, state)}))
        self.events[-1] = fitted

    def evaluate(self, template: Evaluate, scope: Scope) -> Any:
        """The template's value; NeedsBody leaves the decision if a body is not at hand."""
        while True:
            try:
                return template(scope)
            except NeedsBody as need:
                if need.reference.sealed is not None:
                    raise TemplateFailed(OPAQUE) from None
                why = self._lost.get(need.reference.key)
                if why is not None:  # RES-4: the template cannot be evaluated, and that is why
                    raise TemplateFailed(why) from None
                if self.execution.rules >= 4 and need.reference.size > LARGEST_LOADED:
                    raise TemplateFailed(TOO_LARGE) from None
                if not self._is_made(need.reference):
                    raise
            except TemplateFailed as fault:
                if self.execution.rules < 3:
                    fault.meant = None
                raise

    def _is_made(self, reference: Reference) -> bool:
        """Whether this very decision made the body; of a list in chunks some may lie outside."""
        body = self.execution.bodies.get(reference.key)
        if body is None:
            return False
        value = decode_body(body, reference)
        if in_chunks(reference):
            chunks = chunks_of(value)
            self.missing = [
                chunk
                for chunk in chunks
                if chunk.key not in self._bodies and not self._is_made(chunk)
            ]
            for chunk in self.missing:
                if chunk.key in self._lost:
                    raise TemplateFailed(self._lost[chunk.key])
            if self.missing:
                return False
            value = joined([self._bodies[chunk.key] for chunk in chunks])
        self._bodies[reference.key] = value
        return True

    def scope(self, args: dict[str, Any], event: dict[str, Any] | None = None) -> Scope:
        """What a server template sees (ADM-2, NEXT-2)."""
        execution = self.execution
        scope: Scope = {
            "workload": execution.workload,
            "ctx": execution.ctx,
            "args": args,
            "execution_id": execution.execution_id,
            **self.beside,
        }
        if event is not None:
            scope["event"] = event
        return scope

    def fit(self, event: E, *, strict: bool = False) -> E:
        """
        The event as the log can take it: what is too large for it lies outside (EVT-4). Where a
        template made it, `strict` fails that for values that cannot be moved, or are too deep.
        """
        execution, largest = self.execution, self.plan.limits.max_payload_bytes
        if type(event) not in HOLDS:
            return event
        try:
            if self._written is None:
                text = encode_shown(event)
                measured = Measured(len(text), text)
            else:
                measured = self._written.measured(event)
        except RecursionError:
            measured = None
        if measured is not None and fits(measured, min(INLINE, largest)):
            return event
        if self._written is None:
            self._written = WrittenValues()
        own = (execution.store, execution.execution_id, largest, execution.bodies)
        moves = Fitting(*own, known=self._written)
        if execution.rules < 2:
            return fit_by_field(event, largest, moves)
        try:
            return moves.event(event, strict=strict, measured=measured)
        except Unfitting as wrong:
            raise TemplateFailed(str(wrong)) from None

    def know(self, written: WrittenValues | None) -> None:
        """What of the input was written down already."""
        self._written = written

    def make(self, event: e.Event) -> None:
        """Add an event of the server's own, as the log can take it."""
        self.emit(self.fit(event))


def fit_by_field(event: E, largest: int, moves: Fitting) -> E:
    """Rules 1: each field was fitted by itself, and errors and the ends of loops were not."""
    moved: dict[str, Any] = {}
    for field, how in FITTED_BY_FIELD.get(type(event), {}).items():
        value = getattr(event, field)
        values = {"": value} if how == "whole" else dict(value)
        sizes = {key: len(encode(below)) for key, below in values.items()}
        size = sum(sizes.values())
        for key in sorted(sizes, key=lambda key: sizes[key], reverse=True):
            if size <= largest:
                break
            if not isinstance(values[key], Reference):
                values[key] = moves.refer(values[key])
                size -= sizes[key]
        moved[field] = values[""] if how == "whole" else values
    return msgspec.structs.replace(event, **moved) if moved else event


FITTED_BY_FIELD: dict[type[e.Event], dict[str, str]] = {
    kind: {field: how for field, how in HOLDS[kind].items() if how != "error"}
    for kind in (
        e.ExecutionRequested,
        e.RequestEvaluated,
        e.TokenCreated,
        e.CtxPatched,
        e.LoopStarted,
        e.WorkflowFinished,
    )
}
