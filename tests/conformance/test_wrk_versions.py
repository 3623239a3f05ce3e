"""WRK: servers and workers of different versions (decision 0051)."""

from pathlib import Path

import msgspec
import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.direct_link import DirectLink
from tests.support.steps import arc, call, playbook, step

from noetl import __version__
from noetl.errors import ServerRefused
from noetl.messages.requests import RULES
from noetl.node.work_plane import WorkPlane
from noetl.ports.link import SPEAKS, Answer, Call

CHAIN = playbook(
    step("first", call("fetch"), call("store"), arcs=[arc("second")]),
    step("second", call("tell")),
)


@pytest.mark.rule("WRK-1")
@pytest.mark.parametrize("speaks", [SPEAKS - 1, SPEAKS + 1])
def test_a_worker_that_speaks_otherwise_is_refused_before_it_gets_work(
    tmp_path: Path, speaks: int
) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        await cluster.start(CHAIN)
        wire = DirectLink(cluster.exchange, poll=0.05)
        worker = WorkPlane(
            cluster.settings, wire, results=cluster.results, tools=CannedTools(), name="other"
        )
        said = worker.session.wire
        said.me = msgspec.structs.replace(said.me, version="0.0.9", speaks=speaks)
        words = rf"0\.0\.9.* protocol {speaks}, .*{__version__}.* speaks {SPEAKS}: stop the workers"
        with pytest.raises(ServerRefused, match=words):
            await worker.run()
        assert len(server.dispatcher.leases) == 0
        await worker.close()
        cluster.worker(CannedTools())

    clustered(test, tmp_path)


class OtherServer(DirectLink):
    """Its servers speak an older or newer protocol, and do not refuse."""

    speaks = SPEAKS

    async def call(self, server: str, call: Call) -> Answer:
        answer = await super().call(server, call)
        return msgspec.structs.replace(answer, speaks=self.speaks)


@pytest.mark.rule("WRK-1")
@pytest.mark.parametrize("speaks", [SPEAKS - 1, SPEAKS + 1])
def test_a_worker_refuses_a_server_that_speaks_otherwise(tmp_path: Path, speaks: int) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.server()
        wire = OtherServer(cluster.exchange, poll=0.05)
        wire.speaks = speaks
        tools = CannedTools()
        worker = WorkPlane(
            cluster.settings, wire, results=cluster.results, tools=tools, name="other"
        )
        with pytest.raises(ServerRefused, match=rf"speaks protocol {speaks}, this .* {SPEAKS}:"):
            await worker.run()
        assert tools.calls == []
        await worker.close()

    clustered(test, tmp_path)


@pytest.mark.rule("WRK-1")
def test_workers_of_other_versions_work_on_while_they_speak_alike(tmp_path: Path) -> None:
    """A rolling upgrade: old and new workers, fields that the other side does not know."""

    async def test(cluster: Cluster) -> None:
        await cluster.server()
        tools = CannedTools()
        worker = cluster.worker(tools)
        said = worker.session.wire
        said.me = msgspec.structs.replace(said.me, version="99.0")
        assert (await cluster.run(CHAIN)).status == "completed"
        assert len(tools.calls) == 3

    clustered(test, tmp_path)
    newer = msgspec.json.decode(msgspec.json.encode(Call(worker="w", pool="p", version="1")))
    assert msgspec.json.decode(msgspec.json.encode(newer | {"mood": "new"}), type=Call).pool == "p"


def test_what_workers_must_know_has_a_number() -> None:
    """
    Decision 0051: whoever changes the rules of decisions gives the protocol its next number, unless
    workers do nothing by them: rules 5 is about what the server lets loops write.
    """
    assert (SPEAKS, RULES) == (2, 5)
