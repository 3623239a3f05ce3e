"""Templates tried on what was recorded, and values that are stored outside the log."""

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from tests.support.api import Api, api_of
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered

from noetl.masking import KNOWN

SECRET = "correct-horse-battery"
MANY = 40_000
TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: notes, path: tests/notes}
workload: {region: eu}
executor: {spec: {policy: {limits: {max_payload_bytes: 65536}}}}
workflow:
  - step: start
    tool:
      - note: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue,
          set_ctx: {said: early}}}}]}}}
"""


def looked_at(test: Callable[[Api, str], Awaitable[None]], home: Path) -> None:
    """Ask about an execution that a worker has run to its end."""

    async def run(cluster: Cluster) -> None:
        async with api_of(await cluster.server()) as api:
            cluster.worker(CannedTools())
            await api.post("/api/catalog", {"text": TEXT})
            asked = {"path": "tests/notes", "payload": {"word": SECRET, "many": [*range(MANY)]}}
            told = await api.post("/api/executions", asked)
            ended = await cluster.end_of(str(told["execution_id"]))
            assert ended.status == "completed"
            await test(api, f"/api/executions/{ended.execution_id}")

    clustered(run, home)


@pytest.mark.rule("TPL-1")
def test_a_template_is_tried_on_what_was_recorded(tmp_path: Path) -> None:
    async def test(api: Api, at: str) -> None:
        async def tried(template: str, **more: int) -> dict[str, object]:
            told = await api.post(f"{at}/render", {"template": template, **more})
            assert isinstance(told, dict)
            return told

        told = await tried("{{ workload.region }} {{ ctx.said }}")
        assert (told["ok"], told["value"], told["kind"]) == (True, "eu early", "string")
        assert (await tried("{{ workload.many | length }}"))["value"] == MANY
        assert "said" in told["names"]["ctx"]  # type: ignore[index]
        past = await tried("{{ ctx.said }}", seq=1)
        assert (past["ok"], past["value"]) == (False, None)
        wrong = await tried("{{ workload.regoin }}")
        assert wrong["meant"] == "workload.region"
        half = await tried("{{ workload. ")
        assert (half["ok"], bool(half["error"])) == (False, True)

        events = (await api.get(f"{at}/events", name="task.done"))["events"]
        seen = await tried("{{ outcome.status }}", event=events[0]["seq"])
        assert seen["value"] == "ok"
        unseen = await tried("{{ outcome.status }}", event=1)
        assert not unseen["ok"]

    looked_at(test, tmp_path)


@pytest.mark.rule("TPL-5")
def test_a_template_that_never_ends_and_one_that_grows_are_stopped(tmp_path: Path) -> None:
    async def test(api: Api, at: str) -> None:
        render = f"{at}/render"
        loop = "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}"
        assert "turns" in (await api.post(render, {"template": loop}))["error"]
        grown = await api.post(render, {"template": "{{ 'x' * 2000000 }}"})
        assert (grown["cut"], grown["size"] > 2_000_000) == (True, True)
        assert len(grown["value"]) <= 100_000
        status, _ = await api.ask("POST", render, json={"template": "x" * 20_001})
        assert status == 422
        evil = "{{ ''.__class__.__mro__ }}"
        assert not (await api.post(render, {"template": evil}))["ok"]

    looked_at(test, tmp_path)


@pytest.mark.rule("KEY-2")
def test_a_secret_cannot_be_turned_around_by_a_template(tmp_path: Path) -> None:
    async def test(api: Api, at: str) -> None:
        KNOWN.add(SECRET)
        render = f"{at}/render"
        told = await api.post(render, {"template": "{{ workload.word | reverse }}"})
        assert SECRET[::-1] not in str(told)
        assert SECRET not in str(await api.post(render, {"template": "{{ workload }}"}))

    try:
        looked_at(test, tmp_path)
    finally:
        KNOWN.clear()


async def stored(api: Api, at: str) -> tuple[str, str | None]:
    """The checksum and the hint of the large value of the execution."""
    told = await api.get(f"{at}/events", name="playbook.request.evaluated")
    reference = told["events"][0]["data"]["workload"]["many"]["$ref"]
    return reference["key"].rpartition("/")[2], reference.get("schema_hint")


@pytest.mark.rule("RES-1")
def test_a_large_value_is_previewed_and_downloaded(tmp_path: Path) -> None:
    async def test(api: Api, at: str) -> None:
        checksum, hint = await stored(api, at)
        body = f"{at}/bodies/{checksum}"
        told = await api.get(body, rows=5, hint=hint or "")
        assert (told["kind"], told["value"], told["cut"]) == ("list", [0, 1, 2, 3, 4], True)
        assert told["count"] in (None, MANY)
        async with api.session.get(f"{api.url}{body}/download") as answer:
            whole = await answer.read()
            assert "attachment" in answer.headers["content-disposition"]
        assert hashlib.sha256(whole).hexdigest() == checksum
        gone = f"{at}/bodies/{'0' * 64}"
        for path in (gone, f"{gone}/download"):
            status, refused = await api.ask("GET", path)
            assert (status, refused["error"]["code"]) == (410, "result_lost")
        status, _ = await api.ask("GET", f"{at}/bodies/x")
        assert status == 400

    looked_at(test, tmp_path)


STRANGE: list[object] = [
    *("text", 5, None, [], {}, {"chunks": []}, {"chunks": 1}, {"chunks": ["x"]}),
    {"chunks": [{"store": "files", "key": "../../token", "size": 1, "checksum": "0" * 64}]},
    {"chunks": [{"store": "files", "key": 5, "size": 1, "checksum": "0" * 64}]},
    {"chunks": [{"store": "", "key": "", "size": 1, "checksum": "", "schema_hint": 5}]},
]


@pytest.mark.rule("RES-1")
@pytest.mark.parametrize("value", STRANGE)
def test_no_value_says_where_else_to_look(tmp_path: Path, value: object) -> None:
    """A value can be made like chunks of one, with keys that are paths."""

    async def run(cluster: Cluster) -> None:
        async with api_of(await cluster.server()) as api:
            kept = await cluster.results.put("e1", msgspec.json.encode(value))
            at = f"/api/executions/e1/bodies/{kept.checksum}"
            status, told = await api.ask("GET", at, params={"hint": "chunks[2]"})
            assert (status, told["error"]["code"]) == (400, "malformed"), told

    clustered(run, tmp_path)
