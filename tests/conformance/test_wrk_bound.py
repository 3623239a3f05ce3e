"""WRK: a worker does a worker's work and nothing else, whatever it says (decision 0050)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.cluster import Cluster, clustered, until
from tests.support.steps import call, otherwise, playbook, step, task

from noetl import __version__
from noetl.messages import events as e
from noetl.messages.codec import encode, encode_events
from noetl.node.server import ServerNode
from noetl.ports import link
from noetl.ports.credentials import SealedCredential
from noetl.ports.event_log import PrintedLine
from noetl.ports.link import SPEAKS, Answer, Call, Caller, Hold, Reply, Sent
from noetl.ports.session import ChildAsked
from noetl.server import dispatcher, granting
from noetl.server.inspection import inspected

EVIL = Caller("aaaaaaaa", "default")
GOOD = Caller("bbbbbbbb", "secure")
MINE = playbook(step("mine", call("fetch")))
MINE_TOO = playbook(step("mine", call("fetch")), metadata={"name": "child", "path": "demo/child"})
PARENT = playbook(step("run", task("child", "playbook", path="demo/child")))
SECURE = playbook(
    step("theirs", call("fetch", otherwise(set_ctx={"word": "{{ outcome.result }}"}))),
    executor={"kind": "distributed", "spec": {"pool": "secure"}},
)


class Hand:
    """A worker as somebody would write it who has its token and bad intentions."""

    def __init__(self, server: ServerNode, by: Caller, name: str) -> None:
        self._dispatcher = server.dispatcher
        self.by = by
        self.me = Call(
            worker=name, pool=by.pool or "default", version=__version__, speaks=SPEAKS, slots=9
        )
        self.hold = Hold("none", "1", 0, 1)
        self.sent = 0

    async def say(self, **said: Any) -> Answer:
        return await self._dispatcher.answer(msgspec.structs.replace(self.me, **said), self.by)

    async def take(self) -> Hold:
        """The first part that it is given."""
        answer = await self.say(free=1)
        command = msgspec.json.decode(answer.grants[0].command)
        keys = ("execution_id", "step_run_id", "part", "epoch")
        self.hold = Hold(*(command[key] for key in keys))
        return self.hold

    async def ask(self, question: link.Question, **more: Any) -> Reply:
        usual = {"worker": self.me.worker, "pool": self.me.pool, "hold": self.hold}
        asked = msgspec.structs.replace(question, **(usual | more))
        return await self._dispatcher.reply(asked, self.by)


class Scene:
    """An evil worker that holds a part of its own, and a good one of another pool."""

    def __init__(self, cluster: Cluster, server: ServerNode) -> None:
        self.cluster, self.server = cluster, server
        self.evil = Hand(server, EVIL, "evil-aaaaaaaa")
        self.good = Hand(server, GOOD, "good-bbbbbbbb")
        self.victim = ""

    async def begin(self, mine: str) -> None:
        await self.cluster.start(mine)
        self.victim = await self.cluster.start(SECURE)
        await self.evil.take()
        await self.good.take()

    async def nothing_happened(self) -> None:
        """The victim stands where it stood, and its worker ends it well."""
        active = self.server.server.find(self.victim)
        assert active is not None
        assert active.execution.status == "running"
        assert list(await self.cluster.root.printed.read(self.victim)) == []
        ids: dict[str, Any] = {"step": "theirs", "step_run_id": self.good.hold.step_run_id}
        done = report(self.good.hold, e.StepStarted(**ids), e.StepDone(**ids, result="good"))
        (verdict,) = (await self.good.say(reports=[done])).verdicts
        assert verdict.state == "recorded", verdict.reason
        execution = await self.cluster.end_of(self.victim)
        assert (execution.status, execution.leaves) == ("completed", {"theirs": "good"})


def report(hold: Hold, *events: e.Event) -> Sent:
    return Sent(hold=hold, after=0, events=msgspec.Raw(encode_events(events)))


def task_run_of(hold: Hold) -> str:
    """The first task run of a part (EVT-0)."""
    return f"{hold.step_run_id.partition('.')[0]}.1"


def child(execution_id: str, **fields: Any) -> ChildAsked:
    parent = execution_id.partition("-")[0]
    usual = {"parent_execution_id": parent, "parent_id": "1", "path": "demo/child"}
    return ChildAsked(
        **{"execution_id": execution_id, "version": None, "payload": {}, **usual, **fields}
    )


def staged(tmp_path: Path, act: Any, mine: str = MINE) -> None:
    async def test(cluster: Cluster) -> None:
        scene = Scene(cluster, await cluster.server())
        await scene.begin(mine)
        await act(scene)
        await scene.nothing_happened()

    clustered(test, tmp_path)


CACHED = call("fetch")
CACHED["fetch"]["spec"] = {"cache": {"key": "k", "ttl": 60}}


@pytest.mark.rule("WRK-1", "CACHE-1")
def test_kept_outcomes_of_the_step_that_it_holds_alone(tmp_path: Path) -> None:
    """Another step's task, or one without a cache, is asked for in vain; so is a foreign lease."""

    async def act(scene: Scene) -> None:
        ask = scene.evil.ask
        assert bytes((await ask(link.KeptWanted(task="mine.fetch", key="k"))).value) == b"null"
        for other in ("theirs.fetch", "mine.other", ""):
            refused(await ask(link.KeptWanted(task=other, key="k")), "has no cache")
        wanted = link.KeptWanted(task="mine.fetch", key="k")
        refused(await ask(wanted, hold=scene.good.hold), "does not hold the lease")

    staged(tmp_path, act, playbook(step("mine", CACHED)))


@pytest.mark.rule("WRK-1", "WAIT-6")
def test_delays_of_the_run_that_it_holds_alone(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        wanted = link.DelayWanted(task_run_id="1.1", wait=0.0)
        assert bytes((await scene.evil.ask(wanted)).value) == b"0"
        refused(await scene.evil.ask(wanted, hold=scene.good.hold), "does not hold the lease")

    staged(tmp_path, act)


@pytest.mark.rule("WRK-1", "CACHE-1")
def test_a_worker_keeps_outcomes_of_its_own_step_alone(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        hold = scene.evil.hold
        ids: dict[str, Any] = {"step": "mine", "step_run_id": hold.step_run_id}
        run: dict[str, Any] = {**ids, "task_run_id": task_run_of(hold), "task": "fetch"}
        outcome: dict[str, Any] = {"status": "ok", "result": 1, "error": None}
        for cache in ({"task": "theirs.fetch", "key": "k"}, {"key": "k"}, {"task": "mine.fetch"}):
            done = e.TaskDone(**run, outcome=outcome, cache=cache, do="jump", to="fetch")
            sent = Sent(
                hold=hold,
                after=scene.evil.sent,
                events=msgspec.Raw(encode_events([done])),
            )
            scene.evil.sent += 1
            (verdict,) = (await scene.evil.say(reports=[sent])).verdicts
            assert verdict.state == "recorded", verdict.reason
        await scene.server.cache.close()
        assert scene.cluster.root.tables.kept == {}

    staged(tmp_path, act, playbook(step("mine", CACHED)))


@pytest.mark.rule("WRK-1")
def test_a_report_that_the_server_trips_over_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Promise 7: else its worker repeats the whole call for ever, and all that it does stands."""

    async def act(scene: Scene) -> None:

        def tripping(sent: Sent, *given: Any, **named: Any) -> list[e.Event]:
            if sent.hold == scene.evil.hold:
                raise RuntimeError("a fault of ours")
            return inspected(sent, *given, **named)

        monkeypatch.setattr(dispatcher, "inspected", tripping)
        hold = scene.evil.hold
        started = e.StepStarted(step="mine", step_run_id=hold.step_run_id)
        answer = await scene.evil.say(reports=[report(hold, started)], holds=[])
        assert [one.state for one in answer.verdicts] == ["refused"]
        assert any("report: RuntimeError" in said for said in scene.cluster.said)

    staged(tmp_path, act)


def refused(reply: Reply, words: str) -> None:
    assert reply.error is not None, reply.value
    assert reply.error["code"] == "refused"
    assert words in reply.error["message"]
    assert bytes(reply.value) == b"null"


@pytest.mark.rule("WRK-1", "WRK-2")
@pytest.mark.parametrize(
    "said",
    [
        {"pool": "secure", "free": 9},
        {"worker": "good-bbbbbbbb", "free": 9},
        {"worker": "good-bbbbbbbb", "pool": "secure", "free": 9},
        {"worker": "aaaaaaaa", "free": 9},
    ],
)
def test_no_work_is_given_to_whoever_is_not_of_the_pool(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    async def act(scene: Scene) -> None:
        other = await scene.cluster.start(SECURE)
        await until(scene.server.dispatcher.parts.pools)
        answer = await scene.evil.say(**said)
        assert answer.grants == []
        assert "token" in answer.refusal
        assert scene.server.refused["stranger"] == 1
        assert scene.server.dispatcher.parts.pools() == {"secure": 1}
        await scene.cluster.servers[0].order(other, "cancel")

    staged(tmp_path, act)


@pytest.mark.rule("WRK-1")
@pytest.mark.parametrize("name", [None, "good-bbbbbbbb"])
def test_no_result_is_forged(tmp_path: Path, name: str | None) -> None:
    async def act(scene: Scene) -> None:
        hold = scene.good.hold
        ids: dict[str, Any] = {"step": "theirs", "step_run_id": hold.step_run_id}
        forged = [report(hold, e.StepStarted(**ids), e.StepDone(**ids, result="evil"))]
        answer = await scene.evil.say(worker=name or scene.evil.me.worker, reports=forged)
        assert [one.state for one in answer.verdicts] == ([] if name else ["refused"])
        assert bool(answer.refusal) == bool(name)
        await scene.evil.say(holds=[hold], returns=[hold])

    staged(tmp_path, act)


@pytest.mark.rule("WRK-1")
def test_nothing_of_another_execution_is_read_or_ended(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        evil, theirs = scene.evil, scene.good.hold
        end = link.EndWanted(execution_id=scene.victim, wait=0.0)
        cancel = link.CancelWanted(execution_id=scene.victim, reason="evil")
        active = scene.server.server.find(scene.victim)
        assert active is not None
        text = link.PlaybookWanted(active.plan.digest)
        refused(await evil.ask(end), "not a child of the part")
        refused(await evil.ask(cancel), "not a child of the part")
        refused(await evil.ask(text), "another playbook")
        for question in (end, cancel, text, link.CredentialWanted("c"), link.LogKeysWanted()):
            refused(await evil.ask(question, hold=theirs), "does not hold the lease")
            refused(await evil.ask(question, hold=None), "names no lease")
            refused(await evil.ask(question, hold=Hold("../../evil", "1", 0, 1)), "names no lease")
            refused(await evil.ask(question, worker="good-bbbbbbbb"), "token of another")
            refused(await evil.ask(question, pool="secure"), "pool 'default'")

    staged(tmp_path, act)


@pytest.mark.rule("WRK-1", "EVT-0", "TOOL-1")
def test_no_child_begins_that_no_task_asks_for(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        evil, held = scene.evil, scene.evil.hold
        task_run = task_run_of(held)
        usual = {"parent_execution_id": held.execution_id, "parent_id": task_run}
        right = f"{held.execution_id}-{task_run}-1"
        for asked in (
            child("../../evil", **usual),
            child(f"{held.execution_id}-../../evil-1", **usual),
            child(f"{held.execution_id}-{task_run}-1-../../evil", **usual),
            child(f"{held.execution_id}-{task_run}-9999999", **usual),
            child(f"{scene.victim}-{task_run}-1", **usual),
            child(right, **(usual | {"parent_id": "99.1"})),
            child(right, **(usual | {"parent_execution_id": scene.victim})),
            child(right, **(usual | {"path": "demo/other"})),
        ):
            refused(await evil.ask(link.ChildWanted(msgspec.Raw(encode(asked)))), "")
        assert len(await scene.cluster.root.executions.page()) == 2
        await scene.server.register(MINE_TOO)
        honest = await evil.ask(link.ChildWanted(msgspec.Raw(encode(child(right, **usual)))))
        assert honest.error is None
        end = await evil.ask(link.EndWanted(execution_id=right, wait=0.0))
        assert msgspec.json.decode(end.value)["status"] == "running"
        assert (await evil.ask(link.CancelWanted(execution_id=right, reason=""))).error is None

    staged(tmp_path, act, PARENT)


@pytest.mark.rule("WRK-1", "TOOL-1")
def test_a_step_without_such_a_task_starts_nothing(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        held = scene.evil.hold
        task_run = task_run_of(held)
        asked = child(f"{held.execution_id}-{task_run}-1", parent_id=task_run)
        refused(await scene.evil.ask(link.ChildWanted(msgspec.Raw(encode(asked)))), "has no task")

    staged(tmp_path, act)


@pytest.mark.rule("WRK-1")
def test_lines_are_kept_only_where_the_worker_works(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        line = PrintedLine(
            execution_id=scene.victim,
            step="theirs",
            task_run_id="1",
            attempt=1,
            at=1,
            stream="stdout",
            text="evil",
        )
        mine = msgspec.structs.replace(line, execution_id=scene.evil.hold.execution_id)
        await scene.evil.say(lines=[line, mine])
        kept = await scene.cluster.root.printed.read(mine.execution_id)
        assert [one.text for one in kept] == ["evil"]
        assert scene.server.refused["lines of others"] == 1

    staged(tmp_path, act)


@pytest.mark.rule("WRK-1", "KEY-2")
def test_keys_of_the_servers_are_nobody_elses(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        for name, kind in (("$t:abc", "$own"), ("$1234", "$key"), ("plain", "generic")):
            kept = SealedCredential(name=name, kind=kind, key_id="k", sealed=b"s", updated_at=1)
            await scene.cluster.root.credentials.keep(kept)
        found = {
            name: bytes((await scene.evil.ask(link.CredentialWanted(name))).value) != b"null"
            for name in ("$t:abc", "$1234", "plain")
        }
        assert found == {"$t:abc": False, "$1234": True, "plain": True}

    staged(tmp_path, act)


@pytest.mark.rule("WRK-1", "SRV-3")
def test_a_take_over_opens_no_door_to_other_pools(tmp_path: Path) -> None:
    """The new owner knows of no lease that the log has not heard of: a pool knows its own."""

    async def test(cluster: Cluster) -> None:
        first = await cluster.server()
        victim = await cluster.start(SECURE)
        hold = await Hand(first, GOOD, "good-bbbbbbbb").take()
        second = await cluster.server()
        await cluster.kill_server(first)
        evil, good = Hand(second, EVIL, "evil-aaaaaaaa"), Hand(second, GOOD, "good-bbbbbbbb")
        ids: dict[str, Any] = {"step": "theirs", "step_run_id": hold.step_run_id}
        sent = report(hold, e.StepStarted(**ids), e.StepDone(**ids, result="evil"))
        states = {one.state async for one in until_settled(evil, sent)}
        assert states <= {"moved", "later", "refused"}
        refused(await evil.ask(link.LogKeysWanted(), hold=hold), "does not hold the lease")
        assert (await evil.say(holds=[hold])).lost == [hold]
        done = report(hold, e.StepStarted(**ids), e.StepDone(**ids, result="good"))
        assert (await good.say(reports=[done])).verdicts[0].state == "recorded"
        execution = await cluster.end_of(victim)
        assert execution.leaves == {"theirs": "good"}

    clustered(test, tmp_path)


async def until_settled(hand: Hand, sent: Sent) -> Any:
    """Verdicts until the server has taken the execution over."""
    while True:
        (verdict,) = (await hand.say(reports=[sent])).verdicts
        yield verdict
        if verdict.state not in ("moved", "later"):
            return


BOUNDS: list[dict[str, Any]] = [
    {"slots": -1},
    {"free": 10**9},
    {"room": 2**63},
    {"clock": 2**63},
    {"pid": -1},
    {"worker": ""},
    {"worker": "x" * 201},
    {"pool": "x" * 201},
    {"holds": [["e", "1", 2**63, 1]]},
    {"holds": [["e", "1", 0, -1]]},
    {"reports": [{"hold": ["e", "1", 0, 1], "after": 2**63, "events": []}]},
    {"host": "x" * 256},
    {"version": "x" * 256},
    {"holds": [["e", "1", 0, 1]] * 100_001},
    {"returns": [["e", "1", 0, 1]] * 100_001},
    {"reports": [{"hold": ["e", "1", 0, 1], "after": 0, "events": []}] * 100_001},
]
LINE = {
    "execution_id": "e",
    "step": "s",
    "task_run_id": "1",
    "stream": "stdout",
    "text": "x",
}


@pytest.mark.rule("WRK-1")
@pytest.mark.parametrize(
    "said",
    [
        *BOUNDS,
        {"lines": [{**LINE, "attempt": 1, "at": 2**63}]},
        {"lines": [{**LINE, "attempt": -1, "at": 1}]},
    ],
    ids=lambda said: next(iter(said)),
)
def test_numbers_and_names_in_calls_have_bounds(said: dict[str, Any]) -> None:
    usual = {"worker": "w", "pool": "p", "version": "1"}
    msgspec.json.decode(msgspec.json.encode(usual), type=Call)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(usual | said), type=Call)


class CountedName(str):
    """A text that knows how often texts of its kind were compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return super().__eq__(other)


@pytest.mark.rule("WRK-1")
def test_leases_that_nobody_gave_are_looked_at_once_each(tmp_path: Path) -> None:
    """A call of many thousand leases of executions that are nowhere holds nobody else up."""
    many = 2_000

    async def act(scene: Scene) -> None:
        made_up = [Hold(CountedName(f"e{number}"), "1", 0, 1) for number in range(many)]
        CountedName.compared = 0
        answer = await scene.evil.say(holds=[scene.evil.hold, *made_up])
        assert (answer.moved, answer.lost) == (made_up, [])
        assert CountedName.compared <= 3 * many  # of which the line above has one for each

    staged(tmp_path, act)


@pytest.mark.rule("WRK-1")
def test_names_that_one_token_makes_up_are_not_kept_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was silent longest makes room; who calls is known."""
    monkeypatch.setattr(granting, "MOST_KNOWN", 5)

    async def act(scene: Scene) -> None:
        for number in range(20):
            await scene.evil.say(worker=f"made-up-{number}-aaaaaaaa")
            await scene.good.say()
        seen = scene.server.dispatcher.granting.seen
        assert len(seen) == 5
        assert {scene.good.me.worker, "made-up-19-aaaaaaaa"} <= set(seen)

    staged(tmp_path, act)


@pytest.mark.rule("WRK-1")
def test_numbers_in_reported_events_have_bounds(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        hold = scene.evil.hold
        ids: dict[str, Any] = {"step": "mine", "step_run_id": hold.step_run_id}
        strange = e.TaskStarted(**ids, task="fetch", kind="http", task_run_id="1", attempt=2**70)
        sent = report(hold, e.StepStarted(**ids), strange)
        (verdict,) = (await scene.evil.say(reports=[sent])).verdicts
        assert verdict.state == "refused"
        assert "attempt" in verdict.reason

    staged(tmp_path, act)
