"""EVT: names, ids, order, size and replay of what the log holds."""

from typing import Any

import msgspec
import pytest
from tests.support.scenario import Ran, name_of, ok, scenario
from tests.support.steps import Tree, arc, call, loop, nested, noop, otherwise, refuse, sets, step

from noetl.control.decide import decide as decide_at
from noetl.control.evolve import evolve
from noetl.control.execution import Execution
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import decode_events, encode_events
from noetl.messages.envelope import envelope
from noetl.messages.names import ALIASES, NAMES, canonical
from noetl.playbook.plan import Plan
from noetl.server.replay import frozen, thawed

TWO_STEPS = [
    step(
        "first", call("fetch", otherwise(set_ctx={"n": 1})), arcs=[arc("second", n="{{ ctx.n }}")]
    ),
    step("second", call("store", body="{{ args.n }}"), admit=[refuse("ctx.n > 5")]),
]


@pytest.mark.rule("EVT-2", "EVT-3", "SRV-2")
def test_the_sequence_of_a_playbook_of_two_steps() -> None:
    """S1 §1.2, with the names and the order of EVT-2."""
    ran = scenario(*TWO_STEPS, workload={"a": 1}).run()
    assert ran.story() == [
        "playbook.execution.requested",
        "playbook.request.evaluated",
        "workflow.started first",
        "token.created first",
        "step.scheduled first",
        "token.enqueued first",
        "token.claimed first",
        "step.started first",
        "task.started first",
        "task.done first",
        "ctx.patched first",
        "step.done first",
        "next.evaluated first",
        "next.fired first",
        "token.created second",
        "policy.admit.evaluated second",
        "step.scheduled second",
        "token.enqueued second",
        "token.claimed second",
        "step.started second",
        "task.started second",
        "task.done second",
        "step.done second",
        "workflow.finished",
        "playbook.processed",
    ]


@pytest.mark.rule("EVT-0")
def test_ids_are_derived_from_their_cause() -> None:
    ran = scenario(*TWO_STEPS).run()
    seqs = {id(event): number for number, event in enumerate(ran.events, 1)}
    first, second = ran.of(e.TokenCreated)
    done = ran.one(e.StepDone, step="first")
    assert first.token_id == f"{seqs[id(first)] - 1}.0", "the entry token's cause is the start"
    assert second.token_id == f"{seqs[id(done)]}.0"
    runs = [event.step_run_id for event in ran.of(e.StepScheduled)]
    assert runs == [f"{seqs[id(token)]}.0" for token in (first, second)]
    tasks = [event.task_run_id for event in ran.of(e.TaskDone)]
    assert tasks == [f"{seqs[id(token)]}.1" for token in (first, second)]
    assert second.parent_step_run_id == runs[0]
    assert second.source == "first"


@pytest.mark.rule("EVT-0", "EVT-5")
def test_the_same_run_has_the_same_ids() -> None:
    def ids(ran: Ran) -> list[dict[str, Any]]:
        names = ("token_id", "step_run_id", "task_run_id", "iteration_id", "parent_id")
        return [
            {name: getattr(event, name) for name in names if hasattr(event, name)}
            for event in ran.events
        ]

    def make() -> Ran:
        inner = nested("in", loop([1, 2], iterator="m"), call("work"))
        return scenario(step("start", inner, call("more"), loop=loop([1, 2, 3]))).run()

    assert ids(make()) == ids(make())


ENTITIES: dict[str, tuple[str, str, str]] = {
    # name → entity, status, source
    "playbook.execution.requested": ("playbook", "in_progress", "server"),
    "workflow.started": ("workflow", "in_progress", "server"),
    "token.created": ("step", "in_progress", "server"),
    "step.scheduled": ("step", "in_progress", "server"),
    "step.started": ("step", "in_progress", "worker"),
    "task.started": ("task", "in_progress", "worker"),
    "task.done": ("task", "success", "worker"),
    "ctx.patched": ("task", "success", "server"),
    "step.done": ("step", "success", "worker"),
    "next.evaluated": ("next", "success", "server"),
    "workflow.finished": ("workflow", "success", "server"),
}


FIELDS = """
event_id seq execution_id timestamp source name entity entity_id status step step_run_id task_run_id
trace_id parent_id data
"""


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize(("name", "expected"), ENTITIES.items(), ids=ENTITIES)
def test_the_envelope(name: str, expected: tuple[str, str, str]) -> None:
    ran = scenario(*TWO_STEPS).run()
    number = ran.names.index(name)
    raw = msgspec.json.decode(encode_events([ran.events[number]]))[0]
    seen = envelope(raw, execution_id="x1", seq=number + 1, at=1_700_000_000_123, trace_id=None)
    assert sorted(seen) == sorted(FIELDS.split())
    assert (seen["entity"], seen["status"], seen["source"]) == expected
    assert seen["event_id"] == f"x1.{number + 1}"
    assert seen["timestamp"] == "2023-11-14T22:13:20.123Z"


@pytest.mark.rule("EVT-2")
def test_every_event_has_a_name_in_the_table() -> None:
    tags = {name_of_class(kind) for kind in all_events()}
    assert tags == set(NAMES)
    assert set(ALIASES.values()) <= tags
    assert not set(ALIASES) & tags


def all_events() -> list[type[e.Event]]:
    return list(e.AnyEvent.__args__)


def name_of_class(kind: type[e.Event]) -> str:
    return str(kind.__struct_config__.tag)


@pytest.mark.rule("EVT-2")
@pytest.mark.parametrize(
    ("older", "name"),
    [
        ("StepDone", "step.done"),
        ("TaskProcessed", "task.done"),
        ("task.processed", "task.done"),
        ("next.selected", "next.evaluated"),
        ("tool.started", "task.started"),
        ("step.run.claimed", "token.claimed"),
        ("call.error", "step.failed"),
        ("step.done", "step.done"),
        ("something.else", "something.else"),
    ],
)
def test_older_names(older: str, name: str) -> None:
    assert canonical(older) == name


SOURCES = """
PlaybookExecutionRequested PlaybookRequestEvaluated WorkflowStarted TokenEnqueued TokenClaimed
StepScheduled NextEvaluated WorkflowFinished PlaybookProcessed TaskStarted TaskProcessed StepDone
StepFailed LoopStarted LoopIterationStarted LoopIterationCompleted LoopDone
next.selected next.enqueued step.run.enqueued step.run.claimed playbook.execution_requested
playbook.started step.started step.finished tool.started tool.processed case.started case.evaluated
loop.iteration.finished loop.finished retry.started retry.processed sink.started sink.processed
task.processed step.exit call.done call.error
"""


@pytest.mark.rule("EVT-2")
@pytest.mark.parametrize("name", SOURCES.split())
def test_every_name_of_the_sources_is_known(name: str) -> None:
    assert canonical(name) in NAMES


@pytest.mark.rule("EVT-3")
def test_seq_has_no_gaps_and_each_decision_is_one_row() -> None:
    ran = scenario(*TWO_STEPS).run()
    assert ran.rows[0].first == 1
    for before, after in zip(ran.rows, ran.rows[1:], strict=False):
        assert after.first == before.last + 1
    assert ran.rows[-1].last == len(ran.events) == ran.execution.seq
    assert [row.last - row.first + 1 for row in ran.rows] == [
        len(decode_events(row.events)) for row in ran.rows
    ]


def decide(plan: Plan, execution: Execution, given: r.Input) -> list[e.Event]:
    events = decide_at(plan, execution, given, at=1)
    assert isinstance(events, list)
    return events


def begun(*steps: Tree) -> tuple[Any, Execution, r.Report]:
    """A plan, an execution whose first part waits, and a report that would start it."""
    plan = scenario(*steps).plan
    execution = Execution(execution_id="x1")
    decide(plan, execution, r.StartExecution(execution_id="x1", path="p", digest=plan.digest))
    (run,) = execution.runs.values()
    ids: dict[str, Any] = {"step": run.step, "step_run_id": run.step_run_id}
    begins = e.TaskStarted(**ids, task_run_id="4.1", task="fetch", kind="http")
    events: list[e.Event] = [e.StepStarted(**ids), begins]
    report = r.Report(step_run_id=run.step_run_id, part=0, epoch=1, worker="w1", events=events)
    return plan, execution, report


@pytest.mark.rule("EVT-3", "WRK-1")
def test_a_report_of_an_older_epoch_is_refused() -> None:
    plan, execution, report = begun(*TWO_STEPS)
    newer = msgspec.structs.replace(report, epoch=2, worker="w2")
    assert decide(plan, execution, newer) != []
    assert decide(plan, execution, report) == []


@pytest.mark.rule("EVT-3", "WRK-1")
def test_a_report_after_its_lease_has_ended_is_refused() -> None:
    plan, execution, report = begun(*TWO_STEPS)
    assert name_of(decide(plan, execution, report)[0]) == "token.claimed"
    lost = r.LeaseLost(step_run_id=report.step_run_id, part=0, epoch=1)
    assert [name_of(event) for event in decide(plan, execution, lost)] == ["lease.expired"]
    assert decide(plan, execution, lost) == [], "the same lease ends once"
    late = msgspec.structs.replace(report, events=report.events[1:], after=2)
    assert decide(plan, execution, late) == []
    assert decide(plan, execution, msgspec.structs.replace(report, epoch=2)) != []


@pytest.mark.rule("EVT-3")
def test_a_report_delivered_twice_is_taken_once() -> None:
    plan, execution, report = begun(*TWO_STEPS)
    assert decide(plan, execution, report) != []
    assert decide(plan, execution, report) == []


@pytest.mark.rule("EVT-3")
def test_only_the_next_report_is_accepted() -> None:
    plan, execution, report = begun(*TWO_STEPS)
    second = msgspec.structs.replace(report, events=report.events[1:], after=1)
    assert decide(plan, execution, second) == [], "the first has not come"
    first = msgspec.structs.replace(report, events=report.events[:1], after=0)
    assert decide(plan, execution, first) != []
    assert decide(plan, execution, first) == []
    assert decide(plan, execution, second) != []


@pytest.mark.rule("EVT-3", "OUT-4")
def test_the_third_lost_lease_fails_the_run() -> None:
    plan, execution, report = begun(*TWO_STEPS)
    names: list[list[str]] = []
    for epoch in (1, 2, 3):
        decide(plan, execution, msgspec.structs.replace(report, epoch=epoch))
        lost = r.LeaseLost(step_run_id=report.step_run_id, part=0, epoch=epoch)
        names.append([name_of(event) for event in decide(plan, execution, lost)])
    assert names[:2] == [["lease.expired"]] * 2
    assert names[2][:3] == ["lease.expired", "step.failed", "next.evaluated"]
    assert execution.status == "failed"
    assert execution.failures[0].error["kind"] == "worker_lost"


@pytest.mark.rule("EVT-5")
def test_replay_comes_to_the_live_state_at_every_event() -> None:
    inner = nested(
        "in", loop([1, 2], iterator="m", reduce={"t": "sum"}), sets("add", t="{{ iter.m }}")
    )
    made = scenario(
        step("start", sets("a", x=1), arcs=[arc("run"), arc("gate")], mode="inclusive"),
        step("gate", noop("g"), admit=[refuse("ctx.t is undefined")]),
        step("run", inner, call("c"), loop=loop([1, 2], mode="parallel", on_failure="continue")),
    )
    ran = made.run()
    state = Execution(execution_id="x1")
    tail = Execution(execution_id="x1")
    for row in ran.rows:
        state.now = tail.now = row.at
        for event in decode_events(row.events):
            evolve(state, event, made.plan)
            evolve(tail, event, made.plan)
            tail = thawed(frozen(tail))
            state.bodies.clear()
            assert tail == state
    assert state == msgspec.structs.replace(ran.execution, bodies={})


@pytest.mark.rule("EVT-5", "RES-1")
def test_a_snapshot_holds_references_and_what_looks_like_them() -> None:
    """Numbers as keys, true references and look-alikes in one state."""
    made = scenario(
        step("start", call("fetch"), arcs=[arc("run", list="{{ event.result }}")]),
        step("run", call("work"), loop=loop("{{ args.list }}", mode="parallel", flight=2)),
        executor={"spec": {"policy": {"limits": {"max_payload_bytes": 100}}}},
    )
    made.answers("fetch", ok([{"$ref": {"looks": "like one"}}, "x" * 200]))
    ran = made.run()
    state = Execution(execution_id="x1")
    for event in ran.events:
        evolve(state, event, made.plan)
        state.bodies.clear()
        assert thawed(frozen(state)) == state
    assert ran.status == "completed"
