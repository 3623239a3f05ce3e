"""WAIT: tasks that wait for a time, a signal or a person, and hold nothing meanwhile."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import until
from tests.support.steps import arc, call, loop, otherwise, playbook, step, when
from tests.support.waiting import ASKED, STAGES, Stage, staged, waits

from noetl.errors import ExecutionNotFound, ServerRefused
from noetl.messages import events as e
from noetl.ports.event_log import ExecutionRow
from noetl.server.waiting import waits_of

EVERYWHERE = pytest.mark.parametrize("where", STAGES)
ASKED_ANYWHERE = pytest.mark.parametrize("where", ASKED)
KEEP = otherwise(set_ctx={"got": "{{ outcome.result }}", "how": "{{ outcome.wait }}"})


def text_of(wait: dict[str, Any], *more: Any) -> str:
    return playbook(step("start", wait, *more))


# ── times ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("WAIT-1", "WAIT-2", "WAIT-3", "TOOL-0")
@EVERYWHERE
@pytest.mark.parametrize(
    "inputs",
    [{"seconds": 0.05}, {"until": "2020-01-31T09:00:00Z"}, {"seconds": "{{ workload.s }}"}],
    ids=["seconds", "until in the past", "by template"],
)
def test_a_time_ends_a_wait(inputs: dict[str, Any], where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(
            step("start", waits("rest", KEEP, **inputs), call("tell")), workload={"s": 0}
        )
        execution_id = await stage.start(text)
        execution = await stage.ended(execution_id)
        assert execution.status == "completed"
        assert execution.ctx["got"] is None
        assert {**execution.ctx["how"], "waited": 0} == {"by": "timer", "waited": 0}
        assert [made.label for made in stage.tools.calls] == ["tell"]
        begun, done = await stage.of(execution_id, e.WaitStarted, e.WaitDone)
        (arm,) = begun.awaits
        assert arm["by"] == "timer"
        assert isinstance(arm["due"], int)
        assert done.by == "timer"
        assert done.waited >= 1000 * float(inputs.get("seconds") == 0.05) / 20

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-2", "TASK-8", "NEXT-6")
@EVERYWHERE
def test_what_waits_holds_no_part_and_goes_on_from_its_frame(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(step("start", call("first"), waits("hear", signal="go"), call("tell")))
        execution_id = await stage.start(text)
        (wait,) = await stage.waits(execution_id)
        assert (wait.task, wait.task_run_id) == ("hear", f"{wait.step_run_id[:-2]}.2")
        await stage.signal(execution_id, "go", {"n": 1})
        assert (await stage.ended(execution_id)).status == "completed"
        assert [made.label for made in stage.tools.calls] == ["first", "tell"]
        names = [type(one).__name__ for one in await stage.events(execution_id)]
        about = names[names.index("WaitStarted") :]
        assert about[:6] == [
            "WaitStarted",
            "TaskSuspended",
            "SignalReceived",
            "WaitDone",
            "TokenEnqueued",
            "TokenClaimed",
        ]
        assert names.count("StepStarted") == 1

    staged(test, where, tmp_path)


# ── signals ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("WAIT-4", "WAIT-5")
@ASKED_ANYWHERE
def test_a_signal_ends_the_wait_of_its_name(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        execution_id = await stage.start(text_of(waits("hear", KEEP, signal="paid")))
        await stage.waits(execution_id)
        await stage.signal(execution_id, "paid", {"amount": 12})
        execution = await stage.ended(execution_id)
        assert execution.ctx["got"] == {"amount": 12}
        assert execution.ctx["how"].pop("waited") >= 0
        assert execution.ctx["how"] == {"by": "signal", "name": "paid"}
        (sent,) = await stage.of(execution_id, e.SignalReceived)
        assert (sent.signal, sent.sender, sent.kept) == ("paid", "test", False)

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-4")
@ASKED_ANYWHERE
def test_a_signal_that_comes_first_is_kept_and_what_nobody_took_is_counted(
    where: str, tmp_path: Path
) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(
            step("start", waits("hold", signal="begin"), arcs=[arc("next")]),
            step("next", waits("hear", KEEP, signal="paid", when="{{ signal.data.n > 1 }}")),
        )
        execution_id = await stage.start(text)
        await stage.waits(execution_id)
        for n in (1, 2, 3):
            await stage.signal(execution_id, "paid", {"n": n})
        while len(kept := await stage.of(execution_id, e.SignalReceived)) < 3:
            await asyncio.sleep(0)
        assert [one.kept for one in kept] == [True] * 3
        await stage.signal(execution_id, "begin")
        execution = await stage.ended(execution_id)
        assert execution.ctx["got"] == {"n": 2}
        (finished,) = await stage.of(execution_id, e.WorkflowFinished)
        assert finished.untaken == 2

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-1", "WAIT-4")
@EVERYWHERE
def test_the_oldest_wait_whose_guard_is_true_takes_it(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(
            step("start", arcs=[arc("a"), arc("b"), arc("c")], mode="inclusive"),
            *(
                step(
                    name,
                    waits(
                        "hear",
                        otherwise(set_ctx={name: "{{ outcome.result.n }}"}),
                        signal="x",
                        when=f"{{{{ signal.data.n >= workload.{name} and signal.by == 'test' }}}}",
                    ),
                )
                for name in ("a", "b", "c")
            ),
            workload={"a": 5, "b": 0, "c": 0},
        )
        execution_id = await stage.start(text)
        await stage.waits(execution_id, 3)
        for n, left in ((1, 2), (2, 1), (5, 0)):
            await stage.signal(execution_id, "x", {"n": n})
            if left:
                await stage.waits(execution_id, left)
        execution = await stage.ended(execution_id)
        assert execution.ctx == {"b": 1, "c": 2, "a": 5}

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-4")
@ASKED_ANYWHERE
def test_the_same_id_twice_is_one_signal(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        execution_id = await stage.start(
            text_of(waits("one", signal="x"), waits("two", signal="x"))
        )
        await stage.waits(execution_id)
        await stage.signal(execution_id, "x", 1, signal_id="a")
        await until(lambda: [wait.task for wait in stage.waiting(execution_id)] == ["two"])
        await stage.signal(execution_id, "x", 1, signal_id="a")
        assert [wait.task for wait in stage.waiting(execution_id)] == ["two"]
        await stage.signal(execution_id, "x", 2, signal_id="b")
        await stage.ended(execution_id)
        assert len(await stage.of(execution_id, e.SignalReceived)) == 2

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-4")
@EVERYWHERE
def test_an_execution_keeps_a_thousand_signals(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        execution_id = await stage.start(text_of(waits("hear", signal="go")))
        await stage.waits(execution_id)
        for n in range(1000):
            await stage.signal(execution_id, "other", n)
        with pytest.raises(
            ServerRefused, match=r"nothing waits for 'other'.* 1,000 signals are kept"
        ):
            await stage.signal(execution_id, "other", 1000)
        await stage.signal(execution_id, "go")
        assert (await stage.ended(execution_id)).status == "completed"
        with pytest.raises(ServerRefused, match=r"completed at .*: there is nothing to signal"):
            await stage.signal(execution_id, "go")
        with pytest.raises(ExecutionNotFound, match="no execution 'nobody'"):
            await stage.signal("nobody", "go")

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-1")
@EVERYWHERE
def test_the_end_of_a_timeout_is_an_error_that_the_policy_sees(where: str, tmp_path: Path) -> None:
    late = when("outcome.error.kind == 'timeout'", set_ctx={"late": "{{ outcome.error }}"})

    async def test(stage: Stage) -> None:
        execution_id = await stage.start(text_of(waits("hear", late, signal="go", timeout=0.05)))
        execution = await stage.ended(execution_id)
        assert execution.status == "completed"
        assert execution.ctx["late"] == {
            "kind": "timeout",
            "message": "signal 'go' did not come within 0.05 s",
            "retryable": False,
        }
        (done,) = await stage.of(execution_id, e.WaitDone)
        assert done.by == "timeout"

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-1")
@EVERYWHERE
def test_a_guard_that_fails_ends_its_wait(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        guarded = waits("hear", signal="go", when="{{ signal.data.n > 3 }}")
        execution_id = await stage.start(text_of(guarded))
        await stage.waits(execution_id)
        await stage.signal(execution_id, "go", {"n": "three"})
        execution = await stage.ended(execution_id)
        assert execution.error is not None
        assert execution.error["kind"] == "template"
        assert "`when` of task 'hear'" in execution.error["message"]

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-1")
@EVERYWHERE
@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"until": "{{ workload.never }}"}, "`until` is not a time: 'never'"),
        ({"approval": {"title": "x", "form": {"a": "{{ workload.never }}"}}}, "type 'never'"),
        (
            {"approval": {"title": "x", "form": {"by": "{{ 'string' }}"}}},
            "cannot have a field 'by'",
        ),
        ({"any": {"x": {"seconds": "{{ workload.never }}"}}}, "'seconds' is .*, expected a number"),
        ({"any": {"x": {"approval": "{{ '' }}"}}}, "expected one of seconds, until, .* in `x`"),
    ],
)
def test_what_cannot_be_awaited_is_an_error_of_input(
    inputs: dict[str, Any], said: str, where: str, tmp_path: Path
) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(
            step("start", waits("w", **inputs)), workload={"never": "never", "none": {}}
        )
        execution = await stage.ended(await stage.start(text))
        assert execution.error is not None
        assert execution.error["kind"] == "input"
        assert re.search(said, execution.error["message"])

    staged(test, where, tmp_path)


# ── people ───────────────────────────────────────────────────────────────────────────────────

ASK = {
    "title": "Pay {{ workload.amount }}?",
    "form": {
        "limit": "number",
        "note": {"type": "string", "required": False},
        "account": {"type": "string", "choices": ["a", "b"], "default": "a"},
    },
    "roles": ["finance"],
}


@pytest.mark.rule("WAIT-5")
@ASKED_ANYWHERE
@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_is_answered_by_a_person(approved: bool, where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(step("start", waits("ask", KEEP, approval=ASK)), workload={"amount": 12})
        execution_id = await stage.start(text)
        (wait,) = await stage.waits(execution_id)
        assert wait.awaits[0]["title"] == "Pay 12?"
        await stage.plane.answer(
            execution_id,
            "start",
            approved=approved,
            sender="alice",
            reason="budget",
            fields={"limit": 5} if approved else {},
        )
        execution = await stage.ended(execution_id)
        assert execution.status == "completed"
        got = execution.ctx["got"]
        assert got.pop("at").endswith("Z")
        fields = {"limit": 5, "account": "a"} if approved else {"account": "a"}
        assert got == {"approved": approved, "by": "alice", "reason": "budget", **fields}
        assert execution.ctx["how"]["by"] == "approval"
        assert execution.ctx["how"]["name"] == "Pay 12?"

    staged(test, where, tmp_path)


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "a field is missing": ({}, r"'limit' \(number\) is missing; `noetl waiting` shows"),
    "all faults at once": (
        {"fields": {"limit": "x", "account": "c", "more": 1}},
        r"no field 'more'.*'limit' is 'x', expected number.*'account' is 'c', expected one of",
    ),
    "another step": ({"step": "other"}, "no approval waits at 'other'; .*: start"),
    "another role": (
        {"fields": {"limit": 1}, "known_as": ("approver", "bob")},
        "may be answered by finance, not by approver or bob",
    ),
}


@pytest.mark.rule("WAIT-5")
@ASKED_ANYWHERE
@pytest.mark.parametrize(("given", "said"), REFUSALS.values(), ids=REFUSALS)
def test_an_answer_that_does_not_fit_is_refused(
    given: dict[str, Any], said: str, where: str, tmp_path: Path
) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(step("start", waits("ask", approval=ASK)), workload={"amount": 12})
        execution_id = await stage.start(text)
        await stage.waits(execution_id)
        asked = {"step": "start", "sender": "bob", "approved": True, **given}
        with pytest.raises(ServerRefused, match=said):
            await stage.plane.answer(execution_id, asked.pop("step"), **asked)
        await stage.plane.answer(
            execution_id,
            None,
            approved=True,
            sender="x",
            fields={"limit": 1},
            known_as=("approver", "finance"),
        )
        await stage.ended(execution_id)

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-5")
@ASKED_ANYWHERE
def test_a_second_answer_is_refused_and_names_the_first(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        text = text_of(waits("ask", approval="Go?"), waits("hear", signal="end"))
        execution_id = await stage.start(text)
        await stage.waits(execution_id)
        await stage.plane.answer(execution_id, None, approved=True, sender="alice")
        for named in ("start", None):
            with pytest.raises(ServerRefused, match="that of 'start' was approved by alice at 2"):
                await stage.plane.answer(execution_id, named, approved=False, sender="bob")
        await stage.signal(execution_id, "end")
        await stage.ended(execution_id)
        assert len(await stage.of(execution_id, e.WaitDone)) == 2
        said = "completed: no approval waits: that of 'start' was approved by alice at 2"
        with pytest.raises(ServerRefused, match=said):  # who comes second comes after the end
            await stage.plane.answer(execution_id, None, approved=False, sender="bob")

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-5")
@ASKED_ANYWHERE
def test_a_second_answer_names_the_first_while_the_execution_ends(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(stage: Stage) -> None:
        execution_id = await stage.start(text_of(waits("ask", approval="Go?")))
        await stage.waits(execution_id)
        before, now = await stage.plane.row(execution_id), stage.plane.row
        await stage.plane.answer(execution_id, None, approved=True, sender="alice")
        await stage.ended(execution_id)
        looks = [before]

        async def row(execution_id: str) -> ExecutionRow:
            """The first look is older than the end."""
            return looks.pop() if looks else await now(execution_id)

        monkeypatch.setattr(stage.plane, "row", row)
        with pytest.raises(ServerRefused, match="that of 'start' was approved by alice at 2"):
            await stage.plane.answer(execution_id, "start", approved=False, sender="bob")

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-5")
@ASKED_ANYWHERE
def test_of_several_approvals_one_must_be_named(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(
            step(
                "start", waits("ask", approval="{{ iter.n }}?"), loop=loop([1, 2], mode="parallel")
            )
        )
        execution_id = await stage.start(text)
        await stage.waits(execution_id, 2)
        with pytest.raises(ServerRefused, match=r"2 approvals wait.*start:0, start:1"):
            await stage.plane.answer(execution_id, "start", approved=True, sender="x")
        with pytest.raises(ServerRefused, match=r"no approval.*did you mean 'start:1'"):
            await stage.plane.answer(execution_id, "strat:1", approved=True, sender="x")
        commands = [wait.answers for wait in await stage.reasons(execution_id) if wait.answers]
        assert [one[0].split()[-1] for one in commands] == ["start:0", "start:1"]
        for named in ("start:1", "start:0"):
            await stage.plane.answer(execution_id, named, approved=True, sender="x", reason=named)
        execution = await stage.ended(execution_id)
        (done,) = await stage.of(execution_id, e.LoopDone)
        assert [one["reason"] for one in done.results] == ["start:0", "start:1"]
        assert execution.status == "completed"

    staged(test, where, tmp_path)


# ── the first of several ─────────────────────────────────────────────────────────────────────

ANY: dict[str, Any] = {
    "late": {"seconds": 3600},
    "paid": {"signal": "paid", "when": "{{ signal.data > 0 }}"},
    "said": {"approval": "Enough?"},
}


@pytest.mark.rule("WAIT-1", "WAIT-2", "WAIT-5")
@EVERYWHERE
@pytest.mark.parametrize("winner", ["late", "paid", "said"])
def test_of_any_the_first_that_comes_wins(winner: str, where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        arms = {**ANY, "late": {"seconds": 0.05}} if winner == "late" else ANY
        execution_id = await stage.start(text_of(waits("w", KEEP, any=arms, timeout=7200)))
        if winner != "late":
            await stage.waits(execution_id)
        if winner == "paid":
            await stage.signal(execution_id, "paid", 0)
            await stage.signal(execution_id, "paid", 7)
        if winner == "said":
            await stage.plane.answer(execution_id, "start", approved=True, sender="x")
        execution = await stage.ended(execution_id)
        assert execution.ctx["how"]["label"] == winner
        (lost,) = await stage.of(execution_id, e.WaitWithdrawn)
        assert lost.labels == [label for label in ANY if label != winner]

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-5", "WAIT-7")
@ASKED_ANYWHERE
def test_two_approvals_of_any_have_names_of_their_own(where: str, tmp_path: Path) -> None:
    arms: dict[str, Any] = {
        "boss": {"approval": "Boss: pay?"},
        "finance": {"approval": {"title": "Finance: pay?", "form": {"limit": "number"}}},
        "paid": {"signal": "paid"},
    }

    async def test(stage: Stage) -> None:
        execution_id = await stage.start(text_of(waits("w", KEEP, any=arms)))
        await stage.waits(execution_id)
        execution, plan = await stage.plane.state(execution_id)
        boss, finance = waits_of(execution, plan)
        assert (boss.title, boss.form, boss.question) == ("Boss: pay?", {}, "start.boss")
        assert (finance.title, finance.question) == ("Finance: pay?", "start.finance")
        assert finance.answers[0] == f"noetl approve {execution_id} start.finance --set limit=…"
        for name in (None, "start", "start.w"):
            with pytest.raises(ServerRefused, match=r"of them: start\.boss, start\.finance$"):
                await stage.plane.answer(execution_id, name, approved=True, sender="x")
        fields = {"limit": 5}
        await stage.plane.answer(
            execution_id, "start.finance", approved=True, sender="x", fields=fields
        )
        execution = await stage.ended(execution_id)
        assert execution.ctx["how"]["label"] == "finance"

    staged(test, where, tmp_path)
