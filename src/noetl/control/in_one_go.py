"""
Several events onto one execution, in one go: what `evolve` comes to where what one event begins a
later one ends. Nothing is decided here. Replay takes every event by itself, and every proof of a
log compares both states (EVT-5).
"""

from typing import cast

from noetl.control.evolve import next_evaluated, progress, step_done
from noetl.control.execution import Execution, Part, Run
from noetl.control.folding import begin_run, end_whole
from noetl.messages import events as e
from noetl.playbook.plan import Plan


def evolve_iteration(execution: Execution, run: Run, events: list[e.Event], plan: Plan) -> None:
    """An iteration from its start to a good end (LOOP-9)."""
    done = cast(e.IterationDone, events[-1])
    execution.seq += len(events)
    part = run.parts[done.part]
    part.taken += len(events) - 1
    progress(execution, part)
    end_whole(execution, run, done, plan.steps[run.step])


def evolve_run(execution: Execution, events: list[e.Event], plan: Plan) -> None:
    """The rest of a run up to a good end, without a write: its frame and its parts go with it."""
    execution.seq += len(events)
    step_done(execution, cast(e.StepDone, events[-1]), plan)


Passage = tuple[e.NextEvaluated, e.NextFired, e.TokenCreated, e.StepScheduled, e.TokenEnqueued]
"""One arc, and the run that its token leads to at once."""


def evolve_passage(execution: Execution, passage: Passage, plan: Plan) -> None:
    """The only token of a router, whose step asks nothing before it runs."""
    evaluated, _, token, scheduled, enqueued = passage
    execution.seq += len(passage)
    next_evaluated(execution, evaluated, plan)
    run = begin_run(execution, scheduled, plan.steps[token.step], token.args, token.rounds)
    run.parts[0] = Part(part=enqueued.part)
    run.next_part = 1
