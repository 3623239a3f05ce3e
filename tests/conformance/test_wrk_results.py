"""RES-1: a worker stores bodies for the executions that it has a part of, and no others."""

from pathlib import Path

import aiohttp
import pytest
from tests.support.api import Served, served
from tests.support.cluster import Cluster, clustered
from tests.support.steps import call, playbook, step

from noetl import __version__
from noetl.api.routes import LARGEST_BODY
from noetl.api.tokens import make_token
from noetl.node.server import ServerNode
from noetl.ports.link import SPEAKS, Call, Caller
from noetl.ports.tokens import TAG, digest_of

PLACE = "/api/worker/results"


async def taken(server: ServerNode, pool: str) -> tuple[str, str]:
    """A token of the pool, whose worker has the part that waits there, and its execution."""
    text = playbook(
        step("s", call("fetch")), executor={"kind": "distributed", "spec": {"pool": pool}}
    )
    entry, _ = await server.register(text)
    row = await server.execute(playbook_id=entry.playbook_id, payload={})
    token = (await make_token(server.storage.tokens, pool, "worker", pool=pool)).token
    tag = digest_of(token)[:TAG]
    me = Call(worker=f"w-{tag}", pool=pool, version=__version__, speaks=SPEAKS, slots=9, free=1)
    assert (await server.dispatcher.answer(me, Caller(tag, pool))).grants
    return token, row.execution_id


async def post(api: Served, token: str, execution_id: str, size: int = 3) -> int:
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Content-Length": str(size),
    }
    async with aiohttp.ClientSession(api.url, headers=headers) as client:
        answer = await client.post(PLACE, params={"execution_id": execution_id}, data=b"[1]")
        return answer.status


@pytest.mark.rule("WRK-1", "RES-1")
def test_no_body_is_stored_for_another_execution(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        async with served(server, auth=True) as api:
            evil, mine = await taken(server, "default")
            good, theirs = await taken(server, "secure")
            assert await post(api, evil, mine) == await post(api, good, theirs) == 201
            assert await post(api, evil, theirs) == 403
            assert await post(api, good, mine) == 403
            assert await post(api, evil, "0" * 18) == 403
            assert await post(api, evil, mine, LARGEST_BODY + 1) == 413

    clustered(test, tmp_path)
