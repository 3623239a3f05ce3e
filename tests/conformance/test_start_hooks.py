"""START-4: a call of another program starts a playbook, if it proves who makes it."""

import asyncio
import itertools
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.conformance.test_start import requested
from tests.support.api import served
from tests.support.canned import CannedTools
from tests.support.cluster import PATIENCE, Cluster, clustered
from tests.support.steps import noop, otherwise, playbook, step
from tests.support.triggers import trigger
from tests.support.waiting import waits

from noetl.api.hooks import REFUSED
from noetl.api.questions import PlaneQuestions
from noetl.api.signatures import signature
from noetl.messages.requests import SendSignal
from noetl.node.server import ServerNode
from noetl.node.triggers import LONGEST_REASON

SECRET = "whsec-4711"
ORDER = playbook(
    step("one", noop("t", otherwise(set_ctx={"id": "{{ workload.id }}"}))), workload={"id": 0}
)


def hook(scheme: str, path: str = "shop/order", **more: Any) -> str:
    return trigger(
        {"webhook": {"scheme": scheme, "credential": "shop", **more}},
        path=path,
        payload={"id": "{{ trigger.data.id }}", "agent": "{{ trigger.headers['user-agent'] }}"},
    )


async def ready(cluster: Cluster, *texts: str) -> ServerNode:
    server = await cluster.server()
    cluster.worker(CannedTools())
    await server.keychain.opened.store.add("shop", "generic", {"secret": SECRET})
    await server.register(ORDER)
    for text in texts:
        await server.register(text)
    return server


class Caller:
    """Calls hooks of a server, signed as its scheme has it."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str], query: str = ""
    ) -> tuple[int, dict[str, Any]]:
        async with (
            aiohttp.ClientSession(headers={"user-agent": "shop/1"}) as session,
            session.post(f"{self.url}/hooks/{path}{query}", data=body, headers=headers) as answer,
        ):
            return answer.status, await answer.json()

    async def signed(
        self, body: bytes, *, at: float | None = None, path: str = "shop/order", query: str = ""
    ) -> tuple[int, dict[str, Any]]:
        moment = int(time.time() if at is None else at)
        headers = {
            "x-noetl-timestamp": str(moment),
            "x-noetl-signature": signature(SECRET, path, body, moment),
        }
        return await self.post(path, body, headers, query)


BODY = json.dumps({"id": 7}).encode()


@pytest.mark.rule("START-4", "START-2")
def test_a_signed_call_starts_once_however_often_it_comes(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await ready(cluster, hook("noetl"))
        async with served(server) as found:
            caller = Caller(found.url)
            now = time.time()
            answers = await asyncio.gather(*(caller.signed(BODY, at=now) for _ in range(5)))
            assert {status for status, _ in answers} == {202}
            assert len({answer["execution"]["execution_id"] for _, answer in answers}) == 1
            name = answers[0][1]["execution"]["execution_id"]
            begun = await requested(cluster, name)
            assert begun.payload["id"] == 7
            assert begun.payload["agent"] == "shop/1"
            assert (await cluster.end_of(name)).ctx == {"id": 7}
            _, other = await caller.signed(BODY, at=now - 5)
            assert other["execution"]["execution_id"] != name
            await cluster.end_of(other["execution"]["execution_id"])
            await server.starts.look()
            row = await cluster.root.triggers.find("shop/order")
            assert row is not None
            assert row.last_execution_id == other["execution"]["execution_id"]

    clustered(test, tmp_path)


@pytest.mark.rule("START-4")
def test_a_call_that_waits_is_answered_with_the_result(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await ready(cluster, hook("noetl"))
        keeps = noop("t", otherwise(set_ctx={"id": "{{ workload.id }}"}))
        await server.register(
            playbook(step("one", waits("w", seconds=0.05), keeps), workload={"id": 0})
        )
        async with served(server) as found:
            status, answer = await Caller(found.url).signed(BODY, query="?wait=30")
            assert status == 202
            assert answer["result"]["status"] == "completed"
            assert answer["result"]["ctx"] == {"id": 7}
            assert answer["execution"]["status"] == "completed", "it does not contradict its result"
            assert answer["execution"]["finished_at"] is not None

    clustered(test, tmp_path)


@pytest.mark.rule("START-4")
@pytest.mark.parametrize("asked", ["?wait=0.05", "?wait=0", ""])
def test_a_call_that_does_not_wait_long_enough_is_told_how_far_it_is(
    asked: str, tmp_path: Path
) -> None:
    async def test(cluster: Cluster) -> None:
        server = await ready(cluster, hook("noetl", wait=0.05))
        await server.register(playbook(step("one", waits("w", signal="go"))))
        async with served(server) as found:
            status, answer = await Caller(found.url).signed(BODY, query=asked)
            assert (status, answer["execution"]["status"]) == (202, "running")
            assert (answer["result"] or {}).get("status") == (
                None if asked == "?wait=0" else "running"
            )
            await server.signal(answer["execution"]["execution_id"], SendSignal(signal="go"))
            await cluster.end_of(answer["execution"]["execution_id"])

    clustered(test, tmp_path)


@pytest.mark.rule("START-4")
def test_what_proves_nothing_starts_nothing(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        small, other = hook("noetl", "shop/small", max_bytes=4), hook("noetl", "shop/other")
        locked = hook("noetl", "shop/locked").replace('"credential": "shop"', '"credential": "no"')
        server = await ready(cluster, hook("noetl"), small, other, locked)
        async with served(server) as found:
            caller = Caller(found.url)
            now = int(time.time())
            good = {
                "x-noetl-timestamp": str(now),
                "x-noetl-signature": signature(SECRET, "shop/order", BODY, now),
            }
            cases: list[tuple[str, bytes, dict[str, str], int, str]] = [
                ("shop/order", BODY, {}, 401, REFUSED),
                ("shop/order", BODY, {**good, "x-noetl-timestamp": "x"}, 401, REFUSED),
                ("shop/order", BODY + b" ", good, 401, REFUSED),
                ("shop/order", BODY, {**good, "x-noetl-timestamp": str(now + 1)}, 401, REFUSED),
                ("shop/other", BODY, good, 401, REFUSED),
                ("shop/locked", BODY, good, 401, REFUSED),
                ("shop/none", BODY, good, 401, REFUSED),
                ("shop/small", BODY, good, 401, REFUSED),
            ]
            for path, body, headers, wanted, said in cases:
                status, answer = await caller.post(path, body, headers)
                assert (status, said in answer["error"]["message"]) == (wanted, True), answer
            status, answer = await caller.signed(BODY, path="shop/small")
            assert (status, answer["error"]["code"]) == (413, "too_large")
            for at in (now - 301 - 60, now + 301 + 60):
                status, answer = await caller.signed(BODY, at=at)
                assert status == 401
                assert answer["error"]["message"] == REFUSED
            assert not await cluster.root.executions.page()
            assert dict(server.unproved) == {
                "shop/order": 6,
                "shop/other": 1,
                "shop/locked": 1,
                "shop/small": 1,
                "": 1,
            }
            shown = await PlaneQuestions(server).trigger("shop/order")
            assert (shown.unproved, "300 s" in (shown.unproved_why or "")) == (6, True)
            locked_why = (await PlaneQuestions(server).trigger("shop/locked")).unproved_why
            assert "'no'" in (locked_why or ""), "the caller learns no name, its owner does"
            assert (await server.counts())["calls_unproved"]["shop/other"] == 1

    clustered(test, tmp_path)


@pytest.mark.rule("START-4")
def test_the_log_has_nothing_that_proves_a_call(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await ready(cluster, hook("noetl"))
        await server.register(
            trigger(
                {"webhook": {"scheme": "noetl", "credential": "shop"}},
                path="shop/all",
                payload={"all": "{{ trigger.headers }}"},
            )
        )
        now = int(time.time())
        proof = signature(SECRET, "shop/all", BODY, now)
        proves = ("x-api-key", "proxy-authorization", "x-gitlab-token", "x-amz-security-token")
        headers = dict.fromkeys((*proves, "x-forwarded-access-token", "cookie"), "k-1")
        headers |= {"x-noetl-timestamp": str(now), "x-noetl-signature": proof}
        async with served(server) as found:
            status, answer = await Caller(found.url).post("shop/all", BODY, headers)
            assert status == 202
            begun = await requested(cluster, answer["execution"]["execution_id"])
            assert begun.payload["all"]["user-agent"] == "shop/1"
            assert proof.removeprefix("sha256=") not in str(begun)
            assert "k-" not in str(begun)
            await cluster.end_of(answer["execution"]["execution_id"])

    clustered(test, tmp_path)


@pytest.mark.rule("START-4")
def test_of_a_body_that_proves_nothing_little_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that sends for ever is answered: by its headers, or at the first byte too many."""

    async def test(cluster: Cluster) -> None:
        server = await ready(cluster, hook("noetl", max_bytes=4096), hook("bearer", "any/call"))
        now = int(time.time())
        signed = {"x-noetl-timestamp": str(now), "x-noetl-signature": "sha256=" + "0" * 64}
        cases: list[tuple[str, dict[str, str], int]] = [
            ("shop/order", {}, 401),
            ("shop/order", signed, 503),
            ("any/call", {"authorization": "Bearer other"}, 401),
            ("any/call", {"authorization": f"Bearer {SECRET}"}, 503),
            ("any/none", signed, 503),
        ]
        monkeypatch.setattr("noetl.api.hooks.HELD", 6000)
        async with served(server) as found:
            host, port = found.url.removeprefix("http://").split(":")
            for path, headers, wanted in cases:
                reader, writer = await asyncio.open_connection(host, int(port))
                head = [f"POST /hooks/{path} HTTP/1.1", f"host: {host}"]
                head += ["transfer-encoding: chunked"]
                head += [f"{name}: {value}" for name, value in headers.items()]
                piece = b"1000\r\n" + b"x" * 4096 + b"\r\n"  # and there is no end of them
                writer.write("\r\n".join([*head, "", ""]).encode() + 2 * piece)
                line = await asyncio.wait_for(reader.readline(), PATIENCE)
                assert line.startswith(f"HTTP/1.1 {wanted} ".encode()), (path, headers, line)
                writer.close()

    clustered(test, tmp_path)


@pytest.mark.rule("START-4")
def test_who_proves_nothing_learns_no_names(tmp_path: Path) -> None:
    """A path without a hook answers as one with a hook of any kind: the same, and as soon."""

    async def test(cluster: Cluster) -> None:
        kinds = [hook("noetl", "a/noetl"), hook("github", "a/github"), hook("bearer", "a/bearer")]
        server = await ready(cluster, *kinds, hook("noetl", "a/small", max_bytes=4))
        paths = ("a/noetl", "a/github", "a/bearer", "a/small", "a/none")
        noetl = {"x-noetl-timestamp": str(int(time.time())), "x-noetl-signature": FORGED}
        github, bearer = {"x-hub-signature-256": FORGED}, {"authorization": "Bearer other"}
        proofs: list[dict[str, str]] = [
            {},
            noetl,
            github,
            bearer,
            {**noetl, **bearer},
            {**github, **bearer},
        ]
        bodies = {10: b"x" * 10, 9_000_000: b"", 11: b"half"}
        async with served(server) as found:
            for proof, (size, body) in itertools.product(proofs, bodies.items()):
                waits = size == 11 and FORGED in proof.values()
                head = {"content-length": str(size), **proof}
                told = {await begun(found.url, path, head, body, waits=waits) for path in paths}
                assert len(told) == 1, (proof, size, told)

    clustered(test, tmp_path)


@pytest.mark.rule("START-4")
def test_bodies_that_drip_keep_no_calls_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has no proof, and sends all but the end of what is taken, makes room."""

    async def test(cluster: Cluster) -> None:
        server = await ready(cluster, hook("noetl"))
        monkeypatch.setattr("noetl.api.hooks.HELD", 100_000)
        head = {"content-length": "40001", "x-hub-signature-256": FORGED}
        async with served(server) as found:
            kept: list[asyncio.StreamWriter] = []
            for path in ("any/0", "any/1", "any/2", "any/3", "any/4"):
                body = b"x" * 40_000
                told = await begun(found.url, path, head, body, waits=True, kept=kept)
                assert told == b"", "the rest is waited for"
            status, answer = await Caller(found.url).signed(BODY)
            assert status == 202
            for writer in kept:
                writer.close()
            await cluster.end_of(answer["execution"]["execution_id"])

    clustered(test, tmp_path)


FORGED = "sha256=" + "0" * 64


async def begun(
    url: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    waits: bool,
    kept: list[asyncio.StreamWriter] | None = None,
) -> bytes:
    """
    The first line of an answer; none where the rest of the body is waited for. `kept` is given
    what stays open.
    """
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = [f"POST /hooks/{path} HTTP/1.1", f"host: {host}"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*head, "", ""]).encode() + body)
    line = asyncio.ensure_future(reader.readline())
    await asyncio.wait([line], timeout=0.05 if waits else PATIENCE)
    if kept is None:
        writer.close()
    else:
        kept.append(writer)
    return line.result() if line.done() else b""


@pytest.mark.rule("START-4")
def test_other_schemes_prove_it_their_own_way(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        import hashlib
        import hmac

        server = await ready(cluster, hook("github", "git/push"), hook("bearer", "any/call"))
        digest = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()
        async with served(server) as found:
            caller = Caller(found.url)
            github = {"x-hub-signature-256": f"sha256={digest}", "x-github-delivery": "d-1"}
            status, first = await caller.post("git/push", BODY, github)
            assert status == 202
            _, again = await caller.post("git/push", BODY, {**github, "x-github-delivery": "d-3"})
            assert again["execution"]["execution_id"] == first["execution"]["execution_id"]
            status, _ = await caller.post("git/push", BODY, {"x-github-delivery": "d-2"})
            assert status == 401
            bearer = {"authorization": f"Bearer {SECRET}"}
            keyed = {**bearer, "idempotency-key": "k"}
            _, first = await caller.post("any/call", BODY, keyed)
            _, again = await caller.post("any/call", BODY, keyed)
            assert again["execution"]["execution_id"] == first["execution"]["execution_id"]
            _, other = await caller.post("any/call", BODY, bearer)
            assert other["execution"]["execution_id"] != first["execution"]["execution_id"]
            status, _ = await caller.post("any/call", BODY, {"authorization": "Bearer other"})
            assert status == 401
            for row in await cluster.root.executions.page():
                begun = await requested(cluster, row.execution_id)
                assert SECRET not in str(begun)
                await cluster.end_of(row.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-4", "START-1")
def test_why_a_call_started_nothing_is_told_to_both(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await ready(cluster, hook("noetl"))
        async with served(server) as found:
            caller = Caller(found.url)
            status, answer = await caller.signed(b"[]")
            assert status == 422
            assert "undefined" in answer["error"]["message"]
            await server.starts.look()
            row = await cluster.root.triggers.find("shop/order")
            assert row is not None
            assert "undefined" in (row.skipped_why or "")
            async with aiohttp.ClientSession() as session:
                await session.post(f"{found.url}/api/triggers/pause/shop/order")
            status, answer = await caller.signed(BODY)
            assert (status, answer["error"]["code"]) == (409, "paused")
            assert not await cluster.root.executions.page()

    clustered(test, tmp_path)


@pytest.mark.rule("START-2", "START-4")
def test_no_caller_takes_the_start_of_another_trigger(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await ready(cluster, hook("bearer", "shop"), hook("bearer", "shop/night"))
        bearer = {"authorization": f"Bearer {SECRET}"}
        async with served(server) as found:
            caller = Caller(found.url)
            keyed = {**bearer, "idempotency-key": "night/x"}
            status, first = await caller.post("shop", BODY, keyed)
            assert status == 202
            _, other = await caller.post("shop/night", BODY, {**bearer, "idempotency-key": "x"})
            names = [one["execution"]["execution_id"] for one in (first, other)]
            assert len({*names}) == 2
            for name in names:
                await cluster.end_of(name)
            key = "trigger/shop/night/y"
            asked = {"path": "tests/scenario"}
            async with aiohttp.ClientSession() as session:
                url = f"{found.url}/api/executions"
                async with session.post(
                    url, json=asked, headers={"idempotency-key": key}
                ) as answer:
                    assert answer.status == 422
                many = {"executions": [{**asked, "key": key}]}
                async with session.post(f"{url}/batch", json=many) as answer:
                    assert "but those of triggers" in await answer.text()
            assert len(await cluster.root.executions.page()) == 2

    clustered(test, tmp_path)


@pytest.mark.rule("START-4", "KEY-2")
def test_a_secret_that_a_call_brings_is_not_recorded(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        plain = trigger({"webhook": {"scheme": "noetl", "credential": "shop"}}, path="shop/plain")
        server = await ready(cluster, hook("noetl"), plain)
        body = json.dumps({"id": f"it is {SECRET}!", SECRET: 1}).encode()
        async with served(server) as found:
            caller = Caller(found.url)
            for path in ("shop/order", "shop/plain"):
                _, answer = await caller.signed(body, path=path)
                name = answer["execution"]["execution_id"]
                begun = await requested(cluster, name)
                assert SECRET not in str(begun)
                assert "it is ***!" in str(begun.payload)
                await cluster.end_of(name)
            failing = json.dumps([SECRET * 200]).encode()
            status, answer = await caller.signed(failing)
            assert status == 422
            await server.starts.look()
            row = await cluster.root.triggers.find("shop/order")
            assert row is not None
            assert row.skipped_why is not None
            assert SECRET not in row.skipped_why
            assert len(row.skipped_why) <= LONGEST_REASON

    clustered(test, tmp_path)
