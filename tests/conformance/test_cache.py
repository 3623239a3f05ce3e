"""CACHE: outcomes that are kept and given again."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.kept import Runs, both, events_of, kept
from tests.support.scenario import Gate, error, ok
from tests.support.steps import (
    arc,
    call,
    loop,
    nested,
    noop,
    otherwise,
    playbook,
    step,
    task,
    when,
)

from noetl.messages import events as e
from noetl.node.housekeeping import retention_of
from noetl.playbook.load import load, load_valid
from noetl.ports.cache import GRACE, CacheFilter
from noetl.server.caching import identity_of
from noetl.server.library import plan_from
from noetl.server.timers import now

Tree = dict[str, Any]


def cached(tree: Tree, key: str = "{{ workload.city }}", ttl: float = 60) -> Tree:
    """The task with a cache."""
    ((label, one),) = tree.items()
    return {label: {**one, "spec": {**one.get("spec", {}), "cache": {"key": key, "ttl": ttl}}}}


def weather(*tasks: Tree, city: Any = "oslo", **roots: Any) -> str:
    return playbook(step("start", *tasks), workload={"city": city}, **roots)


async def entries(runs: Runs) -> list[str]:
    found = await runs.plane.storage.cache.page(CacheFilter(), now=now())
    return [f"{one.path} {one.task} {one.key}" for one in found]


def of(events: list[e.Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if type(event) is kind]


@both
@pytest.mark.rule("CACHE-1")
def test_an_ok_outcome_is_given_again(tmp_path: Path, where: str) -> None:
    async def test(runs: Runs) -> None:
        runs.tools.answers["get"] = [ok({"t": 3}, http={"status": 200}), ok("never")]
        seen = otherwise(set_ctx={"t": "{{ outcome.result.t }}", "meta": "{{ outcome.meta }}"})
        text = weather(cached(call("get", seen)), noop("end"))
        first, second = await runs.run(text), await runs.run(text)
        assert len(runs.tools.calls) == 1
        assert [one.status for one in (first, second)] == ["completed", "completed"]
        assert (second.leaves, second.ctx["t"]) == (first.leaves, 3)
        assert "cached" not in first.ctx["meta"]
        whose = second.ctx["meta"]["cached"]
        assert whose["execution_id"] == first.execution_id
        events = await events_of(runs, second)
        (hit,) = of(events, e.TaskCached)
        done = of(events, e.TaskDone)[0]
        assert (hit.key, hit.from_execution_id) == ("oslo", first.execution_id)
        assert done.outcome["meta"]["cached"] == {
            "execution_id": first.execution_id,
            "at": hit.kept_at,
        }
        assert (done.outcome["status"], done.outcome["http"]) == ("ok", {"status": 200})
        names = [type(one).__struct_config__.tag for one in events if hasattr(one, "task")]
        assert names[:3] == ["task.started", "task.cached", "task.done"]
        assert await entries(runs) == ["tests/scenario start.get oslo"], "a hit keeps nothing new"

    kept(test, tmp_path, where)


@both
@pytest.mark.rule("CACHE-1")
def test_what_an_entry_is_known_by(tmp_path: Path, where: str) -> None:
    async def test(runs: Runs) -> None:
        text = weather(cached(call("get")))
        await runs.run(text)
        other = {"metadata": {"name": "other", "path": "tests/other"}}
        for changed, payload in (
            (text, {"city": "rome"}),
            (weather(cached(call("fetch"))), {}),
            (weather(cached(call("get", url="y"))), {}),
            (weather(cached(call("get")), **other), {}),
            (weather(cached(call("get")), keychain=[{"name": "db", "kind": "generic"}]), {}),
            (weather(cached(call("get")), keychain=[{"name": "db", "kind": "bearer"}]), {}),
        ):
            before = len(runs.tools.calls)
            await runs.run(changed, **payload)
            assert len(runs.tools.calls) == before + 1, changed
        before = len(runs.tools.calls)
        await runs.run(weather(cached(call("get")), noop("more")))
        await runs.run(weather(cached(call("get", otherwise()), ttl=30)))
        assert len(runs.tools.calls) == before, "what else the playbook says does not matter"

    kept(test, tmp_path, where)


@pytest.mark.rule("CACHE-1", "WRK-2")
def test_no_pool_is_given_what_another_kept() -> None:
    """A version of the playbook for other workers: those of the first are not trusted there."""
    found = {
        identity_of(plan_from(weather(cached(call("get")), **roots)), "start.get", "oslo")
        for roots in ({}, pool("default"), pool("secure"))
    }
    assert len(found) == 2, "the default is the default"


def pool(name: str) -> Tree:
    return {"executor": {"kind": "distributed", "spec": {"pool": name}}}


@both
@pytest.mark.rule("CACHE-1")
def test_only_an_outcome_that_was_good_is_kept(tmp_path: Path, where: str) -> None:
    async def test(runs: Runs) -> None:
        bad = when("outcome.result == 'bad'", "fail")
        runs.tools.answers["get"] = [error("http"), ok("bad"), ok("good"), ok("never")]
        text = weather(cached(call("get", bad, when("outcome.status == 'error'", "fail"))))
        statuses = [(await runs.run(text)).status for _ in range(4)]
        assert statuses == ["failed", "failed", "completed", "completed"]
        assert len(runs.tools.calls) == 3

    kept(test, tmp_path, where)


@both
@pytest.mark.rule("CACHE-1")
def test_a_retry_asks_the_tool_and_not_the_cache(tmp_path: Path, where: str) -> None:
    async def test(runs: Runs) -> None:
        runs.tools.answers["get"] = [ok("old"), ok("new"), ok("never")]
        await runs.run(weather(cached(call("get"))))
        again = when("outcome.result == 'old'", "retry", attempts=3, delay=0)
        rerun = await runs.run(weather(cached(call("get", again, otherwise()))))
        assert (rerun.leaves, len(runs.tools.calls)) == ({"start": "new"}, 2)
        third = await runs.run(weather(cached(call("get"))))
        assert (third.leaves, len(runs.tools.calls)) == ({"start": "new"}, 2)

    kept(test, tmp_path, where)


@both
@pytest.mark.rule("CACHE-1")
def test_a_key_of_null_keeps_nothing(tmp_path: Path, where: str) -> None:
    async def test(runs: Runs) -> None:
        text = weather(cached(call("get"), "{{ none if workload.fresh else 'k' }}"))
        text = text.replace('"city"', '"fresh": false, "city"', 1)
        for fresh in (True, False, True, False):
            assert (await runs.run(text, fresh=fresh)).status == "completed"
        assert len(runs.tools.calls) == 3
        empty = await runs.run(weather(cached(call("get")), city=""))
        assert empty.error is not None
        assert (empty.error["kind"], "`key` is empty" in empty.error["message"]) == (
            "template",
            True,
        )
        long = weather(cached(call("get")), city="x" * 5000)
        await runs.run(long)
        before = len(runs.tools.calls)
        await runs.run(long)
        assert len(runs.tools.calls) == before
        assert any(" sha256:" in one for one in await entries(runs))

    kept(test, tmp_path, where)


@both
@pytest.mark.rule("CACHE-1")
def test_large_outcomes_are_not_copied_and_stay_as_long_as_they_are_needed(
    tmp_path: Path, where: str
) -> None:
    async def test(runs: Runs) -> None:
        runs.tools.answers["get"] = [ok({"rows": ["x" * 100] * 3000}), ok("never")]
        counts = otherwise(set_ctx={"n": "{{ _prev.rows | length }}"})
        text = weather(cached(call("get")), noop("count", counts))
        first = await runs.run(text)
        objects: Any = runs.plane.results.objects
        bodies = dict(objects.kept)
        second = await runs.run(text)
        assert (second.ctx["n"], len(runs.tools.calls)) == (3000, 1)
        assert objects.kept.keys() == bodies.keys(), "the second execution stored nothing"
        plane = runs.plane
        assert first.execution_id in await plane.storage.cache.needed()
        assert await plane.storage.cache.clear(CacheFilter()) == 1
        async with retention_of(plane) as retention:
            await plane.storage.removals.remove(first.execution_id)
            await retention.clear()
            assert objects.kept.keys() == bodies.keys(), "the second execution refers to them"
            await plane.storage.removals.remove(second.execution_id)
            await plane.storage.cache.expire(now() + 2 * GRACE)
            await retention.clear()
            assert not objects.kept

    kept(test, tmp_path, where)


@both
@pytest.mark.rule("CACHE-1")
def test_iterations_and_inner_tasks_have_entries_of_their_own(tmp_path: Path, where: str) -> None:
    async def test(runs: Runs) -> None:
        inner = nested("each", loop([1, 2]), cached(call("get"), "{{ iter.n }}"))
        text = playbook(
            step(
                "start", cached(call("get"), "{{ iter.n }}"), loop=loop([1, 1, 2]), arcs=[arc("b")]
            ),
            step("b", inner, cached(call("get"), "1")),
        )
        first = await runs.run(text)
        assert first.status == "completed"
        assert len(runs.tools.calls) == 5
        assert sorted(await entries(runs)) == [
            "tests/scenario b.each.get 1",
            "tests/scenario b.each.get 2",
            'tests/scenario b.get "1"',
            "tests/scenario start.get 1",
            "tests/scenario start.get 2",
        ]
        second = await runs.run(text)
        assert (second.leaves, len(runs.tools.calls)) == (first.leaves, 5)

    kept(test, tmp_path, where)


@both
@pytest.mark.rule("CACHE-1", "TOOL-2")
def test_a_workbook_task_is_kept_where_it_is_called(tmp_path: Path, where: str) -> None:
    def text(url: str) -> str:
        lent = {"tasks": {"lookup": call("x", url=url)["x"]}}
        return weather(cached(task("get", "workbook", name="lookup")), workbook=lent)

    async def test(runs: Runs) -> None:
        first = await runs.run(text("a"))
        second = await runs.run(text("a"))
        assert (second.leaves, len(runs.tools.calls)) == (first.leaves, 1)
        done = of(await events_of(runs, second), e.TaskDone)[0]
        assert done.outcome["workbook"] == {"task": "lookup", "kind": "http"}
        await runs.run(text("b"))
        assert len(runs.tools.calls) == 2, "another text in the workbook"

    kept(test, tmp_path, where)


@pytest.mark.rule("CACHE-1")
def test_two_at_once_may_both_run(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["get"] = [gate]
        server = await cluster.server()
        cluster.worker(tools)
        text = weather(cached(call("get")))
        ids = [await cluster.start(text), await cluster.start(text)]
        for key in await gate.held(2):
            await gate.let_go(key)
        for name in ids:
            assert (await cluster.end_of(name)).status == "completed"
        await server.cache.close()
        third = await cluster.run(text)
        assert len(tools.calls) == 2
        assert third.status == "completed"

    clustered(test, tmp_path)


@both
@pytest.mark.rule("CACHE-1")
def test_entries_that_are_too_old_are_not_given(tmp_path: Path, where: str) -> None:
    async def test(runs: Runs) -> None:
        text = weather(cached(call("get"), ttl=1))
        await runs.run(text)
        cache = runs.plane.storage.cache
        (entry,) = await cache.page(CacheFilter(), now=now())
        assert entry.expires_at == entry.kept_at + 1000
        assert await cache.find(entry.identity, entry.expires_at) is None
        assert await cache.expire(entry.expires_at) == 1
        await runs.run(text)
        assert len(runs.tools.calls) == 2

    kept(test, tmp_path, where)


FINDINGS = [
    (cached(call("get"), ttl=0), "wrong-value", "'ttl'"),
    ({"get": {"kind": "http", "url": "x", "spec": {"cache": {"ttl": 5}}}}, "missing-key", "key"),
    (cached(noop("get")), "ignored-key", "calls nothing"),
    (cached(task("get", "wait", seconds=1)), "ignored-key", "waits for something"),
    (cached(task("get", "secrets", name="x")), "ignored-key", "secrets are never cached"),
    (cached(call("get"), "{{ execution_id }}"), "never-found", "execution_id"),
    (cached(call("get"), "{{ workload.town }}"), "unbound-name", "workload.town"),
    (cached(call("get"), "{{ outcome.result }}"), "unknown-name", "outcome"),
]


@pytest.mark.rule("CACHE-1")
@pytest.mark.parametrize(("one", "code", "words"), FINDINGS, ids=[one[1] for one in FINDINGS])
def test_what_makes_no_sense_is_told(one: Tree, code: str, words: str) -> None:
    found = load(weather(one)).findings
    assert [(finding.code, words in finding.message) for finding in found] == [(code, True)]


@pytest.mark.rule("CACHE-1", "KEY-3")
def test_a_key_that_reads_a_secret_is_refused() -> None:
    fetch = task("fetch", "secrets", otherwise(set_ctx={"word": "{{ outcome.result }}"}), name="x")
    for key in ("{{ _prev }}", "{{ ctx.word }}-1"):
        found = load(weather(fetch, cached(call("get"), key))).findings
        assert [one.code for one in found] == ["secret-key"]
        assert "holds a secret" in found[0].message
    load_valid(weather(fetch, call("between"), cached(call("get"), "{{ _prev.id }}")))


@pytest.mark.rule("CACHE-1")
def test_the_cache_of_a_workbook_task_is_told() -> None:
    lent = {"tasks": {"lookup": cached(call("x"), "1")["x"]}}
    text = weather(task("get", "workbook", name="lookup"), workbook=lent)
    assert [one.code for one in load(text).findings] == ["ignored-key"]
