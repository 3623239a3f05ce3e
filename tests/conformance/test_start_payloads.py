"""START-1, TPL-5: the payload of a trigger is made of templates that hold up nobody."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import Cluster, clustered
from tests.support.triggers import PATH, QUICK, trigger

from noetl.api.questions import PlaneQuestions
from noetl.errors import TemplateFailed
from noetl.node.trigger_payloads import payload_of
from noetl.playbook.load import load_trigger
from noetl.playbook.triggers import Trigger
from noetl.server.triggering import find_trigger

LONG = "{% for a in range(200) %}{% for b in range(300) %}{{ a }}{% endfor %}{% endfor %}"
"""More turns than an event loop has time for, and far fewer than a template may take."""


def with_payload(**payload: Any) -> Trigger:
    return load_trigger(trigger({"schedule": {"every": 60}}, payload=payload))


@pytest.mark.rule("START-1", "TPL-5")
def test_a_payload_that_takes_long_holds_up_nobody() -> None:
    async def test() -> None:
        making = asyncio.ensure_future(payload_of(with_payload(x=LONG), at=0))
        turns = 0
        while not making.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 3
        assert (await making)["x"].startswith("000")

    asyncio.run(test())


@pytest.mark.rule("START-1", "TPL-5")
def test_all_templates_of_a_payload_share_their_turns() -> None:
    assert asyncio.run(payload_of(with_payload(x=LONG), at=0))
    many = with_payload(**{f"x{n}": LONG for n in range(300)})
    with pytest.raises(TemplateFailed, match="turns"):
        asyncio.run(payload_of(many, at=0))


@pytest.mark.rule("START-1", "TPL-5")
def test_whoever_looks_at_a_trigger_evaluates_nothing_and_reads_it_once(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        await server.register(QUICK)
        await server.register(trigger({"schedule": {"every": 60}}, payload={"x": LONG}))
        questions = PlaneQuestions(server)
        _, document = await find_trigger(server.storage, PATH)
        asked: list[Any] = []

        def made(scope: Any) -> dict[str, Any]:
            asked.append(scope)
            return {}

        document.__dict__["made_payload"] = made
        assert (await questions.trigger(PATH)).problem is None
        assert asked == []
        await questions.trial(PATH)
        assert len(asked) == 1, "the document that was read before"

    clustered(test, tmp_path)
